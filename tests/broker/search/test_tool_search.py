from __future__ import annotations

import contextlib

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import SearchError
from broker.search import Detail, Filters, Mode, SearchRequest, ToolSearch
from broker.search.pages import listed
from broker.search.patterns import matching
from tests.broker.search.tools import TOOLS, tool

pytestmark = pytest.mark.anyio


def loaded(**options) -> ToolSearch:
    search = ToolSearch(**options)
    for server, specs in TOOLS.items():
        search.replace(server, specs)
    return search


async def found(search: ToolSearch, query: str, **request) -> list[str]:
    page = await search.search(SearchRequest(query=query, **request))
    return [spec.name for spec in page.tools]


async def test_pages_follow_each_other_and_end():
    search, cursor, seen = loaded(), None, []
    while True:
        page = await search.search(SearchRequest(query="delete list weather", limit=2, cursor=cursor))
        seen += [spec.name for spec in page.tools]
        cursor = page.next_cursor
        if cursor is None:
            break
        assert len(page.tools) == 2
    assert len(seen) == len(set(seen))
    assert seen == await found(search, "delete list weather", limit=200)


async def test_an_empty_query_lists_every_tool_by_name():
    assert await found(loaded(), " ", limit=3) == ["gitBranchDelete", "git_commit", "git_log"]


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        (Filters(servers=["weather"]), {"get_forecast", "météo_paris", "tianqi"}),
        (Filters(servers=[]), set()),
        (Filters(category="git"), {"git_log", "git_commit", "gitBranchDelete"}),
        (Filters(read_only=True), {"git_log", "eventgrid_topic_list", "eventgrid_subscription_list"}),
        (Filters(destructive=True, servers=["git"]), {"gitBranchDelete"}),
        (Filters(read_only=False), {"git_commit", "gitBranchDelete"}),
    ],
)
async def test_filters_leave_out_what_does_not_fit(filters, names):
    assert set(await found(loaded(), "", filters=filters)) == names
    assert set(await found(loaded(), "git event storage weather deletes", filters=filters)) <= names


async def test_categories_may_be_the_hosts_own():
    search = loaded(categories=lambda spec: {"data"} if "sql" in spec.name else ())
    assert set(await found(search, "delete", filters=Filters(category="data"))) == {
        "sql_db_delete",
        "sql_server_delete",
    }


async def test_the_name_of_a_tool_finds_it_first():
    search = loaded()
    search.replace("other", [tool("other", "log", "git_log git_log git_log commit history")])
    assert (await found(search, "git_log"))[0] == "git_log"
    assert (await found(search, "other.log"))[0] == "log"


async def test_only_full_detail_asks_for_a_description_and_no_entry_carries_one():
    search = loaded()
    for detail, keys in (("name", {"name"}), ("brief", {"name", "summary"}), ("detailed", {"name", "summary"})):
        page = await search.search(SearchRequest(query="history", detail=Detail.parse(detail)))
        assert page.entries()[0].keys() == keys
        assert page.to_describe == (("git.git_log",) if detail == "detailed" else ())


@pytest.mark.parametrize(
    ("description", "summary"),
    [
        (
            "Replace text in cells, like Excel's Replace All (literal). The result\n   lists what changed. \n\nMore.",
            "Replace text in cells, like Excel's Replace All (literal). The result lists what changed.",
        ),
        (
            "Retrieve the posts of the top influencers, ordered by their date\nArgs:\n    coin: A ticker",
            "Retrieve the posts of the top influencers, ordered by their date",
        ),
        (
            "Change the constant `changing_cell` until the formula in `cell` equals\n`target` (kinds: all). More.",
            "Change the constant `changing_cell` until the formula in `cell` equals `target` (kinds: all). More.",
        ),
        (
            "Retrieves what the account may read, with everything of the following kinds:\n- mail\n- files",
            "Retrieves what the account may read, with everything of the following kinds:",
        ),
        ("List users\nwho are active", "List users"),
        (f"{'word ' * 30}\n" * 3, f"{'word ' * 39}word…"),
        (" \n ", "Title"),
    ],
)
async def test_a_summary_goes_on_where_the_first_line_of_a_description_was_wrapped(description, summary):
    assert listed(tool("x", "y", description, title="Title"), Detail.BRIEF) == {"name": "x.y", "summary": summary}


@pytest.mark.parametrize("limit", [0, -1, 201, True, 2.5, "3"])
async def test_a_limit_out_of_range_is_refused(limit):
    with pytest.raises(SearchError, match="Give a whole number from 1 to 200"):
        await loaded().search(SearchRequest(query="log", limit=limit))


@pytest.mark.parametrize("cursor", ["", "x", "é", "====", "A" * 300, "YWJjOi0x", "YWJjOjk5OTk5OTk5OTk5OTk"])
async def test_a_cursor_that_is_none_of_ours_is_refused(cursor):
    with pytest.raises(SearchError, match="or none to start at the first page"):
        await loaded().search(SearchRequest(query="log", cursor=cursor))


