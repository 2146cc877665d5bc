"""Finds the members or items of a value that a schema evaluates, for `unevaluatedProperties` and `unevaluatedItems`.

Above: bounded_validator.py. Below: check_work.py, and a validator of jsonschema. The library's own search runs the
patterns of the schema, and goes round in one that refers to itself until the stack ends. Here each schema that is
gone into is a level and costs steps, and where patterns would decide, every member counts as evaluated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from referencing.jsonschema import lookup_recursive_ref

from broker.calls import check_work

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def evaluated(validator: Any, value: Any, schema: Any) -> set[Any]:
    """Return the keys of an object, or the indexes of a list, that a schema and those in its place speak of.

    Args:
        validator: Judges which alternatives the value fits; references count from where it stands.
        value: The object or list.
        schema: Of it.
    """
    if not isinstance(schema, dict):
        return set()
    check_work.take(1)
    check_work.take_look_through(value, schema)
    check_work.take_look_through(*schema.values())
    with check_work.Deeper():
        found = set(_members(validator, value, schema) if isinstance(value, dict) else _items(validator, value, schema))
        for there, subschema in _in_its_place(validator, value, schema):
            found |= evaluated(there, value, subschema)
    return found


def _members(validator: Any, value: dict[str, Any], schema: dict[str, Any]) -> Iterator[str]:
    if "patternProperties" in schema:
        yield from value
        return
    yield from (key for key in value if key in schema.get("properties", {}))
    for keyword in ("additionalProperties", "unevaluatedProperties"):
        if keyword in schema:
            yield from _fitting(validator, value.items(), schema[keyword])


def _items(validator: Any, value: list[Any], schema: dict[str, Any]) -> Iterator[int]:
    items = schema.get("items")
    begins_with = items if isinstance(items, list) else schema.get("prefixItems", [])
    is_whole = items is not None and (not isinstance(items, list) or "additionalItems" in schema)
    yield from range(len(value) if is_whole else len(begins_with))
    for keyword in ("contains", "unevaluatedItems"):
        if keyword in schema:
            yield from _fitting(validator, enumerate(value), schema[keyword])


def _fitting(validator: Any, parts: Iterable[tuple[Any, Any]], schema: Any) -> Iterator[Any]:
    for name, part in parts:
        check_work.take(1)
        if _fits(validator, part, schema):
            yield name


def _in_its_place(validator: Any, value: Any, schema: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the schemas that the value has to fit because of this one, each with the validator for where it stands."""
    resolver = validator._resolver  # noqa: SLF001  # there is no public way to what a reference means
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in schema and keyword in validator.VALIDATORS:
            check_work.take_lookup(schema[keyword])
            yield _at(validator, resolver.lookup(schema[keyword]))
    if "$recursiveRef" in schema and "$recursiveRef" in validator.VALIDATORS:
        yield _at(validator, lookup_recursive_ref(resolver))
    subschemas = [schema["dependentSchemas"][key] for key in schema.get("dependentSchemas", {}) if key in value]
    if "if" in schema:
        subschemas += (
            [schema["if"], schema.get("then")] if _fits(validator, value, schema["if"]) else [schema.get("else")]
        )
    for subschema in subschemas:
        yield validator, subschema
    for keyword in ("allOf", "anyOf", "oneOf"):
        for subschema in schema.get(keyword, []):
            if _fits(validator, value, subschema):
                yield validator, subschema


def _at(validator: Any, resolved: Any) -> tuple[Any, Any]:
    return validator.evolve(schema=resolved.contents, _resolver=resolved.resolver), resolved.contents


def _fits(validator: Any, value: Any, schema: Any) -> bool:
    return next(validator.descend(value, schema), None) is None
