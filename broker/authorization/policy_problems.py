"""Words the faults that pydantic finds in a policy, in sentences that name rule and field.

Above: config/problems.py and predicates.py. Below: pydantic, value_faults.py. No sentence holds a value: one may come
from a variable.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from broker.config.value_faults import words_for

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

_ITEMS = {"rules": "rule", "quotas": "quota", "flows": "flow"}
_TESTS = ("equals", "in", "glob", "path", "min", "max", "present", "each", "any", "keys")
_ALIKE = 0.65
"""How similar a name must be to be meant: `decision` is not `sessions`."""


def policy_problems(error: ValidationError, document: Any, model: type[BaseModel]) -> Iterator[str]:
    """Yield one sentence for each fault of a `policy` section; `document` is the section as it was written."""
    seen: set[str] = set()
    for fault in error.errors(include_url=False, include_input=False):
        # A value that fits none of two types is one fault, not two.
        sentence = f"policy: {_place(fault['loc'], document)}{_sentence(fault, model)}"
        if sentence not in seen:
            seen.add(sentence)
            yield sentence


def predicate_problem(error: ValidationError) -> str:
    """Return the first fault of a predicate as a sentence."""
    fault = error.errors(include_url=False, include_input=False)[0]
    return f"{_place(fault['loc'], None)}{_sentence(fault, None)}"


def _place(location: tuple[int | str, ...], document: Any) -> str:
    """Return `rule 3 'writes': effect: ` for `("rules", 2, "effect")`."""
    words: list[str] = []
    parts = list(location)
    if len(parts) > 1 and parts[0] in _ITEMS and isinstance(parts[1], int):
        words.append(f"{_ITEMS[str(parts[0])]} {parts[1] + 1}{_name(document, str(parts[0]), parts[1])}")
        parts = parts[2:]
    words += [str(part) for part in parts if part not in {"[key]", "int", "float"}]
    return "".join(f"{word}: " for word in words)


def _name(document: Any, items: str, index: int) -> str:
    try:
        name = document[items][index]["name"]
    except (KeyError, IndexError, TypeError):
        return ""
    return f" {name!r}" if isinstance(name, str) and name else ""


def _sentence(fault: ErrorDetails, model: type[BaseModel] | None) -> str:
    match fault["type"]:
        case "impossible":
            return fault["msg"]
        case "extra_forbidden":
            return f"is unknown{_nearest(fault['loc'], model)}"
        case "too_short":
            return "is empty; an empty list matches nothing"
        case "model_type" if fault["ctx"]["class_name"] == "ArgumentTest":
            return 'must be a test, as {"equals": "value"}'
        case _:
            return words_for(fault)


def _nearest(location: tuple[int | str, ...], model: type[BaseModel] | None) -> str:
    fields = sorted(_fields_at(location, model))
    near = difflib.get_close_matches(str(location[-1]), fields, n=1, cutoff=_ALIKE)
    return f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(fields)}"


def _fields_at(location: tuple[int | str, ...], model: type[BaseModel] | None) -> Collection[str]:
    """Return the names of the fields that may stand where one is unknown."""
    schema = {} if model is None else model.model_json_schema(by_alias=True)
    match location:
        case (str(),) if model is not None:
            return list(schema["properties"])
        case (str(items), int(), str()) if items in _ITEMS:
            return list(schema["$defs"][_ITEMS[items].capitalize()]["properties"])
        case ("rules", int(), "annotations", str()):
            return list(schema["$defs"]["Hints"]["properties"])
    return _TESTS