async def test_a_cursor_of_another_search_is_refused():
    page = await loaded().search(SearchRequest(query="delete list", limit=1))
    with pytest.raises(SearchError, match="The cursor belongs to another search"):
        await loaded().search(SearchRequest(query="weather", limit=1, cursor=page.next_cursor))


async def test_a_detail_that_is_none_is_refused():
    with pytest.raises(SearchError, match="Use name, brief or full"):
        Detail.parse("everything")


@given(st.text())
async def test_no_cursor_fails_otherwise(cursor):
    with pytest.raises(SearchError):
        await loaded().search(SearchRequest(query="log", cursor=cursor))


async def test_an_expression_finds_names_before_descriptions():
    search = loaded()
    assert await found(search, "^git\\.", mode=Mode.REGEX) == ["gitBranchDelete", "git_commit", "git_log"]
    assert (await found(search, "FORECAST|topics", mode=Mode.REGEX))[0] == "get_forecast"
    assert await found(search, "latitude|max_c", mode=Mode.REGEX) == ["git_log", "get_forecast"]


@pytest.mark.parametrize(
    "expression", ["(", "(?=a)", r"(a)\1", "a{1000}{1000}", "((a{1,500}){1,500}){1,500}", "\ud800"]
)
async def test_an_expression_that_cannot_be_used_is_refused(expression):
    with pytest.raises(SearchError, match="or search for words instead"):
        await found(loaded(), expression, mode=Mode.REGEX)


def test_an_expression_that_takes_long_is_given_up():
    tools = [tool("notes", f"t{number}", "ab cé" * 800, title="x" * 100_000) for number in range(3)]
    slow = "(?:[^q]?){1000}q"
    with pytest.raises(SearchError, match="fewer repetitions, filter by server"):
        matching(slow, tools, seconds=0.0)
    assert matching(slow, tools, seconds=60.0) == []
    assert matching("cé", tools) == tools
    assert matching("x", tools) == tools


async def test_an_expression_that_is_too_long_is_refused():
    with pytest.raises(SearchError, match="use at most 500"):
        await found(loaded(), "a" * 501, mode=Mode.REGEX)


async def test_an_expression_that_backtracks_without_end_elsewhere_is_answered():
    search = loaded()
    search.replace("hostile", [tool("hostile", "a" * 300, "a" * 4_000 + "!")])
    assert await found(search, "(a+)+$b", mode=Mode.REGEX) == []
    assert await found(search, "^hostile.(a+)+$", mode=Mode.REGEX) == ["a" * 300]


@given(st.text(min_size=1))
async def test_no_expression_fails_otherwise(expression):
    with contextlib.suppress(SearchError):
        await found(loaded(), expression, mode=Mode.REGEX)


async def test_a_ranker_orders_the_candidates_and_cannot_add_any():
    async def backwards(query, candidates):
        assert query == "delete"
        return [*(spec.qualified_name for spec in reversed(candidates)), "git.git_log", "none.such"]

    plain = await found(loaded(), "delete")
    assert await found(loaded(ranker=backwards), "delete") == plain[::-1]


async def test_what_a_ranker_leaves_out_follows():
    async def picks(_query, candidates):
        return [candidates[-1].qualified_name] * 2

    plain = await found(loaded(), "delete")
    assert await found(loaded(ranker=picks), "delete") == [plain[-1], *plain[:-1]]


async def fails(_query, _candidates):
    raise OSError("/home/someone/model is missing")


async def hangs(_query, _candidates):
    await anyio.sleep_forever()


def returns(answer):
    async def ranker(_query, _candidates):
        return answer

    return ranker


def is_no_coroutine(_query, candidates):
    return [spec.qualified_name for spec in candidates]


@pytest.mark.parametrize(
    "ranker",
    [fails, hangs, is_no_coroutine, returns(None), returns(3), returns([{"name": "git.git_log"}]), returns([[]])],
    ids=["raises", "hangs", "no coroutine", "None", "a number", "dicts", "lists"],
)
async def test_a_ranker_that_fails_leaves_the_order_and_is_said(ranker, monkeypatch):
    monkeypatch.setattr("broker.search.tool_search.RANKER_SECONDS", 0.01 if ranker is hangs else 60)
    with anyio.fail_after(30):
        page = await loaded(ranker=ranker).search(SearchRequest(query="delete"))
    assert [spec.name for spec in page.tools] == await found(loaded(), "delete")
    assert page.notes == ("The ranker failed; the order is that of the search without it.",)


@pytest.mark.parametrize("answer", [[], ["none.such", 3, None], "git.git_log", {}], ids=str)
async def test_names_that_are_no_candidates_are_ignored(answer):
    page = await loaded(ranker=returns(answer)).search(SearchRequest(query="delete"))
    assert [spec.name for spec in page.tools] == await found(loaded(), "delete")
    assert page.notes == ()


async def test_a_search_by_meaning_without_embedder_is_refused():
    for mode in (Mode.EMBEDDING, Mode.HYBRID):
        with pytest.raises(SearchError, match="Use mode keyword, or configure one"):
            await found(loaded(), "log", mode=mode)
