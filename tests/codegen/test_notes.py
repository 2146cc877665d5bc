"""What is said beside the types: once, at its place, and never as anything but text."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen import Stub, render_module
from codegen.schemas.notes import GOT, PARAMETER, note_of
from codegen.stubs.generate import build_stub
from tests.codegen.definitions import tool_spec
from tests.codegen.test_attacks import NASTY

GOOGLE = """Look something up.

Args:
    place (str): Where to look,
        in words.
    depth (int, optional): How far.
    kind (List[str]): Which kinds.
    ctx: Filled in by the framework.

Returns:
    What is there.
"""
BULLETS = """Look something up.

**Path Parameters:**

- **place**: Where to look, in words.
- `depth`: How far.
"""


def look(description: str, function: str = "look", **notes: Any) -> Stub:
    keys = {"place": {"type": "string"}, "depth": {"type": "integer"}, "kind": {"type": "array"}}
    for key, note in notes.items():
        keys[key]["description"] = note
    schema = {"type": "object", "properties": keys, "required": ["place"]}
    definition = {"name": function, "description": description, "inputSchema": schema}
    return build_stub(tool_spec(definition), namespace="n", function=function)


def test_what_a_docstring_lists_of_arguments_stands_beside_the_parameters() -> None:
    assert look(GOOGLE).source == (
        "async def look(*,\n"
        " place: str, # Where to look, in words\n"
        " depth: int = ..., # How far\n"
        " kind: list[Any] = ..., # (List[str]) Which kinds\n"
        ") -> Any:\n"
        ' """Look something up.\n\n Returns:\n     What is there."""\n'
        " ...\n"
    )


def test_a_list_in_markdown_is_one_too() -> None:
    source = look(BULLETS).source
    assert " place: str, # Where to look, in words\n depth: int = ..., # How far\n" in source
    assert "Path Parameters" not in source


def test_what_the_schema_says_of_a_parameter_is_not_said_twice() -> None:
    source = look(GOOGLE, place="Where to look, in words.", depth="How far at most").source
    assert "place: str, # Where to look, in words\n" in source
    assert "depth: int = ..., # How far at most\n" in source
    assert "place: str, # In Europe; Where to look, in words\n" in look(GOOGLE, place="In Europe").source


@pytest.mark.parametrize(
    "section",
    [
        "Args:\n    place: Where.\n    unknown: No parameter.",
        "Args:\n    place: Where.\n    place: And when.",
        "Args:\n    place: " + "long " * 100,
        "Args:\n\nNothing.",
        "Args: place: Where.",
        "The arguments are place: Where",
    ],
)
def test_a_section_that_is_not_plainly_of_these_parameters_stays(section: str) -> None:
    source = look(f"Look.\n\n{section}\n\nThe end.").source
    assert all(line.strip() in source for line in section.splitlines())


def test_what_is_left_out_leaves_a_mark() -> None:
    inner = {"type": "object", "properties": {"a": {"type": "string", "description": f"First. {'Second ' * 30}."}}}
    definition = {"name": "t", "inputSchema": {"type": "object", "properties": {"o": inner}}, "outputSchema": inner}
    source = build_stub(tool_spec(definition), namespace="n", function="t").source
    assert source.count(" a: str # First. …\n") == 1
    assert "Second" not in source


def test_a_result_is_told_without_the_bounds_of_its_texts() -> None:
    field = {"type": "string", "description": "Airport", "maxLength": 5, "pattern": "^[a-z]$"}
    share = {"type": "number", "minimum": 0, "maximum": 1}
    schema = {"type": "object", "properties": {"code": field, "share": share}}
    given = build_stub(tool_spec({"name": "t", "inputSchema": schema}), namespace="n", function="t").source
    got = build_stub(tool_spec({"name": "t", "outputSchema": schema}), namespace="n", function="t").source
    assert "code: str = ..., # Airport (<= 5 chars, /^[a-z]$/)" in given
    assert "code: str # Airport\n share: float # 0..1\n" in got


def told(key: str, **schema: Any) -> str:
    return note_of(key, {"type": "string", **schema}, PARAMETER)


@pytest.mark.parametrize(
    ("key", "format_"),
    [
        ("updated_since", "date"),
        ("candidate", "date"),
        ("mandateID", "date"),
        ("runtime", "time"),
        ("during", "uri"),
        ("hourly", "uri"),
        ("hyperlinked", "uri"),
        ("range_4", "ipv4"),
    ],
)
def test_a_format_whose_letters_stand_inside_a_word_is_told(key: str, format_: str) -> None:
    assert told(key, format=format_) == format_
    assert told("x", description=f"What is {key}", format=format_) == f"What is {key} ({format_})"


@pytest.mark.parametrize(
    ("key", "format_"),
    [
        ("date", "date"),
        ("date_2", "date"),
        ("startDate", "date"),
        ("UTCDate", "date"),
        ("date1of2", "date"),
        ("imageUrl", "uri"),
        ("image_url", "uri"),
        ("callbackURI", "uri"),
        ("hrefOfPage", "uri"),
        ("permanent-link", "uri"),
        ("sourceIPv4", "ipv4"),
    ],
)
def test_a_format_that_a_word_says_is_not_told(key: str, format_: str) -> None:
    assert told(key, format=format_) == ""
    assert told("x", description=f"What is {key}", format=format_) == f"What is {key}"


def test_a_bound_of_draft_4_that_is_left_out_itself_is_told_as_one() -> None:
    above = {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 9, "exclusiveMaximum": False}
    assert note_of("a", above, PARAMETER) == "<= 9, > 0"


def test_unique_is_told_unless_a_word_says_it() -> None:
    assert told("unique_ids", uniqueItems=True) == ""
    assert told("uniqueness", uniqueItems=True) == "unique"


def test_a_number_is_told_unless_it_stands_in_the_description_as_one() -> None:
    assert told("player1_score", minimum=1) == ">= 1"
    for description in ("Goals of player1", "About 1.5", "At least 10", "Up to 0.1"):
        assert told("goals", description=description, minimum=1) == f"{description} (>= 1)"
    for description in ("At least 1", "From 1. Or so", "1..9", "1.0 or more", "Over 1s"):
        assert told("goals", description=description, minimum=1) == description
    assert told("share", description="From 0.0-1.0", minimum=0, maximum=1) == "From 0.0-1.0"


def test_classes_under_other_names_keep_their_notes_and_keys() -> None:
    def stub(function: str, kind: str) -> Stub:
        field = {"type": kind, "description": "ReadFileResult, as Literal['ReadFileResult']"}
        part = {"type": "object", "properties": {"k": {"type": kind}}}
        nested = {"type": "object", "properties": {"x-y": part, "w": {"enum": ["ReadFileResult"]}}}
        schema = {"type": "object", "properties": {"ReadFileResult": field, "inner": nested}}
        definition = {"name": function, "description": "Gives a ReadFileResult.", "outputSchema": schema}
        return build_stub(tool_spec(definition), namespace="n", function=function)

    module = render_module("n", [stub("readFile", "string"), stub("read_file", "integer")])
    # The second one is under another name; of what it says and of its keys nothing is.
    assert module.count("\n ReadFileResult: int # ReadFileResult, as Literal['ReadFileResult']") == 1
    assert module.count("class ReadFileResult2(TypedDict, total=False):") == 1
    assert '-> ReadFileResult2:\n """Gives a ReadFileResult."""' in module
    assert "ReadFileInner2 = TypedDict('ReadFileInner2', {" in module
    assert "'x-y': 'ReadFileXY2'," in module
    assert module.count("'w': Literal['ReadFileResult'],") == 2


@settings(max_examples=150, deadline=None)
@given(*[st.lists(NASTY | st.text(max_size=5), max_size=6).map("".join)] * 3)
def test_no_text_changes_what_a_stub_declares(description: str, note: str, pattern: str) -> None:
    def declared(description: str, note: str, pattern: str) -> str:
        key = {"type": "string", "description": note, "pattern": pattern, "format": pattern}
        schema = {"type": "object", "description": note, "properties": {"a": key, "b-c": key}}
        inner = {"type": "object", "properties": {"a": key, "o": schema}}
        definition = {"name": "t", "description": description, "inputSchema": inner}
        tree = ast.parse(build_stub(tool_spec(definition), namespace="n", function="t").source)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef | ast.AsyncFunctionDef) and ast.get_docstring(node) is not None:
                node.body = node.body[1:]
        return ast.dump(tree)

    assert declared(description, note, pattern) == declared("Does it.", "", "")


SPEEDS = [
    {"const": "fast", "description": "Skips the sums. They may differ."},
    {"enum": ["safe"], "description": 'Compares all\n"""sums'},
    {"const": "off", "description": "off"},
    {"type": "null"},
]


def test_what_a_schema_says_of_single_values_is_told() -> None:
    told = """('fast': Skips the sums; 'safe': Compares all \"""sums)"""
    assert note_of("a", {"oneOf": SPEEDS, "description": "How"}, PARAMETER) == f"How {told}"
    assert note_of("a", {"anyOf": SPEEDS}, PARAMETER) == told[1:-1]
    assert note_of("a", {"oneOf": SPEEDS, "description": "How"}, GOT) == "How"
    assert note_of("a", {"oneOf": [{"const": "x", "description": 5}, {"description": "y"}]}, PARAMETER) == ""


def test_what_is_said_of_many_values_is_cut() -> None:
    many = [{"const": f"v{number}", "description": f"Does what {number} does"} for number in range(200)]
    assert len(note_of("a", {"oneOf": many}, PARAMETER)) <= PARAMETER.together


@pytest.mark.parametrize("format_", ["int32", "int64", "uint", "uint8", "uint32", "uint64", "float", "double"])
def test_the_size_of_a_number_is_not_told(format_: str) -> None:
    assert note_of("a", {"type": "number", "format": format_}, PARAMETER) == ""
