from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from typing import TYPE_CHECKING

import pytest

from broker.calls.check_work import STEPS
from broker.calls.json_schema import faults, first_fault

if TYPE_CHECKING:
    from types import FrameType

OBJECT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

FORMS = {
    "oneOf": [
        {"type": "object", "properties": {"t": {"const": "c"}, "x": {"type": "string"}}, "required": ["t", "x"]},
        {"type": "object", "properties": {"t": {"const": "d"}, "n": {"type": "integer"}}, "required": ["t", "n"]},
    ]
}

DIALECTS = ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"]

FAULTS = {
    "fits": ({"n": 1}, OBJECT, None),
    "missing": ({}, OBJECT, "'n' is a required property"),
    "wrong type": ({"n": "x"}, OBJECT, "n: 'x' is not of type 'integer'"),
    "in a list": (
        {"a": [1, "x"]},
        {"properties": {"a": {"items": {"type": "integer"}}}},
        "a[1]: 'x' is not of type 'integer'",
    ),
    "unknown key": (
        {"m": 1},
        {"properties": {}, "additionalProperties": False},
        "Additional properties are not allowed ('m' was unexpected)",
    ),
    "patterns are not looked at": (
        {"m": 1},
        {"patternProperties": {"^m": {}}, "additionalProperties": False},
        None,
    ),
    "an expression without end": ("a" * 40 + "!", {"pattern": "^(a+)+$"}, None),
    **{
        f"an expression without end in a part with the dialect {dialect}": (
            {"a": "a" * 40 + "!"},
            {"properties": {"a": {"$schema": dialect, "pattern": "^(a+)+$"}}},
            None,
        )
        for dialect in DIALECTS
    },
    "a part with a dialect": (
        {"a": [1, "x"]},
        {"properties": {"a": {"$schema": DIALECTS[1], "items": [{}, {"type": "integer"}]}}},
        "a[1]: 'x' is not of type 'integer'",
    ),
    "a reference within": (
        {"n": "x"},
        {"properties": {"n": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}},
        "n: 'x' is not of type 'integer'",
    ),
    "a reference to itself": ({}, {"$ref": "#"}, None),
    "a reference to a file": ({}, {"$ref": "file:///etc/passwd"}, None),
    "a reference to a host": ({}, {"$ref": "http://127.0.0.1:9/schema.json"}, None),
    "a schema that is none": ({}, {"type": 5}, None),
    "a type that is none, after a fault": ("x", {"enum": [1], "type": 7}, "'x' is not one of [1]"),
    "a type that nobody knows, after a fault": ("x", {"enum": [1], "type": "image"}, "'x' is not one of [1]"),
    "a dialect that is none": ({"n": "x"}, {**OBJECT, "$schema": "nonsense"}, "n: 'x' is not of type 'integer'"),
    "not even an object": ({}, 5, None),
    "unique items": ([{"a": 1}, {"a": 1}], {"uniqueItems": True}, "has items that are not unique"),
    "something else than a constant of several parts": ({"a": [2]}, {"const": {"a": [1]}}, "{'a': [1]} was expected"),
    "a constant of several parts": ({"a": [1.0]}, {"const": {"a": [1]}}, None),
    "null where a text is nullable": (None, {"type": "string", "nullable": True}, None),
    "null where a choice is nullable": (None, {"enum": ["a"], "nullable": True}, None),
    "null where a part is nullable": (None, {"allOf": [{"type": "string"}], "nullable": True}, None),
    "null where a reference is nullable": (
        None,
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}, "nullable": True},
        None,
    ),
    "something else where a text is nullable": (1, {"type": "string", "nullable": True}, "1 is not of type 'string'"),
    "null where nothing is nullable": (None, {"nullable": "no", "type": "string"}, "None is not of type 'string'"),
    "a bound that is excluded, as OpenAPI says it": (
        0,
        {"minimum": 0, "exclusiveMinimum": True},
        "0 is less than or equal to the minimum of 0",
    ),
    "less than what is not the bound": (0.5, {"minimum": 0, "exclusiveMinimum": True}, None),
    "a bound that is not excluded": (1, {"maximum": 1, "exclusiveMaximum": False}, None),
    "a bound that is not there": (1, {"exclusiveMaximum": True}, None),
    "a long value": (
        "x" * 5_000,
        {"type": "integer"},
        f"'{'x' * 148}…' is not of type 'integer'",
    ),
    "a long list": ([0] * 500, {"maxItems": 3}, f"[{'0, ' * 49}0…] is too long (maxItems: 3)"),
    "too few": ({}, {"minProperties": 2}, "{} does not have enough properties (minProperties: 2)"),
    "more than a bound that nobody reads": ("", {"minLength": 10**5_000}, "'' is too short"),
    "the form that its tag tells, without a key": ({"t": "d"}, FORMS, "'n' is a required property"),
    "the form that its tag tells, with a fault": ({"t": "d", "n": "x"}, FORMS, "n: 'x' is not of type 'integer'"),
    "a tag that no form has": ({"t": "z"}, FORMS, "t: 'c' or 'd' was expected"),
    "no tag": ({"n": 1}, FORMS, "'t' is a required property"),
    "no form at all": ([], FORMS, "[] is not of type 'object'"),
    "a form by a reference": (
        {"p": {"t": "d"}},
        {"properties": {"p": {"anyOf": [{"$ref": "#/$defs/f"}, {"type": "null"}]}}, "$defs": {"f": FORMS}},
        "p: 'n' is a required property",
    ),
    "none of several types": (
        5,
        {"anyOf": [{"type": "string"}, {"type": "array"}, {"type": "null"}]},
        "5 is not of type 'string', 'array'",
    ),
    "of the type of one alternative": (
        [5],
        {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        "[0]: 5 is not of type 'string'",
    ),
    "two alternatives, neither meant more": (
        {},
        {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        "{} is not valid under any of the given schemas",
    ),
    "two of one": (
        1,
        {"oneOf": [{"type": "integer"}, {"minimum": 0}]},
        "1 is valid under each of {'minimum': 0}, {'type': 'integer'}",
    ),
    "draft 7": (
        [1, "x"],
        {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{}, {"type": "integer"}]},
        "[1]: 'x' is not of type 'integer'",
    ),
}


