"""`unevaluatedProperties` and `unevaluatedItems`: what no part of a schema speaks of, found without its patterns."""

from __future__ import annotations

import pytest

from broker.calls.json_schema import first_fault

PROPERTIES = "has properties that its schema does not evaluate: "
ITEMS = "has items that its schema does not evaluate: "
NAMED = {"properties": {"a": {"type": "integer"}}}
IN_2019 = {"$schema": "https://json-schema.org/draft/2019-09/schema"}

CASES = {
    "a name": ({"a": 1}, NAMED, None),
    "no name": ({"a": 1, "b": 2}, NAMED, f"{PROPERTIES}'b'"),
    "a name behind a reference": ({"a": 1, "b": 2}, {"$ref": "#/$defs/n", "$defs": {"n": NAMED}}, f"{PROPERTIES}'b'"),
    "an alternative that fits": ({"a": 1}, {"anyOf": [NAMED, {"properties": {"b": {}}}]}, None),
    "an alternative that does not": (
        {"a": "x", "b": 1},
        {"anyOf": [NAMED, {"properties": {"b": {}}}]},
        f"{PROPERTIES}'a'",
    ),
    "a condition": ({"a": 1, "b": 2}, {"if": NAMED, "then": {"properties": {"b": {}}}}, None),
    "another condition": (
        {"a": 1, "b": 2},
        {"if": {"required": ["c"]}, "then": NAMED, "else": {"properties": {"b": {}}}},
        f"{PROPERTIES}'a'",
    ),
    "a dependency": ({"a": 1, "b": 2}, {**NAMED, "dependentSchemas": {"a": {"properties": {"b": {}}}}}, None),
    "additional ones": ({"a": 1, "b": 2}, {"allOf": [{"additionalProperties": {"type": "integer"}}]}, None),
    "many": (dict.fromkeys("abcdefghijklmn", 1), {}, f"{PROPERTIES}{', '.join(map(repr, 'abcdefghij'))} and 4 more"),
    "a first item": ([1], {"prefixItems": [{}]}, None),
    "a second item": ([1, 2], {"prefixItems": [{}]}, f"{ITEMS}[1]"),
    "all items": ([1, 2], {"allOf": [{"items": {}}]}, None),
    "an item that is contained": ([1, "x"], {"contains": {"type": "integer"}}, f"{ITEMS}[1]"),
    "a first item in 2019": ([1, 2], {**IN_2019, "items": [{}]}, f"{ITEMS}[1]"),
    "a reference to the whole in 2019": ({"b": 1}, {**IN_2019, "anyOf": [{"$recursiveRef": "#"}, NAMED]}, None),
    "a pattern beside it": ({"a": 1, "b": 2}, {**NAMED, "patternProperties": {"^b$": {}}}, None),
    "an expression without end": (
        {"a" * 60 + "!": 1},
        {"allOf": [{"patternProperties": {"^(a+)+$": {}}}]},
        None,
    ),
}


@pytest.mark.parametrize(("value", "schema", "fault"), CASES.values(), ids=CASES)
def test_what_no_part_of_a_schema_speaks_of_is_named(value, schema, fault):
    assert first_fault(value, {"unevaluatedProperties": False, "unevaluatedItems": False, **schema}) == fault


WITHIN_THEMSELVES = {
    "properties": {"unevaluatedProperties": {"$ref": "#"}},
    "items": {"unevaluatedItems": {"$ref": "#"}},
    "an alternative": {"unevaluatedProperties": False, "anyOf": [{"$ref": "#"}]},
    "a condition": {"unevaluatedItems": False, "if": {"$ref": "#"}},
    "a dependency": {"unevaluatedProperties": False, "dependentSchemas": {"a": {"$ref": "#"}}},
    "a reference": {"unevaluatedProperties": False, "$defs": {"n": {"$ref": "#/$defs/n"}}, "$ref": "#/$defs/n"},
}


@pytest.mark.parametrize("schema", WITHIN_THEMSELVES.values(), ids=WITHIN_THEMSELVES)
def test_a_schema_within_itself_ends_without_a_word_of_a_library(schema, capfd):
    def deeper(calls: int) -> str | None:
        return deeper(calls - 1) if calls else first_fault({"a": [1], "b": {"a": [[1]]}}, schema)

    assert {deeper(calls) for calls in range(0, 400, 7)} == {None}
    assert capfd.readouterr().err == ""
