"""Tests on arguments: what they match, and which are refused because they never could."""

from __future__ import annotations

import copy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker.authorization.argument_checks import json_equal
from broker.authorization.predicates import Predicate
from broker.errors import PatternError

HOLDS = {
    "equals": ({"/a": {"equals": "x"}}, [{"a": "x"}], [{"a": "y"}, {"a": 1}, {}, {"b": "x"}]),
    "equals null": ({"/a": {"equals": None}}, [{"a": None}], [{}, {"a": ""}]),
    "a number is no text and no truth": ({"/a": {"equals": 1}}, [{"a": 1}, {"a": 1.0}], [{"a": "1"}, {"a": True}]),
    "a truth is no number": ({"/a": {"equals": True}}, [{"a": True}], [{"a": 1}, {"a": "true"}]),
    "an object, in any order": ({"/a": {"equals": {"x": 1, "y": [True]}}}, [{"a": {"y": [True], "x": 1}}], [{"a": {}}]),
    "in": ({"/a": {"in": ["x", 2]}}, [{"a": "x"}, {"a": 2}], [{"a": "2"}, {}]),
    "glob": ({"/a": {"glob": "[bot] *"}}, [], [{"a": "[bot] x"}]),
    "glob of a set": ({"/a": {"glob": "v[0-9].*"}}, [{"a": "v1.x"}], [{"a": "v10.x"}, {"a": "V1.x"}, {"a": 1}]),
    "glob is the whole text": (
        {"/a": {"glob": "*@ours.example"}},
        [{"a": "x@ours.example"}],
        [{"a": "x@ours.example\n"}],
    ),
    "path": (
        {"/a": {"path": "notes/*.md"}},
        [{"a": "notes/x.md"}],
        [{"a": "notes/../x.md"}, {"a": "notes/x/y.md"}, {"a": "/notes/x.md"}, {"a": "notes/x.md\0"}],
    ),
    "path across folders": (
        {"/a": {"path": "/safe/**"}},
        [{"a": "/safe/x"}, {"a": "/safe/x/y..z"}],
        [{"a": "/safe/../etc/passwd"}, {"a": "/safe/./x"}, {"a": "/safe\\..\\x"}, {"a": "/safer/x"}, {"a": 3}],
    ),
    "a path that climbs after normalisation": (
        {"/a": {"path": "/safe/**"}},
        [{"a": "/safe/caf\u00e9"}, {"a": "/safe/caf\u0065\u0301"}, {"a": "/safe/\u2026"}],
        [
            {"a": "/safe/\uff0e\uff0e/etc"},
            {"a": "/safe/\u2025/etc"},
            {"a": "/safe/..\uff0fetc"},
            {"a": "/safe/..\uff3cetc"},
        ],
    ),
    "a path that climbs after decoding": (
        {"/a": {"path": "/safe/**"}},
        [{"a": "/safe/100%"}, {"a": "/safe/a%20b"}, {"a": "/safe/%c3%a9/x.y"}, {"a": "/safe/..x;y"}],
        [
            {"a": "/safe/%2e%2E/etc"},
            {"a": "/safe/.%2e"},
            {"a": "/safe/..%2fetc"},
            {"a": "/safe/%252e%252e/etc"},
            {"a": "/safe/" + 2 * f"%{8 * '25'}2e"},
            {"a": "/safe/..%5cetc"},
            {"a": "/safe/x%00/etc"},
            {"a": "/safe/.. /etc"},
            {"a": "/safe/..;x=1/etc"},
            {"a": "/safe/%EF%BC%8E%EF%BC%8E/etc"},
        ],
    ),
    "a path that climbs in a URL": (
        {"/a": {"path": "/safe/**"}},
        [{"a": "/safe/a\tb"}, {"a": "/safe/what?"}, {"a": "/safe/..x?y"}, {"a": "/safe/ a.b "}, {"a": "/safe/x#1"}],
        [
            {"a": "/safe/.\t./etc"},
            {"a": "/safe/.\r\n./etc"},
            {"a": "/safe/..\n/etc"},
            {"a": "/safe/.%09./etc"},
            {"a": "/safe/..?/etc"},
            {"a": "/safe/..#x"},
            {"a": "/safe/..%3fx"},
            {"a": "/safe/..\x1f"},
            {"a": "/safe/ ../etc"},
        ],
    ),
    "brackets in a path": ({"/a": {"path": "app/[id]/*"}}, [{"a": "app/[id]/x"}], [{"a": "app/i/x"}]),
    "an address of a file that climbs": (
        {"/a": {"path": "file:///safe/**"}},
        [{"a": "file:///safe/x"}],
        [{"a": "file:///safe/%2e%2e/etc"}, {"a": "file:///etc/x"}, {"a": "FILE:///safe/x"}],
    ),
    "a number that is close": (
        {"/a": {"equals": 2**53}},
        [{"a": 2**53}, {"a": 2.0**53}],
        [{"a": 2**53 + 1}, {"a": "1e3"}],
    ),
    "a text in another form": (
        {"/a": {"equals": "caf\u00e9"}},
        [{"a": "caf\u00e9"}],
        [{"a": "cafe\u0301"}, {"a": "CAF\u00c9"}],
    ),
    "a list in order": ({"/a": {"equals": [1, 2]}}, [{"a": [1, 2]}], [{"a": [2, 1]}, {"a": [1]}, {"a": [True, 2]}]),
    "nothing in a list": ({"/a/0": {"present": False}}, [{"a": []}, {}], [{"a": [None]}]),
    "range": (
        {"/a": {"min": 1, "max": 5}},
        [{"a": 1}, {"a": 5.0}],
        [{"a": 0.9}, {"a": 6}, {"a": "3"}, {"a": True}, {}],
    ),
    "range of one end": ({"/a": {"max": 5}}, [{"a": -(10**30)}], [{"a": 10**5000}, {"a": float("nan")}]),
    "present": ({"/a": {"present": True}}, [{"a": None}], [{}]),
    "absent": ({"/a": {"present": False}}, [{"b": 1}], [{"a": None}]),
    "each": (
        {"/to": {"each": {"glob": "*@ours.example"}}},
        [{"to": ["a@ours.example"]}, {"to": []}, {"to": {"x": "b@ours.example"}}],
        [{"to": ["a@ours.example", "b@evil.example"]}, {"to": "a@ours.example"}, {}],
    ),
    "any": (
        {"/to": {"any": {"glob": "*@evil.example"}}},
        [{"to": ["a@ours.example", "b@evil.example"]}, {"to": {"x": "b@evil.example"}}],
        [{"to": ["a@ours.example"]}, {"to": []}, {"to": "b@evil.example"}, {}],
    ),
    "no other keys": (
        {"": {"keys": ["a", "b"]}, "/b": {"keys": []}},
        [{"b": {}}, {"a": 1, "b": {}}],
        [{"a": 1}, {"b": {"x": 1}}, {"b": {}, "c": None}, {"b": []}],
    ),
    "all arguments together": ({"": {"in": [{"a": 1}, {}]}}, [{"a": 1}, {}], [{"a": 1, "b": 2}, {"a": True}]),
    "inside": (
        {"/a/b/0": {"equals": 1}},
        [{"a": {"b": [1, 2]}}],
        [{"a": {"b": []}}, {"a": [1]}, {"a": {"b": {"0": 2}}}],
    ),
    "no item of any list": (
        {"/a/" + 5000 * "9": {"present": False}, "/a/00": {"present": False}},
        [{"a": [1]}, {}],
        [{"a": {"00": 1}}],
    ),
    "names with slash and tilde": ({"/a~1b": {"equals": 1}, "/c~0d": {"equals": 2}}, [{"a/b": 1, "c~d": 2}], [{}]),
    "all must hold": ({"/a": {"equals": 1}, "/b": {"equals": 2}}, [{"a": 1, "b": 2}], [{"a": 1}, {"a": 1, "b": 3}]),
}


