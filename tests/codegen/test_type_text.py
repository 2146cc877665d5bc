"""Types as the checker prints them: which of them no value can have both of."""

from __future__ import annotations

import pytest

from codegen.checking.type_text import certainly_differ, split_outside_brackets

OBJECTS = frozenset({"Issue"})


@pytest.mark.parametrize(
    ("found", "expected", "differ"),
    [
        ("int", "str", True),
        ("int", "str | Unknown", False),
        ("Unknown", "str", False),
        ("bool", "int", False),
        ("float", "int", False),
        ("float", "str", True),
        ("Issue", "str", True),
        ("Issue", "dict[str, Any]", False),
        ("Other", "str", False),
        ("CoroutineType[Any, Any, str]", "str", True),
        ("LiteralString", "int", True),
        ("str | None", "int", False),
        ("Literal['a', 1]", "list[str]", True),
        ("Literal['a']", "Literal['b']", True),
        ("Literal['a']", "Literal['a', 'b']", False),
        ("Literal['a']", "str", False),
        ("Literal['a']", "Literal['omitted', 'b']", True),
        ("Literal['a', 'b']", "Literal['a'] | None", False),
        ("Literal['b'] | None", "Literal['a'] | None", False),
        ("Literal[Color.RED, 1]", "str", False),
        ("Literal[b'a']", "int", False),
        ("list[int]", "list[str]", True),
        ("list[int]", "list[float]", False),
        ("list[Unknown]", "list[str]", False),
        ("tuple[int, ...]", "list[str]", True),
        ("tuple[int, str]", "list[str]", False),
        ("list", "list[str]", False),
    ],
)
def test_two_types_differ_where_no_value_is_of_both(found, expected, differ):
    assert certainly_differ(found, expected, OBJECTS) is differ


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a|b", ["a", "b"]),
        ("list[a | b] | c", ["list[a | b] ", " c"]),
        ("(a | b) | c", ["(a | b) ", " c"]),
        (r"'\'|' | c", [r"'\'|' ", " c"]),
        (r"'\\' | '|'", [r"'\\' ", " '|'"]),
        ('"\'|" | c', ['"\'|" ', " c"]),
    ],
)
def test_a_type_is_parted_outside_of_brackets_and_quotes(text, parts):
    assert list(split_outside_brackets(text, "|")) == parts
