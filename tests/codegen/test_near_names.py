"""The name that was probably meant, among few and among very many.

Time is not asserted: without its bounds each of the costly ones takes minutes.
"""

from __future__ import annotations

import itertools

import pytest

from codegen import check
from codegen.near_names import near_name
from tests.codegen.world import stubs

ALIKE = ["ab" * 22 + "".join(tail) for tail in itertools.product("ab", repeat=14)][:10_000]
"""Names that have all their pairs of characters in common, so that nothing but a whole comparison tells them apart."""


def misspelt(name: str) -> str:
    return name.translate(str.maketrans("ab", "ba"))


@pytest.mark.parametrize(
    ("name", "names", "near"),
    [
        ("isues", ["issues", "issue_list", "number"], "issues"),
        ("nm", ["name", "total"], "name"),
        ("a", ["b", "c"], None),
        ("get_issue", [], None),
        ("listIssues", ["list_issues", *(f"get_{n}" for n in range(5_000))], "list_issues"),
        ("read_fiel", [*(f"write_file_{n}" for n in range(5_000)), "read_file"], "read_file"),
    ],
)
def test_the_nearest_of_the_names_is_found(name: str, names: list[str], near: str | None) -> None:
    assert near_name(name, names) == near


def test_names_made_to_be_alike_are_compared_soon() -> None:
    assert all(near_name(misspelt(name), ALIKE) in ALIKE for name in ALIKE[:40])


def test_very_long_names_are_compared_soon() -> None:
    names = [name * 2_000 for name in ALIKE[:200]]
    assert near_name(misspelt(names[0]), names) in names


def test_a_script_that_misspells_many_tools_of_many_is_told_soon() -> None:
    script = "from tools import hub\n" + "".join(f"await hub.{misspelt(name)}()\n" for name in ALIKE[:20])
    found = check(script, stubs(), listed={"hub": ALIKE})
    assert len(found) == 20
    assert all("did you mean `" in one.hint for one in found)


def test_a_script_of_names_that_are_alike_is_told_soon() -> None:
    known = "".join(f"{name} = 1\n" for name in ALIKE[:1_200])
    missing = "".join(f"print({misspelt(name)})\n" for name in ALIKE[:20])
    found = check(f"from tools import hub\n{known}{missing}", stubs())
    assert [one.code for one in found] == ["unresolved-reference"] * 20
