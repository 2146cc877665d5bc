from __future__ import annotations

import keyword

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen import assign_identifiers
from codegen.identifiers import assign_parameters

NAMES = st.lists(st.text(max_size=80), max_size=12)


@settings(deadline=None)
@given(NAMES)
def test_identifiers_are_legal_and_distinct(names: list[str]) -> None:
    for assigned in (assign_identifiers(names), assign_parameters(names)):
        assert set(assigned) == set(names)
        assert len(set(assigned.values())) == len(assigned)
        for name in assigned.values():
            assert name.isidentifier()
            assert not keyword.iskeyword(name)
            assert not name.startswith("__")


@settings(deadline=None)
@given(NAMES)
def test_order_does_not_change_identifiers(names: list[str]) -> None:
    assert assign_identifiers(names) == assign_identifiers(sorted(names, reverse=True))


@settings(deadline=None)
@given(NAMES, NAMES)
def test_a_name_that_collides_with_nothing_keeps_its_identifier(names: list[str], others: list[str]) -> None:
    alone, together = assign_identifiers(names), assign_identifiers([*names, *others])
    added = {assign_identifiers([other])[other] for other in others if other not in names}
    for name in names:
        if assign_identifiers([name])[name] not in added:
            assert together[name] == alone[name]


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("git_log", "git_log"),
        ("get-weather", "get_weather"),
        ("script.rename", "script_rename"),
        ("from", "from_"),
        ("class", "class_"),
        ("list", "list_"),
        ("2fa", "_2fa"),
        ("Größe", "Gro_e"),
        ("__class__", "class_"),
        ("查询", "查询"),
        ("If-Match", "If_Match"),
        ("$filter", "filter"),
        ("a" * 200, "a" * 57 + "_c2a908"),
    ],
)
def test_names_read_like_what_they_stand_for(name: str, identifier: str) -> None:
    assert assign_identifiers([name]) == {name: identifier}


def test_a_cyrillic_letter_is_never_passed_off_as_a_latin_one() -> None:
    lookalike = "\N{CYRILLIC SMALL LETTER IE}cho"
    assigned = assign_identifiers([lookalike, "echo"])
    assert assigned["echo"] == "echo"
    assert assigned[lookalike] == "cho"


def test_the_exact_name_wins_over_the_altered_one() -> None:
    assigned = assign_identifiers(["read-file", "read_file", "read.file"])
    assert assigned["read_file"] == "read_file"
    assert assigned["read-file"].startswith("read_file_")
    assert assigned["read.file"].startswith("read_file_")


def test_builtin_type_names_are_good_parameter_names() -> None:
    assert assign_parameters(["list", "type", "id", "self", "from"]) == {
        "list": "list",
        "type": "type",
        "id": "id",
        "self": "self_",
        "from": "from_",
    }
