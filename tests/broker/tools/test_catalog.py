from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from broker.errors import UnknownToolError
from broker.search import SearchRequest
from broker.tools.catalog import Catalog
from broker.tools.inferred_results import Inferred
from codegen import ToolAnnotations, ToolSpec
from tests.loop_turns import counted_turns


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


def test_a_tool_that_its_server_has_withdrawn_is_known_by_all_its_names_until_it_is_back(catalog):
    [read, other] = [entry.spec for entry in catalog.of_server("my-files")]
    names = ("my-files.read-file", "my_files.read_file", "read-file")
    assert not any(map(catalog.has_withdrawn, names))
    catalog.replace("my-files", [other])
    assert all(map(catalog.has_withdrawn, names))
    with pytest.raises(UnknownToolError, match="There is no tool 'read-file' any more: its server has withdrawn it"):
        catalog.lookup("read-file")
    catalog.replace("my-files", [read])
    assert [catalog.has_withdrawn(name) for name in (*names, "my-files.class")] == [False, False, False, True]


def test_a_server_can_not_have_a_tool_of_another_taken_for_withdrawn(catalog):
    catalog.replace("hub", [spec("hub", "git.git_push")])
    catalog.replace("hub", [])
    assert catalog.has_withdrawn("hub.git.git_push")
    assert not catalog.has_withdrawn("git.git_push")


def test_the_names_of_withdrawn_tools_are_bounded(catalog):
    for number in range(2_000):
        catalog.replace("hub", [spec("hub", f"tool{number}")])
    assert len(catalog._withdrawn) == 3_000
    assert catalog.has_withdrawn("tool1998")


def test_a_bare_name_is_compared_with_bare_names(catalog):
    catalog.replace("hub", [spec("hub", f"of_a_very_long_kind_indeed_{number}") for number in range(3)])
    assert catalog.suggest("clss") == ("my-files.class",)


def test_tools_of_several_servers_that_have_the_nearest_name_are_all_suggested(catalog):
    for server in ("git", "hub"):
        catalog.replace(server, [spec(server, "combine")])
    assert set(catalog.suggest("combin")) == {"git.combine", "hub.combine"}


def test_the_name_of_their_server_does_not_make_names_alike(catalog):
    catalog.replace("hub", [spec("hub", name) for name in ("sec", "is_even", "std", "write_range")])
    assert catalog.suggest("hub.zzz_dev") == ()
    assert catalog.suggest("hub.sdt") == ("hub.std",)
    assert catalog.suggest("hub.write_data_to_sheet") == ("hub.write_range",)
    assert catalog.suggest("hubs.std")[0] == "hub.std"


def test_names_of_a_new_listing_are_suggested_and_those_before_are_not(catalog):
    assert catalog.suggest("git.git_statsu")[0] == "git.git_status"
    catalog.replace("git", [spec("git", "git_stats")])
    assert catalog.suggest("git.git_statsu")[0] == "git.git_stats"


def test_a_tool_that_was_listed_with_a_line_gets_its_definition(catalog):
    line, other = spec("hub", "merge", "Merges."), spec("hub", "close", "Closes.")
    catalog.replace("hub", [line, other], incomplete=["merge", "close"])
    full = spec("hub", "merge", "Merges. What is open stays so.")
    catalog.complete("hub", [full, spec("hub", "unheard_of")])
    assert {entry.spec.name: entry.is_complete for entry in catalog.of_server("hub")} == {"merge": True, "close": False}
    assert catalog.lookup("hub.merge").spec is full


def test_a_definition_that_says_no_more_than_its_line_completes_the_tool(catalog):
    line = spec("hub", "merge", "Merges.")
    catalog.replace("hub", [line], incomplete=["merge"])
    assert catalog.replace("hub", [line]) == ()
    assert catalog.lookup("hub.merge").is_complete


def test_a_line_and_a_definition_are_not_compared(catalog):
    catalog.replace("hub", [spec("hub", "merge", "Merges.")], incomplete=["merge"])
    assert catalog.replace("hub", [spec("hub", "merge", "Merges. And more.")]) == ()
    assert [change.before.name for change in catalog.replace("hub", [spec("hub", "merge", "Others.")])] == ["merge"]


@pytest.mark.parametrize(("key", "result"), [("commits", "LogResult"), ("result", "Any")])
def test_a_stub_says_what_was_inferred_unless_it_would_take_a_wrapping_off(key, result):
    catalog = Catalog(["git"])
    schema = {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]}
    catalog.inferred_of = lambda spec: Inferred(spec.server, spec.name, spec.digest, schema, 3)
    catalog.replace("git", [spec("git", "log", "Shows.")])
    source = catalog.lookup("git.log").stub().source
    assert f"-> {result}:" in source
    assert ("is inferred from 3 recorded results" in source) == (result != "Any")


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
@pytest.mark.anyio
async def test_a_search_finds_words_in_names_and_descriptions(catalog, query, first):
    page = await (await catalog.searched()).search(SearchRequest(query=query))
    assert page.tools[0].qualified_name == first


@pytest.fixture
def large():
    """A catalog with a server of a thousand tools, which take a while to read."""
    catalog = Catalog(["many", "few"])
    about = " ".join(f"words{place}" for place in range(200))
    catalog.replace("many", [spec("many", f"polish_{number}", f"Polishes marble. {about}") for number in range(1_000)])
    catalog.replace("few", [spec("few", "carve", "Carves wood.")])
    return catalog


async def found(catalog, query):
    page = await (await catalog.searched()).search(SearchRequest(query=query, limit=200))
    return [entry.qualified_name for entry in catalog.entries_of(page.tools)]


@pytest.mark.anyio
async def test_others_have_turns_while_a_search_reads_new_listings(large):
    async with counted_turns() as turns:
        assert len(await found(large, "marble")) == 200
    assert turns.count > 20


@pytest.mark.anyio
async def test_a_search_that_is_cancelled_while_it_reads_leaves_the_rest_to_the_next(large):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(found, large, "marble")
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert 0 < len(large._tool_search) < 1_000
    assert len(await found(large, "marble")) == 200
    assert await found(large, "wood") == ["few.carve"]
    large.replace("many", [])
    assert await found(large, "marble") == []


@pytest.mark.anyio
async def test_searches_at_the_same_time_find_what_is_listed_and_nothing_that_is_withdrawn_meanwhile(large):
    async def look():
        assert await found(large, "wood") in (["few.carve"], ["few.chisel"])
        assert set(await found(large, "marble")) <= {entry.qualified_name for entry in large.of_server("many")}

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(look)
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        large.replace("few", [spec("few", "chisel", "Chisels wood.")])
        large.replace("many", [spec("many", "polish_1", "Polishes marble.")])
    assert await found(large, "wood") == ["few.chisel"]
    assert await found(large, "marble") == ["many.polish_1"]
