"""Text that a script or a server wrote can be read, and does nothing."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox import inert_text, inert_value
from sandbox.inert import is_inert_json

ANY_TEXT = st.text(st.characters(exclude_categories=[]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("over\rwritten", "over\\x0dwritten"),
        ("line\r\nline", "line\nline"),
        ("a\tb\nc", "a\tb\nc"),
        ("\x00\x07\x7f\x9b", "\\x00\\x07\\x7f\\x9b"),
        ("\u202eevil", "\\u202eevil"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("\u206a\ufff9\u180e", "\\u206a\\ufff9\\u180e"),
        ("a\ufe0f\ufe0e\ufe00", "a\ufe0f\\ufe0e\\ufe00"),
        ("a\U000e0141\U000e0142", "a\\U000e0141\\U000e0142"),
        ("\u845b\U000e0101\U000e0102", "\u845b\U000e0101\\U000e0102"),
        ("Zürich 中文 🎉 ❤\ufe0f \u845b\U000e0101", "Zürich 中文 🎉 ❤\ufe0f \u845b\U000e0101"),
    ],
)
def test_what_would_act_is_shown_as_its_escape(text, shown):
    assert inert_text(text) == shown


@given(ANY_TEXT)
def test_inert_text_holds_nothing_that_acts_and_can_be_encoded(text):
    shown = inert_text(text)
    shown.encode()
    assert not [c for c in shown if unicodedata.category(c) == "Cc" and c not in "\t\n"]
    assert inert_text(shown) == shown


@given(JSON)
def test_inert_values_keep_their_shape(value):
    before = json.loads(json.dumps(value))
    shown = inert_value(value)
    assert inert_value(shown) == shown
    json.dumps(shown, ensure_ascii=False).encode()
    assert _shape(shown) == _shape(before)


def test_keys_are_made_inert_in_their_order():
    assert list(inert_value({"a": 1, "\x1b": 2, "c": {"\x07": ["\x00"]}}).items()) == [
        ("a", 1),
        ("\\x1b", 2),
        ("c", {"\\x07": ["\\x00"]}),
    ]


def _shape(value):
    if isinstance(value, str):
        return str
    if isinstance(value, list):
        return [_shape(item) for item in value]
    if isinstance(value, dict):
        return {inert_text(key): _shape(item) for key, item in value.items()}
    return value


@given(JSON, st.booleans())
def test_json_that_looks_inert_holds_nothing_that_acts(value, is_ascii):
    text = json.dumps(value, ensure_ascii=is_ascii)
    if is_inert_json(text):
        assert inert_value(json.loads(text)) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "is_inert"),
    [
        ('["caf\u00e9", "a\\nb", {"k": "\\"\\\\"}]', True),
        ('["\x7f"]', False),
        ('["\u202e"]', False),
        (r'["\u001b"]', False),
        (r'["\r"]', False),
        ('["a\ufe0f"]', True),
        ('["\U000e0141"]', False),
    ],
)
def test_what_a_look_at_json_shows(text, is_inert):
    assert is_inert_json(text) == is_inert
