"""Reads the keywords of a raw schema, whatever a server put there. Nothing here raises.

Above: all modules that read schemas as servers sent them. Below: nothing. A keyword whose value has the wrong kind
counts as absent.
"""

from __future__ import annotations

from typing import Any

STRUCTURE = frozenset(
    {
        "$dynamicRef",
        "$ref",
        "additionalProperties",
        "allOf",
        "anyOf",
        "const",
        "else",
        "enum",
        "items",
        "oneOf",
        "patternProperties",
        "prefixItems",
        "properties",
        "then",
        "type",
    }
)

_LONGEST_CONSTANT = 40

_KEYWORDS_OF_SHAPES = {
    "object": {"properties", "patternProperties", "required", "additionalProperties"},
    "array": {"items", "prefixItems"},
}
_KEYWORDS_OF_SCALARS = {
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
    "string": {"minLength", "maxLength", "pattern"},
}


def branches_of(schema: dict[str, Any], keyword: str) -> list[Any]:
    """Return the subschemas of `anyOf`, `oneOf` or `allOf`, or none if it is not a list."""
    branches = schema.get(keyword)
    return branches if isinstance(branches, list) else []


def properties_of(schema: Any) -> dict[str, Any]:
    """Return the `properties` of a schema, or none if it has no such object."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties if isinstance(properties, dict) else {}


def required_of(schema: Any) -> list[str]:
    """Return the names in `required`, each once, leaving out what is not a string."""
    required = schema.get("required") if isinstance(schema, dict) else None
    names = required if isinstance(required, list) else []
    return list(dict.fromkeys(name for name in names if isinstance(name, str)))


def type_names(schema: dict[str, Any]) -> list[str]:
    """Return the names in `type`, whatever its form."""
    type_ = schema.get("type")
    if isinstance(type_, str):
        return [type_]
    return [name for name in type_ if isinstance(name, str)] if isinstance(type_, list) else []


def implied_types(schema: dict[str, Any]) -> list[str]:
    """Return the types that a schema without `type` plainly means, by the keywords it uses.

    Bounds alone mean nothing: only beside the shape of an object or array do they add their own kind.
    """
    keywords = {name for name in schema if name != "additionalProperties" or isinstance(schema[name], dict)}
    shapes = [name for name, about in _KEYWORDS_OF_SHAPES.items() if keywords & about]
    return shapes and [*shapes, *(name for name, about in _KEYWORDS_OF_SCALARS.items() if keywords & about)]


def constant_of(schema: Any) -> str | int | None:
    """Return the one short text or whole number that a schema allows, None if it allows anything else."""
    if not isinstance(schema, dict):
        return None
    listed = schema.get("enum")
    value = listed[0] if isinstance(listed, list) and len(listed) == 1 else schema.get("const")
    is_short = len(value) <= _LONGEST_CONSTANT if isinstance(value, str) else type(value) in {int, bool}
    return value if is_short else None


def says_something(schema: Any) -> bool:
    """Tell whether a schema restricts the kind or shape of a value."""
    return isinstance(schema, dict) and not STRUCTURE.isdisjoint(schema)


def only_adds_conditions(schema: dict[str, Any], branches: list[Any]) -> bool:
    """Tell whether the branches only restrict a shape that the schema itself gives."""
    if not says_something({key: schema[key] for key in schema if key not in {"anyOf", "oneOf"}}):
        return False
    own = set(type_names(schema))
    return all(
        not isinstance(branch, dict)
        or STRUCTURE.isdisjoint({key for key in branch if key != "type" or not own <= set(type_names(branch))})
        for branch in branches
    )


def takes_other_keys(schema: dict[str, Any]) -> bool:
    """Tell whether an object may have keys that its schema does not name, beyond a caller's spelling mistakes."""
    additional = schema.get("additionalProperties", schema.get("unevaluatedProperties"))
    patterns = schema.get("patternProperties")
    if isinstance(patterns, dict) and patterns:
        return True
    return "properties" not in schema if additional is None else additional is not False


def elements_of(schema: dict[str, Any]) -> list[Any]:
    """Return the schemas of which each element of an array fits one; none if elements may be anything."""
    items = schema.get("items", True)
    places = branches_of(schema, "prefixItems") or (items if isinstance(items, list) else [])
    rest = schema.get("additionalItems", True) if isinstance(items, list) else items
    if not places:
        return [] if rest is False else [rest]
    is_bounded = rest is False or schema.get("maxItems") == len(places)
    if rest is True and not is_bounded:
        return []
    return [*places, *(() if is_bounded else (rest,))]


def values_of_other_keys(schema: dict[str, Any]) -> list[Any] | None:
    """Return the schemas of which the value of an unnamed key fits one; none for any value, None if unsaid."""
    additional = schema.get("additionalProperties", schema.get("unevaluatedProperties"))
    patterns = schema.get("patternProperties")
    values = [value for value in patterns.values() if value is not False] if isinstance(patterns, dict) else []
    if additional is True or (values and additional is None):
        return []
    if isinstance(additional, dict):
        values.append(additional)
    return values or None
