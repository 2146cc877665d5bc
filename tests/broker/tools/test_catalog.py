from __future__ import annotations

import pytest

from broker.errors import UnknownToolError
from broker.tools.catalog import Catalog
from codegen import ToolAnnotations, ToolSpec


def spec(server: str, name: str, description: str = "", title: str | None = None) -> ToolSpec:
    return ToolSpec(server, name, title, description, {"type": "object"}, None, ToolAnnotations())


@pytest.fixture
def catalog():
    catalog = Catalog(["git", "my-files", "hub"])
    catalog.replace("git", [spec("git", "git_log", "Shows the commit history"), spec("git", "git_status")])
    catalog.replace("my-files", [spec("my-files", "read-file", "Reads a file"), spec("my-files", "class")])
    catalog.replace("hub", [spec("hub", "searchIssues", "Finds issues"), spec("hub", "git_log")])
    return catalog


def test_a_tool_is_found_by_both_of_its_names(catalog):
    entry = catalog.lookup("my-files.read-file")
    assert (entry.python_name, entry.qualified_name) == ("my_files.read_file", "my-files.read-file")
    assert catalog.lookup("my_files.read_file") is entry


def test_tools_of_two_servers_may_share_a_name(catalog):
    assert catalog.lookup("git.git_log").spec.server == "git"
    assert catalog.lookup("hub.git_log").spec.server == "hub"


def test_a_server_cannot_take_the_name_of_a_tool_of_another(catalog):
    catalog.replace("hub", [spec("hub", "x.git.git_log"), spec("hub", "git.git_log")])
    assert catalog.lookup("git.git_log").spec.server == "git"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("git.git_lgo", "There is no tool 'git.git_lgo'. Did you mean git.git_log or git.git_status"),
        ("git_status", "There is no tool 'git_status'. Did you mean git.git_status"),
        ("zzz.qqq", "There is no tool 'zzz.qqq'."),
    ],
)
def test_an_unknown_name_suggests_the_nearest(catalog, name, message):
    with pytest.raises(UnknownToolError) as caught:
        catalog.lookup(name)
    assert str(caught.value).startswith(message)


def test_a_new_listing_replaces_the_tools_of_its_server_only(catalog):
    catalog.replace("git", [spec("git", "git_blame")])
    assert [entry.qualified_name for entry in catalog] == [
        "git.git_blame",
        "hub.git_log",
        "hub.searchIssues",
        "my-files.class",
        "my-files.read-file",
    ]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("history", "git.git_log"),
        ("read file", "my-files.read-file"),
        ("issues", "hub.searchIssues"),
        ("READ", "my-files.read-file"),
    ],
)
def test_a_search_finds_words_in_names_and_descriptions(catalog, query, first):
    assert catalog.search(query)[0].qualified_name == first


def test_a_search_for_nothing_finds_nothing(catalog):
    assert catalog.search("") == ()
    assert catalog.search("weather") == ()
