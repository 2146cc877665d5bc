"""Raw schemas joined into one: `allOf`, a `$ref` with neighbours, the branches of a root object.

Above: the closed schema. A join may accept more than its parts do together, never less: what has no
counterpart in types (lengths, `not`, counts) is taken from the first part that has it.
"""

from __future__ import annotations

from typing import Any

from codegen.tool_spec import canonical_json

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

_KEYWORDS_OF_SHAPES = {
    "object": {"properties", "patternProperties", "required", "additionalProperties"},
    "array": {"items", "prefixItems"},
}
_KEYWORDS_OF_SCALARS = {
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
    "string": {"minLength", "maxLength", "pattern"},
}

# Beyond this many alternatives those of the first side stand.
_MOST_PAIRS = 32


def merged(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Return one schema for values that satisfy both; where the two cannot be joined, `first` stands."""
    result = dict(first)
    for keyword, value in second.items():
        if keyword not in result:
            result[keyword] = value
        elif keyword in _JOINS:
            result[keyword] = _JOINS[keyword](result[keyword], value)
    return result


def branches_of(schema: dict[str, Any], keyword: str) -> list[Any]:
    """Return the subschemas of `anyOf`, `oneOf` or `allOf`, or none if it is not a list."""
    branches = schema.get(keyword)
    return branches if isinstance(branches, list) else []


def properties_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the `properties` of a schema, or none if they are not an object."""
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def required_of(schema: dict[str, Any]) -> list[str]:
    """Return the names in `required`, each once, leaving out what is not a string."""
    required = schema.get("required")
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
    """Tell whether an object may have keys that its schema does not name; a caller's misspelt ones are none."""
    additional = schema.get("additionalProperties", schema.get("unevaluatedProperties"))
    patterns = schema.get("patternProperties")
    if isinstance(patterns, dict) and patterns:
        return True
    return "properties" not in schema if additional is None else additional is not False


def elements_of(schema: dict[str, Any]) -> list[Any]:
    """Return what the elements of an array are, one of these; none if they may be anything."""
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
    """Return what keys without a name lead to, one of these; none if to anything, None if the schema does not say."""
    additional = schema.get("additionalProperties", schema.get("unevaluatedProperties"))
    patterns = schema.get("patternProperties")
    values = [value for value in patterns.values() if value is not False] if isinstance(patterns, dict) else []
    if additional is True or (values and additional is None):
        return []
    if isinstance(additional, dict):
        values.append(additional)
    return values or None


def are_too_many(first: dict[str, Any], second: dict[str, Any], keyword: str) -> bool:
    """Tell whether the alternatives of two schemas have more pairs than can be joined."""
    sides = branches_of(first, keyword), branches_of(second, keyword)
    return len(sides[0]) * len(sides[1]) > _MOST_PAIRS and all(any(map(says_something, side)) for side in sides)


def _join_properties(first: Any, second: Any) -> Any:
    if not (isinstance(first, dict) and isinstance(second, dict)):
        return first
    joined = dict(first)
    for key, schema in second.items():
        joined[key] = _join_schemas(joined[key], schema) if key in joined else schema
    return joined


def _join_schemas(first: Any, second: Any) -> Any:
    if first == second or not isinstance(second, dict):
        return first
    return {"allOf": [first, second]} if isinstance(first, dict) and first else second


def _join_types(first: Any, second: Any) -> Any:
    left, right = type_names({"type": first}), type_names({"type": second})
    if not left or not right:
        return first if left else second
    common = [name for name in left if name in right or (name == "integer" and "number" in right)]
    common += [name for name in right if name == "integer" and "number" in left and "integer" not in left]
    return common or first


def _join_enums(first: Any, second: Any) -> Any:
    if not (isinstance(first, list) and isinstance(second, list)):
        return first
    common = set(map(_comparable, second))
    return [value for value in first if _comparable(value) in common] or first


def _comparable(value: Any) -> Any:
    """Return what is equal for equal values, and can be looked up."""
    return (canonical_json(value),) if isinstance(value, dict | list) else value


def _join_additional(first: Any, second: Any) -> Any:
    if first is False or second is False:
        return False
    return first if isinstance(first, dict) else second


def _join_branches(first: Any, second: Any) -> Any:
    """Return the alternatives of which one of each side holds; of sides that give no shape, the other one's."""
    if not (isinstance(first, list) and isinstance(second, list)):
        return first if isinstance(first, list) else second
    if not any(map(says_something, second)) or first == second:
        return first
    if not any(map(says_something, first)):
        return second
    if len(first) * len(second) > _MOST_PAIRS:
        return first
    return [{"allOf": [left, right]} for left in first for right in second]


_JOINS = {
    "properties": _join_properties,
    "patternProperties": _join_properties,
    "$defs": _join_properties,
    "definitions": _join_properties,
    "dependentSchemas": _join_properties,
    "dependencies": _join_properties,
    "type": _join_types,
    "enum": _join_enums,
    "items": _join_schemas,
    "additionalProperties": _join_additional,
    "anyOf": _join_branches,
    "oneOf": _join_branches,
}
