"""First letters of names find the tools that say the names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.search import KeywordIndex
from broker.search.acronyms import initials
from tests.broker.search.tools import tool


@pytest.mark.parametrize(
    ("text", "server", "found"),
    [
        ("Azure OpenAI", "", {"AOAI"}),
        ("in a Log Analytics workspace of yours", "", {"LAW"}),
        ("Load Testing", "azure", {"ALT"}),
        ("Managed Lustre FileSystem", "", {"LFS", "MLFS"}),
        ("VM Scale Sets", "", {"VMS", "VMSS"}),
        ("a log analytics workspace", "azure", set()),
        ("Fine", "azure", set()),
        ("", "", set()),
    ],
)
def test_a_name_is_known_by_its_first_letters(text: str, server: str, found: set[str]) -> None:
    assert initials(text, server) == found


TOOLS = [
    tool("azure", "models_list", "List Azure OpenAI models of a resource.", title="List Models"),
    tool("azure", "tables_list", "List tables of a Log Analytics workspace.", title="List Tables"),
    tool("azure", "rules_list", "List rules.", title="List Service Bus Rules"),
    tool("azure", "clauses_list", "List clauses of a law."),
    tool("azure", "lists_api", "List what the API has. Lists of the Apple Press Index."),
    tool("azure", "routes_api", "List what the API has of routes."),
]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("what does aoai have", "models_list"),
        ("list of our ASB", "rules_list"),
        ("clauses of the law", "clauses_list"),
        ("API of routes", "routes_api"),
    ],
)
def test_an_acronym_finds_the_tool_that_spells_it_out(query: str, first: str) -> None:
    index = KeywordIndex()
    index.replace("azure", TOOLS)
    assert index.rank(query)[0].spec.name == first


def test_capitals_stand_for_a_name_only_if_more_tools_say_it_than_say_the_word() -> None:
    tables = [tool("azure", f"table_{n}", "Tables of a Log Analytics workspace.") for n in range(2)]
    index = KeywordIndex()
    index.replace("other", [tool("other", "clauses", "Clauses of a law.")])
    index.replace("azure", tables[:1])
    assert [hit.spec.name for hit in index.rank("LAW")] == ["clauses"]
    index.replace("azure", tables)
    assert {hit.spec.name for hit in index.rank("LAW")} == {"clauses", "table_0", "table_1"}
    assert [hit.spec.name for hit in index.rank("law")] == ["clauses"]


NAMES = st.lists(st.sampled_from(["Open", "AI", "AWS", "Élan", "X", "of", "lists", "-"])).map(" ".join)


@given(st.text() | NAMES, st.text())
def test_the_first_letters_of_any_text_are_few(text: str, server: str) -> None:
    assert all(2 < len(letters) < 7 for letters in initials(text, server))
