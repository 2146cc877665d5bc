"""Validation by jsonschema within a bound on the work, and the one fault that is told of.

Above: json_schema.py, which loads it for the first value that its own look does not settle. Below: jsonschema, and
schema_names.py. Schemas were written by a server, and may be made to run for ever, so they are checked with three
differences:

- `pattern` and `patternProperties` are not looked at: a regular expression is a program of the server's;
- a `$ref` leads only into the same document, never to a file or the network;
- after a number of steps, or levels, the check gives up, and what it has found until then is all; a long message,
  which quotes the value, costs many steps, and so do names (schema_names.py). It protects scripts from surprises, it
  does not protect the server, which checks its own arguments.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator, ValidationError, validators
from jsonschema.exceptions import best_match
from jsonschema.validators import validator_for
from referencing import Registry

from broker.calls.schema_names import Names
from codegen.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STEPS = 50_000
_QUOTED_CHARACTERS = 800
"""So many characters of a message cost a step."""
_MESSAGE_CHARACTERS = 300
_PATH_CHARACTERS = 120

_ITEMS = 8
"""So many items or members of what is looked through cost a step."""
_PAIRS = 2_000
"""So many comparisons of one item with another cost a step."""
_COMPARED_CHARACTERS = 50
"""So many characters of items that must be unique cost a step."""

_MOST_LEVELS = 120
"""Keywords within keywords. Each takes six calls at most of Python's stack; where that ends, a library panics."""

_steps_left: ContextVar[int] = ContextVar("_steps_left", default=STEPS)
_names: ContextVar[Names] = ContextVar("_names")
_level: ContextVar[int] = ContextVar("_level", default=0)


class _UnfinishedError(Exception):
    """A bound was reached."""


class BoundedValidator:
    """One schema, ready to be asked."""

    def __init__(self, schema: dict[str, Any]) -> None:
        """Take any schema; what is wrong with it is found, or not, when it is asked."""
        self._schema = schema
        self._cost_of_names = Names.of(schema)

    def fault(self, value: Any) -> str | None:
        """Return what is wrong with a JSON value, as `at path: what`, or None when nothing is found."""
        _steps_left.set(STEPS)
        _names.set(self._cost_of_names)
        _level.set(0)
        found: list[ValidationError] = []
        with _given_up():
            for error in self._validator.iter_errors(value):
                found.append(error)  # noqa: PERF402  # what was found before it raises counts
        with _given_up():
            found = [best_match(found)] if found else []
        return _sentence(_beside_null(found[0])) if found else None

    @cached_property
    def _validator(self) -> Any:
        validator = _bounded(validator_for(self._schema, default=Draft202012Validator))
        return validator(self._schema, registry=Registry())


@contextmanager
def _given_up() -> Iterator[None]:
    """End a block at whatever a broken schema raises: RecursionError, Unresolvable, TypeError, the panic of a library.

    Errors that are compared raise as well.
    """
    try:
        yield
    except Exception:  # noqa: BLE001, S110  # what was found until then is all
        pass
    except BaseException as error:
        # Of Rust, where Python's stack ends: no `Exception`, and not to be had by a name of its own.
        if type(error).__name__ != "PanicException":
            raise


def _beside_null(error: ValidationError) -> ValidationError:
    """Return what is wrong by the one alternative that there is beside null, as optional arguments have it."""
    alternatives = error.validator_value if error.validator in {"anyOf", "oneOf"} else None
    if not isinstance(alternatives, list):
        return error
    kinds = [index for index, one in enumerate(alternatives) if one != {"type": "null"}]
    told = [one for one in error.context or () if list(one.relative_schema_path)[:1] == kinds]
    return told[0] if told else error


def _sentence(error: ValidationError) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
    message = one_line(error.message, _MESSAGE_CHARACTERS)
    return f"{one_line(path.lstrip('.'), _PATH_CHARACTERS)}: {message}" if path else message


@lru_cache(maxsize=16)
def _bounded(validator: Any) -> Any:
    """Return a class of jsonschema with each keyword counted and the dangerous ones replaced."""
    keywords = {name: _counted(check) for name, check in validator.VALIDATORS.items()}
    for name in ("pattern", "patternProperties", "format"):
        keywords[name] = _nothing
    keywords["uniqueItems"] = _counted(_unique_items)
    keywords["$id"] = keywords["id"] = _named
    for name in {"$ref", "$dynamicRef", "$recursiveRef"} & keywords.keys():
        keywords[name] = _costing(keywords[name], _lookup)
    for name in {"unevaluatedItems", "unevaluatedProperties"} & keywords.keys():
        keywords[name] = _costing(keywords[name], _pairs)
    for name in ("additionalProperties", "unevaluatedProperties"):
        if name in keywords:
            keywords[name] = _without_patterns(keywords[name])
    return validators.extend(validator, keywords)  # type: ignore[no-untyped-call]  # untyped in the stubs


def _counted(check: Callable[..., Any]) -> Callable[..., Iterator[ValidationError]]:
    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        _take_steps(1)
        _take_at_once(sum(len(one) for one in (value, instance) if isinstance(one, list | dict)) // _ITEMS)
        level = _level.get()
        if level >= _MOST_LEVELS:
            raise _UnfinishedError
        _level.set(level + 1)
        try:
            for error in check(validator, value, instance, schema) or ():
                # Once for each level that hands it on.
                _take_steps(1 + len(error.message) // _QUOTED_CHARACTERS)
                yield error
        finally:
            _level.set(level)

    return counted


def _take_steps(count: int) -> None:
    left = _steps_left.get()
    if left <= 0:
        raise _UnfinishedError
    _steps_left.set(left - count)


def _take_at_once(count: int) -> None:
    """Take the steps of what is about to be done in one go, or do not begin it."""
    if count > _steps_left.get():
        raise _UnfinishedError
    if count:
        _take_steps(count)


def _costing(check: Callable[..., Any], steps: Callable[[Any, Any], int]) -> Callable[..., Iterator[ValidationError]]:
    def checked(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        _take_at_once(steps(value, instance))
        yield from check(validator, value, instance, schema)

    return checked


def _lookup(value: Any, _instance: Any) -> int:
    """The library goes through the whole document for each reference by a name; by a pointer it does not."""
    is_name = isinstance(value, str) and value != "#" and not value.startswith("#/")
    return _names.get().lookup if is_name else 0


def _pairs(_value: Any, instance: Any) -> int:
    """The library compares every item with every one that was evaluated."""
    return len(instance) ** 2 // _PAIRS if isinstance(instance, list | dict) else 0


def _named(_validator: Any, _value: Any, _instance: Any, _schema: Any) -> Iterator[ValidationError]:
    """Say nothing of an identifier, which the library joins with the ones around it whenever it comes by."""
    _take_at_once(_names.get().joining)
    return iter(())


def _nothing(_validator: Any, _value: Any, _instance: Any, _schema: Any) -> Iterator[ValidationError]:
    return iter(())


def _without_patterns(check: Callable[..., Any]) -> Callable[..., Iterator[ValidationError]]:
    """Which properties are additional depends on patterns; where there are any, nothing is said."""

    def checked(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if "patternProperties" not in schema:
            yield from check(validator, value, instance, schema)

    return checked


def _unique_items(_validator: Any, value: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    """Compare by canonical text: the library compares every pair of items that cannot be sorted."""
    if value is True and isinstance(instance, list):
        texts = set()
        for item in instance:
            text = json.dumps(item, sort_keys=True)
            _take_at_once(len(text) // _COMPARED_CHARACTERS)
            texts.add(text)
        if len(texts) != len(instance):
            yield ValidationError("has items that are not unique")
