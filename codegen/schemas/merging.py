"""Raw schemas joined into one: `allOf`, a `$ref` with neighbours, the branches of a root object.

Above: whole_schema.py. Below: keywords.py. A join may accept more than its parts do together, never less: what has no
counterpart in types (lengths, `not`, counts) is taken from the first part that has it.
"""

from __future__ import annotations

from typing import Any

from codegen.schemas.keywords import branches_of, says_something, type_names
from codegen.tool_spec import canonical_json

# Beyond this many alternatives those of the first side stand.
_MAX_PAIRS = 32


def merged(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Return one schema for values that satisfy both; where the two cannot be joined, `first` stands."""
    result = dict(first)
    for keyword, value in second.items():
        if keyword not in result:
            result[keyword] = value
        elif keyword in _JOINS:
            result[keyword] = _JOINS[keyword](result[keyword], value)
    return result


def are_too_many(first: dict[str, Any], second: dict[str, Any], keyword: str) -> bool:
    """Tell whether the alternatives of two schemas have more pairs than can be joined."""
    sides = branches_of(first, keyword), branches_of(second, keyword)
    return len(sides[0]) * len(sides[1]) > _MAX_PAIRS and all(any(map(says_something, side)) for side in sides)


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
    if len(first) * len(second) > _MAX_PAIRS:
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
