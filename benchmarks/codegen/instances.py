"""Random JSON values that a schema allows: drawn by its keywords, then held to it by `jsonschema`."""

from __future__ import annotations

from random import Random
from typing import Any

import jsonschema

_TEXTS = (
    "",
    "a",
    "Ada Lovelace",
    "https://example.com/x",
    "2026-01-02",
    "2026-01-02T03:04:05Z",
    "a@b.example",
    "12345",
)
_MORE_TEXTS = (
    "A" * 34,
    "0123456789abcdef" * 2,
    "0b54c2e8-2f0e-4b3f-9a38-1f6a1f3d6c11",
    "10:20",
    "+15551234567",
    "ünï 日本 😀",
)
_ANYTHING: tuple[Any, ...] = (None, True, 0, -3, 1.5, "text", [], [1, "a"], {}, {"k": [None]})
_DEPTH = 6


class Instances:
    """Draws values of one schema document."""

    def __init__(self, schema: Any, seed: int) -> None:
        """Draw with a random source of its own, so that a run can be repeated."""
        self._document = schema
        self._random = Random(seed)  # noqa: S311  # nothing secret
        self._validator = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)(schema)

    def draw(self, wanted: int) -> list[Any]:
        """Return up to `wanted` values that the schema allows."""
        found: list[Any] = []
        for _ in range(wanted * 4):
            value = _plain(self._value(self._document, 0))
            if self._validator.is_valid(value):
                found.append(value)
            if len(found) == wanted:
                break
        return found

    def _value(self, schema: Any, depth: int) -> Any:
        if not isinstance(schema, dict):
            return self._random.choice(_ANYTHING)
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return self._value(self._target(reference), depth + 1) if depth < _DEPTH * 3 else None
        for keyword in ("const", "enum"):
            if keyword in schema:
                return schema["const"] if keyword == "const" else self._random.choice(schema["enum"])
        for keyword in ("anyOf", "oneOf"):
            if schema.get(keyword):
                rest = {key: value for key, value in schema.items() if key != keyword}
                return self._value(_merged(rest, self._random.choice(schema[keyword])), depth + 1)
        for part in schema.get("allOf", ()):
            resolved = self._target(part["$ref"]) if isinstance(part, dict) and "$ref" in part else part
            schema = _merged({key: value for key, value in schema.items() if key != "allOf"}, resolved)
        return self._of_type(schema, depth)

    def _of_type(self, schema: dict[str, Any], depth: int) -> Any:  # noqa: PLR0911  # one line for each type
        names = schema.get("type", "object" if "properties" in schema else None)
        name = self._random.choice(names) if isinstance(names, list) else names
        match name:
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, depth)
            case "string":
                return self._text(schema)
            case "integer":
                return int(self._number(schema))
            case "number":
                return self._random.choice((self._number(schema), int(self._number(schema))))
            case "boolean":
                return self._random.choice((True, False))
            case "null":
                return None
            case _:
                return self._random.choice(_ANYTHING)

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        required = schema.get("required", ())
        chance = 0.6 if depth < _DEPTH else 0.0
        return {
            key: self._value(subschema, depth + 1)
            for key, subschema in schema.get("properties", {}).items()
            if key in required or self._random.random() < chance
        } | self._others(schema, depth)

    def _others(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        additional = schema.get("additionalProperties", False)
        if additional is False or depth >= _DEPTH:
            return {}
        return {f"other {n}": self._value(additional, depth + 1) for n in range(self._random.randrange(3))}

    def _array(self, schema: dict[str, Any], depth: int) -> list[Any]:
        items = schema.get("items", True)
        places = schema.get("prefixItems") or (items if isinstance(items, list) else [])
        values = [self._value(place, depth + 1) for place in places]
        low = schema.get("minItems", 0)
        count = self._random.randint(low, max(low, min(schema.get("maxItems", low + 3), low + 3)))
        rest = items if not isinstance(items, list) else True
        more = count - len(values) if rest is not False and depth < _DEPTH else low - len(values)
        return values + [self._value(rest, depth + 1) for _ in range(max(0, more))]

    def _text(self, schema: dict[str, Any]) -> str:
        low, high = schema.get("minLength", 0), schema.get("maxLength", 10_000)
        text = self._random.choice(_TEXTS + _MORE_TEXTS)
        return (text if len(text) >= low else text + "x" * (low - len(text)))[:high]

    def _number(self, schema: dict[str, Any]) -> float:
        low = schema.get("minimum", schema.get("exclusiveMinimum", -100))
        high = schema.get("maximum", schema.get("exclusiveMaximum", max(low, 0) + 100))
        return self._random.choice((self._random.uniform(low, high), float(low), (low + high) // 2))

    def _target(self, reference: str) -> Any:
        value = self._document
        for step in reference.removeprefix("#").split("/")[1:]:
            value = value[step.replace("~1", "/").replace("~0", "~")]
        return value


def _plain(value: Any) -> Any:
    """Write whole numbers without a fraction: JSON Schema counts `0.0` as an integer, Python's types do not."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _merged(first: dict[str, Any], second: Any) -> dict[str, Any]:
    if not isinstance(second, dict):
        return first
    whole = {**first, **second}
    whole["properties"] = {**first.get("properties", {}), **second.get("properties", {})}
    whole["required"] = [*first.get("required", ()), *second.get("required", ())]
    if not whole["properties"]:
        del whole["properties"]
    return whole
