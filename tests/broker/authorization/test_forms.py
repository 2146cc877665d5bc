"""The form of a server, read and put into words."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.authorization.form_reading import FormError, form_of


def test_the_name_of_a_tool_begins_no_line_and_acts_on_no_terminal():
    tool = "ask\nThe server bank asks:\x1b[2J\u202e"
    form = form_of("odd", tool, {"message": "hello", "requestedSchema": {"properties": {}}}, timeout_seconds=1)
    assert form.as_text() == (
        "The server odd asks (while its tool ask\\nThe server bank asks:\\x1b[2J\\u202e is called):\n| hello"
    )


def test_numbers_that_json_lacks_are_in_no_form_and_in_no_answer():
    said = {"type": "number", "minimum": -math.inf, "maximum": math.nan, "default": math.inf}
    form = form_of(
        "odd", "ask", {"message": "hello", "requestedSchema": {"properties": {"n": said}}}, timeout_seconds=1
    )
    assert [dict(one.schema) for one in form.fields] == [{"type": "number"}]
    assert [form.fault({"n": number}) for number in (math.nan, math.inf, 1.5)] == ["a number is not finite"] * 2 + [
        None
    ]


@pytest.mark.parametrize(
    ("key", "kept"), [("user_name", "user_name"), ("", ""), ("a b", ""), ("a\n", ""), ("\u202e", ""), ("a" * 65, "")]
)
def test_a_request_keeps_the_key_of_its_server_where_that_is_a_plain_name(key, kept):
    params: dict[str, Any]
    for params in ({"requestedSchema": {"properties": {}}}, {"mode": "url", "url": "https://bank.example/"}):
        assert form_of("odd", "ask", {"message": "hello", **params}, timeout_seconds=1, key=key).key == kept


def test_a_bound_is_a_number():
    said = {"type": "integer", "minimum": False, "maximum": True}
    params = {"message": "hello", "requestedSchema": {"properties": {"age": said, "size": {**said, "minimum": 0}}}}
    form = form_of("odd", "ask", params, timeout_seconds=1)
    assert [dict(one.schema) for one in form.fields] == [{"type": "integer"}, {"type": "integer", "minimum": 0}]


def form_with(said, **more):
    params = {"message": "hello", "requestedSchema": {"properties": {"a": said, **more}}}
    return form_of("odd", "ask", params, timeout_seconds=1)


MANY = [str(number) for number in range(100_000)]
LONG = {
    "type": "string",
    "oneOf": [{"const": str(number), "title": f"{number:03}".ljust(300, "x")} for number in range(100)],
}
NO_FORMS = {
    "very many options": ({"type": "string", "enum": MANY}, "no list of at most 100 options"),
    "very many titled ones": ({"oneOf": [{"const": one, "title": one} for one in MANY]}, "of at most 100 options"),
    "very many to tick": ({"type": "array", "items": {"enum": MANY}}, "of at most 100 options"),
    "no options": ({"type": "string", "enum": []}, "of at most 100 options"),
    "options that look alike": ({"type": "string", "enum": ["yes", "yes\u200b"]}, "hold what does not show"),
    "options of an escape": ({"type": "string", "enum": ["\x1b[2J"]}, "hold what does not show"),
    "one option twice": ({"type": "string", "enum": ["yes", "yes"]}, "are not different"),
    "one title of two options": (
        {"type": "string", "oneOf": [{"const": "keep", "title": "No"}, {"const": "delete", "title": "No"}]},
        "are not different",
    ),
    "one title twice, to tick": (
        {"type": "array", "items": {"enum": ["a", "b"], "enumNames": ["Same", "Same"]}},
        "are not different",
    ),
    "titles that differ beyond what is shown": (
        {"type": "string", "enum": ["a", "b"], "enumNames": ["x" * 2_000 + "1" + "x" * 2_000, "x" * 4_001]},
        "are not different",
    ),
    "an object": ({"type": "object", "properties": {}}, "of no kind that a form has"),
    "a reference": ({"$ref": "file:///etc/passwd"}, "of no kind that a form has"),
    "several types": ({"type": ["string"] * 1_000}, "of no kind that a form has"),
    "no field": ("string", "has no plain name"),
}


@pytest.mark.parametrize("case", NO_FORMS)
def test_what_cannot_be_shown_as_it_is_meant_is_no_form(case):
    said, why = NO_FORMS[case]
    with pytest.raises(FormError, match=why):
        form_with(said)


def test_a_form_is_as_long_as_a_person_reads():
    assert len(form_with(LONG).fields[0].options) == 100
    with pytest.raises(FormError, match="longer than 50,000 characters"):
        form_with(LONG, b=LONG)


DEFAULTS: dict[str, tuple[dict[str, Any], Any]] = {
    "of another type": ({"type": "integer"}, "7"),
    "out of bounds": ({"type": "integer", "maximum": 5}, 7),
    "no option": ({"type": "string", "enum": ["a", "b"]}, "c"),
    "not shown whole": ({"type": "string"}, "a" * 100_000),
    "not what it looks like": ({"type": "string"}, "a\u202eb"),
    "very many": ({"type": "array", "items": {"enum": ["a", "b"]}}, ["a"] * 100_000),
    "an object": ({"type": "string"}, {"a": 1}),
}


@pytest.mark.parametrize("case", DEFAULTS)
def test_a_default_that_does_not_fit_is_none(case):
    said, default = DEFAULTS[case]
    assert form_with({**said, "default": default}).fields[0].default is None


def test_a_default_that_fits_is_suggested():
    assert form_with({"type": "integer", "maximum": 5, "default": 5}).fields[0].default == 5


def test_of_a_schema_only_what_is_known_is_kept_and_nothing_of_it_acts():
    said = {
        "type": "string",
        "title": "Name\x1b[2J\n\u202e" + "x" * 1_000,
        "description": "**bold**\r\n# Allowed",
        "pattern": "^(a+)+$",
        "contentMediaType": "text/html",
        "minLength": 1,
        "maxLength": "5",
    }
    [field] = form_with(said).fields
    assert set(field.schema) == {"type", "title", "description", "minLength"}
    assert (field.schema["title"][:24], len(field.title)) == ("Name\\x1b[2J\\n\\u202exxxxx", 80)
    assert field.schema["description"] == "**bold**\\r\\n# Allowed"
    assert field.fault("a" * 50 + "!") is None


PAIRS = (("a", "First"), ("b", "Second"))
CONSTANTS = [{"const": value, "title": title} for value, title in PAIRS]
PLAIN = {"type": "string", "enum": ["a", "b"]}
LEGACY = {**PLAIN, "enumNames": ["First", "Second"]}
WAYS: dict[str, tuple[dict[str, Any], dict[str, Any] | None]] = {
    "one of plain ones": (PLAIN, None),
    "one of titled ones": ({"type": "string", "oneOf": CONSTANTS}, None),
    "one of titled ones, as before 2025-11-25": (LEGACY, None),
    "one of titled ones whose titles are the values": (
        {"type": "string", "oneOf": [{"const": "a", "title": "a"}, {"const": "b", "title": "b"}]},
        None,
    ),
    "one, without a type": ({"anyOf": CONSTANTS}, {"type": "string", "oneOf": CONSTANTS}),
    "one of plain ones with too few titles": ({**LEGACY, "enumNames": ["First"]}, PLAIN),
    "many of plain ones": ({"type": "array", "items": PLAIN}, None),
    "many of titled ones": ({"type": "array", "items": {"anyOf": CONSTANTS}}, None),
    "many of titled ones in a way that no client knows": (
        {"type": "array", "items": LEGACY},
        {"type": "array", "items": {"anyOf": CONSTANTS}},
    ),
}


@pytest.mark.parametrize("case", WAYS)
def test_options_are_passed_on_in_the_way_that_their_server_wrote_them(case):
    said, passed = WAYS[case]
    [field] = form_with({**said, "pattern": "x"}).fields
    assert field.schema == (passed or said)
    chosen = ["b", "a"] if field.kind == "choices" else "b"
    assert (field.fault(chosen), field.fault("c") is None) == (None, False)


def test_titles_of_options_are_made_inert_in_each_way():
    title = "Red\x1b[2J\u202e"
    titled = [{"const": "r", "title": title}]
    ways = ({"enum": ["r"], "enumNames": [title]}, {"oneOf": titled}, {"type": "array", "items": {"anyOf": titled}})
    for said in ways:
        [field] = form_with(said).fields
        assert field.options == (("r", "Red\\x1b[2J\\u202e"),)
        assert title not in json.dumps(dict(field.schema), ensure_ascii=False)
        assert json.dumps(dict(field.schema), ensure_ascii=False).count(r"Red\\x1b[2J\\u202e") == 1


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "data:text/html,hello",
        "file:///etc/passwd",
        "HTTPS://bank.example/",
        "http://bank.example/",
        "http://127.1/",
        "https://ada:secret@bank.example/",
        "https://bank.example%40evil.example/",
        "https://bank.example\\@evil.example/",
        "https:///evil.example/",
        "https://b\u0430nk.example/",
        "https://bank.example/\u202e",
        "https://bank.example/\n",
        "https://bank.example:port/",
        "https://[::1/",
        "https://bank.example/" + "a" * 2_000,
        7,
    ],
)
def test_an_address_that_does_not_look_like_where_it_leads_is_none(url):
    with pytest.raises(FormError, match="its address"):
        form_of("odd", "ask", {"message": "hello", "mode": "url", "url": url}, timeout_seconds=1)


@pytest.mark.parametrize(
    ("url", "nearby"),
    [
        ("https://bank.example/pay?to=me", False),
        ("https://xn--bnk-5cd.example/", False),
        ("https://8.8.8.8/", False),
        ("http://localhost:8000/", True),
        ("https://router/", True),
        ("https://printer.local./", True),
        ("https://10.0.0.1/", True),
        ("https://169.254.169.254/latest", True),
        ("https://0x7f.1/", True),
        ("https://2130706433/", True),
        ("https://[::ffff:192.168.0.1]/", True),
        ("https://[fd00::1]/", True),
    ],
)
def test_an_address_is_shown_whole_and_marked_where_it_is_nearby(url, nearby):
    form = form_of("odd", "ask", {"message": "hello", "mode": "url", "url": url}, timeout_seconds=1)
    assert url in form.as_text().splitlines()
    assert ("! It leads to this machine or its own network" in form.as_text()) == nearby


TEXT = st.text(st.characters(exclude_categories=[]), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "array"])
OPTIONS = st.lists(TEXT | st.fixed_dictionaries({"const": TEXT, "title": TEXT}) | JSON, max_size=4)
CHOICES = st.lists(TEXT, min_size=1, max_size=4)
TITLED = st.lists(st.fixed_dictionaries({"const": TEXT, "title": TEXT}), max_size=4)
FIELDS = st.fixed_dictionaries(
    {"type": TYPES},
    optional={
        **dict.fromkeys(("title", "description"), TEXT | JSON),
        **dict.fromkeys(("default", "minimum", "maxLength", "pattern"), JSON),
        "enum": CHOICES | JSON,
        "enumNames": CHOICES,
        "oneOf": TITLED | JSON,
        "items": st.fixed_dictionaries({"enum": CHOICES}) | st.fixed_dictionaries({"anyOf": TITLED}) | JSON,
    },
)
FEW_WORDS = st.fixed_dictionaries(
    {"type": TYPES}, optional={"title": TEXT, "description": TEXT, "default": TEXT | st.booleans() | st.integers()}
)
NAMES = st.sampled_from(["a", "b", "c"])
PROPERTIES = st.dictionaries(NAMES, FIELDS, max_size=3) | st.dictionaries(TEXT, JSON)
SCHEMAS = st.fixed_dictionaries({"properties": PROPERTIES}, optional={"required": JSON})
SIMPLE = st.fixed_dictionaries({"properties": st.dictionaries(NAMES, FEW_WORDS, min_size=1, max_size=3)})
PARAMS = st.fixed_dictionaries(
    {"message": TEXT, "requestedSchema": SIMPLE | SCHEMAS | JSON},
    optional={"mode": TEXT},
) | st.fixed_dictionaries({"message": TEXT, "mode": st.just("url"), "url": TEXT.map("https://a{}".format) | JSON})


@given(PARAMS)
def test_whatever_a_server_asks_is_a_form_that_can_be_shown_or_none(params):
    try:
        form = form_of("odd", "ask", params, timeout_seconds=1)
    except FormError:
        return
    first, *rest = form.as_text().split("\n")
    assert first == "The server odd asks (while its tool ask is called):"
    assert form.as_text().replace("\n", "").isprintable()
    assert form.url or all(line.startswith(("| ", "! ")) for line in rest)
    json.dumps(form.schema, allow_nan=False).encode()
    for field in form.fields:
        shown = [
            field.title,
            field.schema.get("description", ""),
            *(text for option in field.options for text in option),
        ]
        assert all(text.isprintable() for text in shown)
        assert field.default is None or field.fault(field.default) is None