@pytest.mark.parametrize(("tests", "passes", "fails"), HOLDS.values(), ids=HOLDS.keys())
def test_arguments_pass_or_fail(tests, passes, fails):
    holds = Predicate.parse(tests).holds
    assert [holds(arguments) for arguments in passes] == [True] * len(passes)
    assert [holds(arguments) for arguments in fails] == [False] * len(fails)


REFUSED = {
    "nothing is tested": ({"/a": {}}, "/a: is empty, and so tests nothing; remove it or give a test"),
    "empty range": ({"/a": {"min": 2, "max": 1}}, "/a: can never hold: 'min' is greater than 'max'"),
    "two kinds": ({"/a": {"glob": "x*", "max": 1}}, "/a: can never hold: no value is a string and a number"),
    "a value ruled out": (
        {"/a": {"equals": "x", "in": ["y"]}},
        "/a: can never hold: the other tests rule out every value given",
    ),
    "absent and tested": (
        {"/a": {"present": False, "glob": "x"}},
        "/a: can never hold: an absent argument passes no other test",
    ),
    "inside of what is no object": (
        {"/a": {"equals": 1}, "/a/b": {"present": True}},
        "/a/b: can never hold beside the test of /a",
    ),
    "a key that is tested and left out": (
        {"": {"keys": ["a"]}, "/b/c": {"equals": 1}},
        "/b/c: can never hold beside the test of all arguments",
    ),
    "keys of a text": ({"/a": {"keys": [], "glob": "x"}}, "/a: can never hold: no value is a string and an object"),
    "empty set": ({"/a": {"in": []}}, "/a: in: is empty; an empty list matches nothing"),
    "empty glob": ({"/a": {"glob": ""}}, "/a: glob: is empty"),
    "a set of nothing": (
        {"/a": {"glob": "x[z-a]"}},
        "/a: can never hold: 'glob' has a set of no characters, as '[z-a]'",
    ),
    "a test of another program": (
        {"/a": {"regex": "x"}},
        "/a: regex: is unknown; known are any, each, equals, glob, in, keys, max, min, path, present",
    ),
    "unknown test": ({"/a": {"globs": "x"}}, "/a: globs: is unknown; did you mean 'glob'?"),
    "a number in words": ({"/a": {"min": "1"}}, "/a: min: must be a whole number"),
    "no test": ({"/a": "x"}, '/a: must be a test, as {"equals": "value"}'),
    "endless": ({"/a": {"max": float("inf")}}, "/a: max: must be a whole number"),
}


@pytest.mark.parametrize(("tests", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_can_never_hold_is_refused_when_it_is_read(tests, message):
    with pytest.raises(PatternError) as caught:
        Predicate.parse(tests)
    assert str(caught.value) == f"arguments: {message}"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
tests = st.sampled_from([tests for tests, *_ in HOLDS.values()])


@settings(suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy
@given(tests, st.dictionaries(st.sampled_from(["a", "to", "b", "a/b"]), json_values))
def test_every_question_has_an_answer(predicate, arguments):
    assert Predicate.parse(predicate).holds(arguments) in {True, False}


@given(tests)
def test_a_predicate_survives_being_written(predicate):
    parsed = Predicate.parse(predicate)
    assert Predicate.parse(parsed.document()) == parsed
    assert hash(Predicate.parse(dict(reversed(predicate.items())))) == hash(parsed)


@given(json_values)
def test_equality_is_that_of_json(value):
    assert json_equal(value, copy.deepcopy(value))
    assert not json_equal({"x": value}, {"y": value})


def test_a_path_of_many_wildcards_takes_no_time():
    holds = Predicate.parse({"/a": {"path": "**a" * 30}}).holds
    assert not holds({"a": "a" * 20_000 + "b"})
