"""What the host tells a guest is JSON within the limits, whatever a call was answered with."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox import Failed, Limits, Returned
from sandbox.host_messages import encode_completion, encode_resume, encode_start
from sandbox.terms import BEFORE_ANY_RUN

LIMITS = Limits()
TEXT = st.text(st.characters(exclude_categories=[]), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)


def test_an_answer_is_written_with_its_call():
    assert json.loads(encode_completion(4, Returned({"a": [1, None]}), LIMITS)) == {"id": 4, "value": {"a": [1, None]}}


def test_a_failure_is_written_with_kind_message_and_details():
    text = encode_completion(4, Failed("ToolError", "no", {"server": "s"}), LIMITS)
    assert json.loads(text) == {"id": 4, "error": {"kind": "ToolError", "message": "no", "details": {"server": "s"}}}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "the answer cannot be written as JSON"),
        (object(), "the answer cannot be written as JSON"),
        ("x" * 99, "the answer has 101 bytes as JSON, and 100 are allowed: ask for less"),
        ([[[[[]]]]], "the answer is nested deeper than 4 levels"),
    ],
)
def test_an_answer_that_does_not_fit_fails_its_call(value, message):
    body = json.loads(encode_completion(9, Returned(value), Limits(completion_bytes=100, depth=4)))
    assert body == {"id": 9, "error": {"kind": "ToolResultError", "message": message, "details": {}}}


def test_an_answer_that_contains_itself_fails_its_call():
    value: list[Any] = []
    value.append(value)
    assert json.loads(encode_completion(1, Returned(value), LIMITS))["error"]["kind"] == "ToolResultError"


@given(JSON)
def test_what_is_sent_to_the_guest_is_ascii_json(value):
    text = encode_resume([encode_completion(1, Returned(value), LIMITS)])
    assert text.isascii()
    assert json.loads(text) == [{"id": 1, "value": value}]
    start = encode_start("\ud800", "f.py", {"v": {"doc": value}}, BEFORE_ANY_RUN)
    assert start.isascii()
    _, end = json.JSONDecoder().raw_decode(start)
    assert json.loads(start[end:]) == {"v": {"doc": value}}


@pytest.mark.parametrize(("script", "is_named"), [("git.log()", True), ("from tools import git", True), ("1", False)])
def test_what_a_script_does_not_name_comes_after_its_message(script, is_named):
    git, described = {"doc": "", "functions": {}}, {"doc": "", "functions": {}, "unimported": True}
    start = encode_start(script, "f.py", {"git": git, "\u212a": described}, BEFORE_ANY_RUN)
    message, end = json.JSONDecoder().raw_decode(start)
    named = {"git": git} if is_named else {}
    assert message["manifest"] == named | {"\u212a": described}
    assert start[end:] == ("" if is_named else '{"git":{"doc":"","functions":{}}}')
