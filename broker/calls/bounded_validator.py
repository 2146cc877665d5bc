"""Validates with jsonschema within a bound on the work, and words the faults.

Above: json_schema.py, which loads it for the first value that its own look does not settle. Below: jsonschema,
check_work.py, unevaluated.py. Schemas were written by a server, and may be made to run for ever, so they are checked
with these differences:

- `pattern` and `patternProperties` are not looked at: a regular expression is a program of the server's;
- a `$ref` leads only into the same document, never to a file or the network;
- after a number of steps or levels the check gives up with what it has found so far. A long message, which quotes the
  value, costs many steps, and so do names. The check protects scripts from surprises, not the server, which checks its
  own arguments;
- what OpenAPI 3.0 says in words of its own counts, because many servers send its schemas: `nullable`, and
  `exclusiveMinimum` and `exclusiveMaximum` as a boolean beside the bound.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator, ValidationError, validators
from jsonschema.exceptions import best_match
from jsonschema.validators import validator_for
from referencing import Registry

from broker.calls import check_work
from broker.calls.alternatives import meant
from broker.calls.name_costs import NameCosts
from broker.calls.unevaluated import evaluated
from codegen.plain_text import few, literal, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_FAULT = 3
"""The steps that a fault costs."""
_QUOTED_CHARACTERS = 800
"""So many characters of its message cost a step."""
_NUMBER_BITS = 100
"""So many bits of a whole number cost a step: Python quotes long ones slowly."""
_MESSAGE_CHARACTERS = 300
_PATH_CHARACTERS = 120
_VALUE_CHARACTERS = 150
"""So many characters of a value are quoted, where the message would otherwise be cut before it says what is wrong."""
_OF_SIZES = re.compile(r" (?:is too (?:long|short)|does not have enough properties|has too many properties)\Z")
_LARGEST_BOUND = 10**12
_NAMED = 10
"""So many keys or indexes are named in a message."""
_COMPARED_CHARACTERS = 50
"""So many characters of items that must be unique cost a step."""
_SLOWLY_COMPARED_CHARACTERS = 10
"""So many characters of what an object or a list is compared with cost a step."""


class BoundedValidator:
    """One schema, ready to check values."""

    def __init__(self, schema: dict[str, Any]) -> None:
        """Take any schema; a fault in the schema shows, if at all, when a value is checked."""
        self._schema = schema
        self._name_costs = NameCosts.of(schema)

    def faults(self, value: Any, most: int, unchecked: str | None = None) -> list[str]:
        """Return what is wrong with a JSON value, as `at path: what`; `unchecked` if the check gave up with nothing.

        Of one fault, that is the one that matters most; of several, the first, and how many there are besides.
        """
        check_work.begin(self._name_costs)
        found: list[ValidationError] = []
        has_seen_all = False
        with _given_up():
            for error in self._validator.iter_errors(value):
                found.append(error)  # noqa: PERF402  # what was found before it raises counts
            has_seen_all = True
        if not found:
            return [] if has_seen_all or unchecked is None else [unchecked]
        with _given_up():
            found = [inner for one in found for inner in meant(one)]
        told = found[:most]
        with _given_up():
            told = [best_match([one]) for one in told] if most > 1 else [best_match(found)]
        more = [f"and {len(found) - most} more"] if most > 1 and len(found) > most else []
        return [*map(_sentence, told), *more]

    @cached_property
    def _validator(self) -> Any:
        validator = _bounded(validator_for(self._schema, default=Draft202012Validator))
        return validator(self._schema, registry=Registry())


@contextmanager
def _given_up() -> Iterator[None]:
    """End the block quietly at whatever a broken schema raises: RecursionError, Unresolvable, TypeError, a panic.

    Comparing errors raises as well.
    """
    try:
        yield
    except Exception:  # noqa: BLE001, S110  # what was found until then is all
        pass
    except BaseException as error:
        # Of Rust, where Python's stack ends: no `Exception`, and not to be had by a name of its own.
        if type(error).__name__ != "PanicException":
            raise


def _sentence(error: ValidationError) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
    message = one_line(_shortened(error), _MESSAGE_CHARACTERS)
    return f"{one_line(path.lstrip('.'), _PATH_CHARACTERS)}: {message}" if path else message


def _shortened(error: ValidationError) -> str:
    """Return the message with a long value cut, so that what is wrong with it shows, and with the bound."""
    message = error.message
    if len(message) > _MESSAGE_CHARACTERS:
        value = repr(error.instance)
        if message.startswith(value):
            message = one_line(value, _VALUE_CHARACTERS) + value[-1:] + message[len(value) :]
    bound = error.validator_value
    is_told = _OF_SIZES.search(message) and isinstance(bound, int) and bound < _LARGEST_BOUND
    return f"{message} ({error.validator}: {bound})" if is_told else message


@lru_cache(maxsize=16)
def _bounded(validator: Any) -> Any:
    """Return a class of jsonschema with each keyword counted and the dangerous ones replaced."""
    keywords = {name: _counted(check) for name, check in validator.VALIDATORS.items()}
    for name in ("pattern", "patternProperties", "format"):
        keywords[name] = _nothing
    keywords["uniqueItems"] = _counted(_unique_items)
    keywords["$id"] = keywords["id"] = _named
    for name in {"$ref", "$dynamicRef", "$recursiveRef"} & keywords.keys():
        keywords[name] = _looked_up(keywords[name])
    keywords["additionalProperties"] = _without_patterns(keywords["additionalProperties"])
    for name, check in (("unevaluatedProperties", _unevaluated_properties), ("unevaluatedItems", _unevaluated_items)):
        if name in keywords:
            keywords[name] = _counted(check)
    for name in {"const", "enum"} & keywords.keys():
        keywords[name] = _compared(keywords[name])
    for name, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if name in keywords:
            keywords[name] = _exclusive(keywords[name], bound)
    bounded = validators.extend(validator, keywords)  # type: ignore[no-untyped-call]  # untyped in the stubs
    bounded.evolve = _evolved
    return bounded


def _evolved(validator: Any, **changes: Any) -> Any:
    """Return the validator of a subschema.

    Replaces the library's method, which would use an unbounded validator for a subschema that names a dialect.
    """
    kept = {"schema": validator.schema, "registry": validator._registry, "_resolver": validator._resolver}  # noqa: SLF001
    schema = changes.get("schema", validator.schema)
    check_work.take(1)
    check_work.take_look_through(schema)
    own = type(validator)
    dialect = validator_for(schema, default=own)
    return (own if dialect is own else _bounded(dialect))(**kept | changes)


def _counted(check: Callable[..., Any]) -> Callable[..., Iterator[ValidationError]]:
    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        check_work.take(1)
        if instance is None and schema.get("nullable") is True:
            return
        check_work.take_look_through(value, instance)
        if isinstance(instance, int):
            check_work.take_at_once(instance.bit_length() // _NUMBER_BITS)
        with check_work.Deeper():
            for error in check(validator, value, instance, schema) or ():
                # Once for each level that hands it on.
                check_work.take(_FAULT + len(error.message) // _QUOTED_CHARACTERS)
                yield error

    return counted


def _exclusive(check: Callable[..., Any], bound: str) -> Callable[..., Iterator[ValidationError]]:
    """Return a check of a bound that the keyword, where it is true, excludes itself."""

    def checked(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        limit = schema.get(bound) if value is True else None if value is False else value
        if limit is not None:
            yield from check(validator, limit, instance, schema)

    return checked


def _looked_up(check: Callable[..., Any]) -> Callable[..., Iterator[ValidationError]]:
    def checked(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        check_work.take_lookup(value)
        yield from check(validator, value, instance, schema)

    return checked


def _compared(check: Callable[..., Any]) -> Callable[..., Iterator[ValidationError]]:
    """Take the work of a comparison: objects and lists are compared item by item, and slowly."""

    def checked(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        for choice in value if isinstance(value, list) else [value]:
            if isinstance(instance, list | dict) and isinstance(choice, list | dict):
                check_work.take_at_once(1 + len(json.dumps(choice)) // _SLOWLY_COMPARED_CHARACTERS)
        yield from check(validator, value, instance, schema)

    return checked


def _named(_validator: Any, _value: Any, _instance: Any, _schema: Any) -> Iterator[ValidationError]:
    """Find no fault in an identifier."""
    check_work.take_joining()
    return iter(())


def _nothing(_validator: Any, _value: Any, _instance: Any, _schema: Any) -> Iterator[ValidationError]:
    return iter(())


def _without_patterns(check: Callable[..., Any]) -> Callable[..., Iterator[ValidationError]]:
    """Say nothing where there are patterns: which properties are additional depends on them."""

    def checked(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if "patternProperties" not in schema:
            yield from check(validator, value, instance, schema)

    return checked


def _unevaluated_properties(validator: Any, _value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        known = evaluated(validator, instance, schema)
        unknown = [literal(key) for key in instance if key not in known]
        if unknown:
            yield ValidationError(f"has properties that its schema does not evaluate: {few(unknown, _NAMED)}")


def _unevaluated_items(validator: Any, _value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, list):
        known = evaluated(validator, instance, schema)
        unknown = [f"[{index}]" for index in range(len(instance)) if index not in known]
        if unknown:
            yield ValidationError(f"has items that its schema does not evaluate: {few(unknown, _NAMED)}")


def _unique_items(_validator: Any, value: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    """Compare by canonical text: the library compares every pair of items that cannot be sorted."""
    if value is True and isinstance(instance, list):
        texts, encode = set(), json.JSONEncoder(sort_keys=True).encode
        for item in instance:
            text = encode(item)
            check_work.take_at_once(isinstance(item, list | dict) + len(text) // _COMPARED_CHARACTERS)
            texts.add(text)
        if len(texts) != len(instance):
            yield ValidationError("has items that are not unique")