@pytest.mark.parametrize(("value", "schema", "fault"), FAULTS.values(), ids=FAULTS.keys())
def test_the_first_fault_is_named(value, schema, fault):
    assert first_fault(value, schema) == fault


def test_a_schema_that_multiplies_its_own_work_is_given_up():
    schema: dict[str, object] = {"not": {}}
    for _ in range(40):
        schema = {"anyOf": [schema, schema]}
    assert first_fault(1, schema) is None


def test_many_items_that_must_be_unique_are_checked():
    assert first_fault([{"n": index} for index in range(20_000)], {"uniqueItems": True}) is None


NAMES = [f"n{number}" for number in range(100_000)]
LONG_NAME = "n" * 100_000
NUMBERS = [1] * 20_000

LONG_WORK = {
    "names that are required": ({}, {"required": NAMES}),
    "names that another requires": ({"a": 1}, {"dependentRequired": {"a": NAMES}}),
    "keywords that nobody knows": ([1] * 2_000, {"items": dict.fromkeys(NAMES, True)}),
    "a long pointer": ([1] * 2_000, {"$defs": {LONG_NAME: True}, "items": {"$ref": f"#/$defs/{LONG_NAME}"}}),
    "a long constant within": ({"a": NUMBERS}, {"allOf": [{"const": {"a": NUMBERS}}] * 50}),
    "long choices within": ({"a": NUMBERS}, {"allOf": [{"enum": [{"a": NUMBERS}]}] * 50}),
    "many short items that must be unique": ([[n] for n in range(20_000)], {"allOf": [{"uniqueItems": True}] * 5}),
    "numbers of many digits": ([10**4_000] * 1_000, {"items": {"minimum": 1}}),
    "alternatives that nothing evaluates": (
        [{"a": 1}] * 2_000,
        {"items": {"anyOf": [{"unevaluatedProperties": False, "allOf": [True] * 50_000}, True]}},
    ),
}


