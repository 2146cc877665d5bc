"""What `search_tools` says where it finds nothing, or takes less than it was given."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import product

import pytest
from mcp.server import MCPServer

from broker import Broker, Config
from broker.disclosure.settings import DisclosureSettings
from broker.search import SearchRequest
from codegen import ToolAnnotations, ToolSpec

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("deadline")]

TOOL = ToolSpec("desk", "t", None, "Does a thing.", {}, None, ToolAnnotations())


@pytest.fixture
def desk():
    return MCPServer("desk")


def session(broker, count):
    """Make a session of a broker whose one server has so many tools."""
    broker.catalog.replace("desk", [replace(TOOL, name=f"thing_{number:02}") for number in range(count)])
    return broker.session()


def call_in(text):
    """Return the arguments of the one call that a text tells to make."""
    (arguments,) = re.findall(r"search_tools\((\{.*\})\)", text)
    return json.loads(arguments)


@pytest.mark.parametrize(
    "sent", [{"query": "thing"}, {"query": "thing", "detail": "full"}, {}, {"query": "thing", "server": "desk"}]
)
async def test_a_cursor_beyond_the_tools_that_are_left_says_that_the_list_ended(desk, sent):
    async with Broker(servers={"desk": desk}) as broker:
        one = session(broker, 35)
        first = await one.dispatch("search_tools", sent)
        cursor = re.findall(r'cursor="(\S+)"', first.text)[-1]
        session(broker, 4)
        ended = await one.dispatch("search_tools", sent | {"cursor": cursor})
        again = await one.dispatch("search_tools", call_in(ended.text))
    assert ended.text.startswith("The list ended before this cursor, since the tools have changed. Search again with")
    assert call_in(ended.text) == (sent or {"query": ""})
    assert "desk.thing_03" in again.text or "async def thing_03" in again.text


async def test_a_long_query_is_not_repeated_where_the_list_ended(desk):
    async with Broker(servers={"desk": desk}) as broker:
        one = session(broker, 35)
        sent = {"query": "thing " * 100}
        cursor = re.findall(r'cursor="(\S+)"', (await one.dispatch("search_tools", sent)).text)[-1]
        session(broker, 4)
        ended = await one.dispatch("search_tools", sent | {"cursor": cursor})
    assert ended.text.endswith("Search again without cursor: repeat the others as they were, without cursor.")


async def test_a_cursor_beyond_the_categories_that_are_left_says_that_the_list_ended(desk):
    async with Broker(servers={"desk": desk}) as broker:
        areas = [f"az_{''.join(letters)}{'x' * 40}" for letters in product("abcde", repeat=3)]
        broker.catalog.replace("desk", [replace(TOOL, name=f"{area}_{n}") for area in areas for n in range(3)])
        one = broker.session()
        first = await one.dispatch("search_tools", {"category": "*"})
        cursor = re.findall(r'cursor="(\S+)"', first.text)[-1]
        broker.catalog.replace("desk", [TOOL])
        ended = await one.dispatch("search_tools", {"category": "*", "cursor": cursor})
    assert call_in(ended.text) == {"category": "*"}


async def test_an_empty_query_that_finds_only_sleeping_servers_names_them_to_search(faulty):
    config = Config(servers={"parrot": faulty("plain", lazy=True, about="echoes")})
    async with Broker(config) as broker:
        one = broker.session()
        nothing = await one.dispatch("search_tools", {"query": ""})
        (server,) = re.findall(r'server="(\w+)"', nothing.text)
        woken = await one.dispatch("search_tools", {"query": "", "server": server})
    assert nothing.text.splitlines()[0] == "There are no tools to list now. Of the servers that may have some:"
    assert "search_tools(" not in nothing.text
    assert woken.text.startswith("parrot.echo")


async def test_an_empty_query_without_servers_is_not_told_to_be_sent_again():
    async with Broker(Config()) as broker:
        nothing = await broker.session().dispatch("search_tools", {})
    assert nothing.text.startswith("There are no tools to list: no server offers any.")


@pytest.mark.parametrize(
    ("sent", "said", "left"),
    [
        ({"query": "", "annotations": {"readOnlyHint": True}}, "There is no tool with", {"query": ""}),
        (
            {"query": "thing", "mode": "regex", "annotations": {"readOnlyHint": True}},
            'No tool matches "thing" with',
            {"query": "thing", "mode": "regex"},
        ),
        (
            {"query": "thing", "server": "desk", "detail": "full", "annotations": {"readOnlyHint": True}},
            'No tool matches "thing" with',
            {"query": "thing", "server": "desk", "detail": "full"},
        ),
    ],
)
async def test_the_annotations_that_exclude_all_that_matches_are_named(desk, sent, said, left):
    async with Broker(servers={"desk": desk}) as broker:
        one = session(broker, 2)
        nothing = await one.dispatch("search_tools", sent)
        found = await one.dispatch("search_tools", call_in(nothing.text))
    assert nothing.text.startswith(f'{said} annotations={{"readOnlyHint": true}}. ')
    assert call_in(nothing.text) == left
    assert "thing_00" in found.text


async def test_a_server_or_all_filters_that_exclude_what_matches_are_named(desk):
    async with Broker(servers={"desk": desk, "other": MCPServer("other")}) as broker:
        broker.catalog.replace("other", [replace(TOOL, server="other", name="odd", description="Odd.")])
        one = session(broker, 2)
        alone = await one.dispatch("search_tools", {"query": "thing", "server": "other"})
        hints = {"readOnlyHint": True}
        both = await one.dispatch("search_tools", {"query": "thing", "server": "other", "annotations": hints})
        category = await one.dispatch("search_tools", {"query": "thing", "category": "other"})
        neither = await one.dispatch("search_tools", {"query": "zebras", "server": "other"})
    assert alone.text.startswith('No tool matches "thing" with server="other". Some match without server: search_tools')
    assert "Some match without annotations and server: search_tools" in both.text
    assert category.text.startswith('No tool matches "thing" with category="other". Some match without category:')
    assert neither.text.startswith('No tool matches "zebras". Try other words')
    assert [call_in(one.text) for one in (alone, both, category)] == [{"query": "thing"}] * 3


async def test_a_search_for_what_a_filter_excludes_asks_no_ranker(desk):
    asked = []

    async def ranker(query, candidates):
        asked.append(query)
        return [spec.qualified_name for spec in candidates]

    async with Broker(servers={"desk": desk}, ranker=ranker) as broker:
        one = session(broker, 2)
        await one.dispatch("search_tools", {"query": "thing", "annotations": {"readOnlyHint": True}})
        assert asked == []
        await one.dispatch("search_tools", {"query": "thing"})
    assert asked == ["thing"]


@pytest.mark.parametrize(
    ("limit", "count"),
    [(3.0, 3), (200.0, 200), (300, 200), (1e30, 200)],
)
async def test_a_whole_number_is_a_limit_in_whatever_form_and_one_beyond_the_most_is_said_to_be(desk, limit, count):
    given = {"query": "thing", "detail": "name", "limit": limit}
    async with Broker(servers={"desk": desk}) as broker:
        one = session(broker, 250)
        reply = await one.dispatch("search_tools", given)
        *lines, last = reply.text.splitlines()
        if limit > 200:
            assert last.startswith("limit: a page has 200 tools at most. This is that of search_tools(")
            assert call_in(last) == given | {"limit": 200}
            again = await one.dispatch("search_tools", call_in(last))
            assert again.text.splitlines() == lines
            last = lines[-1]
    assert (reply.is_error, len([line for line in lines if line.startswith("desk.")])) == (False, count)
    assert last.startswith("More tools:")


@pytest.mark.parametrize("limit", [0.0, -3, 0.5, 201.5])
async def test_a_limit_that_is_no_whole_number_of_tools_is_refused(desk, limit):
    async with Broker(servers={"desk": desk}) as broker:
        reply = await session(broker, 3).dispatch("search_tools", {"query": "thing", "limit": limit})
    assert reply.is_error
    assert reply.text.startswith("search_tools was not called: ")


async def test_a_program_may_give_a_whole_float_as_the_limit(desk):
    async with Broker(servers={"desk": desk}) as broker:
        page = await session(broker, 3).search(SearchRequest(query="thing", limit=2.0))  # type: ignore[arg-type]  # as JSON
    assert len(page.tools) == 2


async def test_what_a_listing_of_all_categories_does_not_use_is_named(desk):
    async with Broker(servers={"desk": desk}) as broker:
        one = session(broker, 3)
        plain = await one.dispatch("search_tools", {"category": "*"})
        given = {"category": "*", "query": "thing", "detail": "name"}
        told = await one.dispatch("search_tools", given)
        found = await one.dispatch("search_tools", call_in(told.text))
    assert "without regard to" not in plain.text
    assert told.text.startswith(plain.text)
    assert 'category="*" lists all categories, without regard to query, detail. For tools: search_tools(' in told.text
    assert call_in(told.text) == {"query": "thing", "detail": "name"}
    assert found.text.startswith("desk.thing_00")


@pytest.mark.parametrize("sent", [{"query": "thing"}, {}, {"query": "thing", "server": "my_desk"}])
@pytest.mark.parametrize("mode", ["auto", "keyword"])
async def test_a_cursor_goes_on_with_a_search_whose_mode_and_server_were_read_otherwise(desk, sent, mode):
    config = Config(disclosure=DisclosureSettings(search=mode))
    async with Broker(config, servers={"my-desk": desk}) as broker:
        specs = [replace(TOOL, server="my-desk", name=f"thing_{number}") for number in range(3)]
        broker.catalog.replace("my-desk", specs)
        one = broker.session()
        first = await one.dispatch("search_tools", sent | {"limit": 2})
        cursor = re.findall(r'cursor="(\S+)"', first.text)[-1]
        second = await one.dispatch("search_tools", sent | {"limit": 2, "cursor": cursor})
    assert second.text.startswith("my-desk.thing_2")
