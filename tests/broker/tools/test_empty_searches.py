"""What `search_tools` says where it finds nothing, or takes less than it was given."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import product

import pytest
from mcp.server import MCPServer

from broker import Broker
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