@pytest.mark.parametrize(("value", "schema"), LONG_WORK.values(), ids=LONG_WORK)
def test_work_that_a_schema_makes_long_is_given_up(value, schema):
    said = faults(value, {**schema, "minProperties": 0}, most=1, unchecked="given up")
    more = faults(value, {**schema, "minProperties": 0}, most=2)
    assert said == ["given up"] or int(more[-1].split()[1]) < STEPS / 3


def test_the_text_of_a_fault_is_bounded_and_inert():
    fault = first_fault({"\x1b[31m" + "k" * 10_000: 1}, {"additionalProperties": {"type": "string"}})
    assert fault is not None
    assert len(fault) < 500
    assert "\x1b" not in fault


def test_faults_that_quote_a_large_value_many_times_are_not_all_looked_for():
    said = []

    class Large(dict[str, int]):
        def __repr__(self) -> str:
            said.append(1)
            return "{" + "x" * 1_000_000 + "}"

    assert first_fault(Large(), {"allOf": [{"type": "string"}] * 1_000}) is not None
    assert len(said) < 100


def test_faults_deep_in_a_schema_that_refers_to_itself_are_not_all_handed_up():
    keys = [f"a{number}" for number in range(300)]
    schema = {
        "properties": {key: {"type": "string"} for key in keys},
        "dependentSchemas": {key: {"$ref": "#"} for key in keys},
    }
    resumed = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal resumed
        resumed += event == "call" and frame.f_code.co_name == "counted"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        fault = first_fault(dict.fromkeys(keys, 1), schema)
    finally:
        sys.setprofile(before)
    assert fault is not None
    assert "1 is not of type 'string'" in fault
    assert resumed < 2 * STEPS


WITHIN_THEMSELVES = {
    "a reference": {"$ref": "#"},
    "a dynamic reference": {"$dynamicRef": "#a", "$dynamicAnchor": "a"},
    "not": {"not": {"$ref": "#"}},
    "a condition": {"if": {"$ref": "#"}},
    "a dependent schema": {"propertyNames": {"not": {"const": "z"}}, "dependentSchemas": {"a": {"$ref": "#"}}},
    "what is not evaluated": {"$ref": "#", "unevaluatedProperties": False},
    "one of what is not evaluated": {"unevaluatedProperties": False, "anyOf": [{"$ref": "#"}]},
}


@pytest.mark.parametrize("schema", WITHIN_THEMSELVES.values(), ids=WITHIN_THEMSELVES)
def test_a_schema_within_itself_ends_quietly_wherever_the_stack_ends(schema):
    def deeper(calls: int) -> str | None:
        return deeper(calls - 1) if calls else first_fault({"a": 1}, schema)

    assert {deeper(calls) for calls in range(0, 500, 7)} == {None}


def test_a_fault_as_deep_as_values_may_be_is_found():
    schema = {"properties": {"child": {"$ref": "#"}, "n": {"type": "integer"}}}
    value: dict[str, object] = {"n": "x"}
    for _ in range(55):
        value = {"child": value}
    fault = first_fault(value, schema)
    assert fault is not None
    assert fault.endswith("child…: 'x' is not of type 'integer'")


def test_a_schema_that_is_used_once_is_not_kept():
    class Schema(dict[str, str]):
        pass

    schema = Schema(type="object")
    kept = weakref.ref(schema)
    assert first_fault(1, schema, keep=False) == "1 is not of type 'object'"
    del schema
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize(("value", "is_loaded"), [(1, False), ("x", True)])
def test_the_validator_is_loaded_for_the_first_value_that_does_not_plainly_fit(value, is_loaded):
    program = (
        "import sys\n"
        "from broker.calls.json_schema import faults, first_fault\n"
        f"first_fault({value!r}, {{'type': 'integer'}})\n"
        "print('jsonschema' in sys.modules)\n"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == f"{is_loaded}\n"  # noqa: S603  # ours
