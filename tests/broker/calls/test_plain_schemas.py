from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from broker.calls.json_schema import faults
from broker.calls.plain_schemas import MAX_ITEMS, PlainSchema

NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.floats(-3, 3), st.text("ab", max_size=3))
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6
)


def _parts(**parts: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=parts)


def _object(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return _parts(
        properties=st.dictionaries(NAMES, inner, max_size=3),
        required=st.lists(NAMES, max_size=2),
        additionalProperties=st.booleans() | inner,
    ).map(lambda parts: {"type": "object", **parts})


def _array(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    bounds = st.integers(0, 2)
    return _parts(items=inner, minItems=bounds, maxItems=bounds).map(lambda parts: {"type": "array", **parts})


TYPES = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
WORDS = st.lists(SCALARS, min_size=1, max_size=3)
LEAVES = st.one_of(
    st.just({}),
    TYPES.map(lambda kind: {"type": kind}),
    st.lists(TYPES, min_size=1, max_size=3).map(lambda kinds: {"type": kinds}),
    st.tuples(TYPES, st.integers(-2, 2), st.integers(-2, 2)).map(
        lambda said: {"type": said[0], "minimum": said[1], "maximum": said[2]}
    ),
    st.tuples(WORDS, SCALARS).map(lambda said: {"type": "string", "enum": said[0], "default": said[1]}),
    SCALARS.map(lambda value: {"type": "string", "const": value}),
    st.tuples(WORDS, SCALARS).map(lambda said: {"type": "string", "enum": said[0], "const": said[1]}),
    st.tuples(st.integers(0, 2), st.integers(0, 2)).map(
        lambda said: {"type": "string", "minLength": said[0], "maxLength": said[1]}
    ),
    st.just({"$ref": "#/$defs/d"}),
    st.just({"$ref": "#"}),
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: (
        _object(inner)
        | _array(inner)
        | st.lists(inner, min_size=1, max_size=3).map(lambda choices: {"anyOf": choices, "title": "t"})
    ),
    max_leaves=6,
)


@given(schema=SCHEMAS, definition=LEAVES, value=VALUES)
def test_a_yes_is_a_yes_of_the_whole_validator_too(schema, definition, value):
    schema = {**schema, "$defs": {"d": definition}}
    plain = PlainSchema.of(schema)
    if plain is not None and plain.fits(value):
        assert not list(Draft202012Validator(schema).iter_errors(value))


@given(schema=SCHEMAS, definition=LEAVES, value=VALUES)
def test_the_whole_check_finds_a_fault_where_jsonschema_does(schema, definition, value):
    schema = {**schema, "$defs": {"d": definition}}
    assume("$ref" not in definition and "'#'" not in repr(schema))
    assert bool(faults(value, schema, most=3)) != Draft202012Validator(schema).is_valid(value)


ORDINARY = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "title": "Path", "minLength": 1, "x-order": 1},
        "count": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        "sort": {"type": "string", "enum": ["up", "down"]},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}},
    },
    "required": ["path"],
    "additionalProperties": False,
    "$defs": {"tag": {"type": ["string", "null"]}},
    "x-fastmcp-wrap-result": True,
}


@pytest.mark.parametrize("value", [{"path": "a"}, {"path": "a", "count": 3, "sort": "up", "tags": ["x", None]}])
def test_arguments_that_fit_an_ordinary_tool_are_settled_here(value):
    plain = PlainSchema.of(ORDINARY)
    assert plain is not None
    assert plain.fits(value)


@pytest.mark.parametrize(
    "value",
    [{}, {"path": ""}, {"path": "a", "n": 1}, {"path": "a", "sort": "x"}, {"path": "a", "count": True}, []],
)
def test_nothing_that_does_not_fit_gets_a_yes(value):
    plain = PlainSchema.of(ORDINARY)
    assert plain is not None
    assert not plain.fits(value)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "not": {}},
        {"type": "object", "patternProperties": {"^a": False}},
        {"properties": {}},
        {"type": "array", "uniqueItems": True},
        {"$ref": "#"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        {"$ref": "https://example.org/schema.json"},
        {"type": "object", "$schema": "http://json-schema.org/draft-04/schema#"},
        {"type": "object", "$schema": 5},
        {"type": "integer", "minimum": "1"},
        {"type": "string", "enum": ["a", "b"], "const": "a"},
        {"type": 5},
        {"anyOf": [{"anyOf": [{"type": "null"}] * 20}] * 20},
        True,
        None,
        5,
    ],
)
def test_what_is_not_known_here_is_not_plain(schema):
    assert PlainSchema.of(schema) is None


def test_a_value_that_would_take_long_gets_no_yes():
    plain = PlainSchema.of({"type": "array", "items": {"type": "array", "items": {"type": "null"}}})
    assert plain is not None
    assert plain.fits([[None] * 10] * 10)
    assert not plain.fits([[None] * 100] * (MAX_ITEMS // 100))
