"""Ten thousand tools of two hundred servers in one broker, each server a process that serves its part."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from benchmarks.search.corpus import CORPORA, many_tools
from broker import Broker, Config, Grant, ServerConfig
from broker.disclosure.tool_details import definition
from broker.search import Filters, SearchRequest

pytestmark = pytest.mark.anyio

MANY = Path(__file__).parents[1] / "broker" / "servers" / "many.py"
SERVERS = 200
TOOLS = 10_000
CONNECTED = 190
"""Servers that are connected from the start; the others are lazy."""


@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A file with a line of fifty tools for each server."""
    if not CORPORA.is_dir():
        pytest.skip("the corpora do not lie beside the repository")
    specs = many_tools(TOOLS)
    path = tmp_path_factory.mktemp("many") / "tools.jsonl"
    each = TOOLS // SERVERS
    with path.open("w", encoding="utf-8") as file:
        for number in range(SERVERS):
            named = {spec.name: definition(spec, spec.name) for spec in specs[number * each : (number + 1) * each]}
            tools = list(named.values())
            # Names that the corpora have twice become tools of their own.
            extra = [{**tools[0], "name": f"extra_{at}"} for at in range(each - len(tools))]
            file.write(json.dumps(tools + extra) + "\n")
    return path


def server(parts, number, **settings) -> ServerConfig:
    return ServerConfig(
        command=sys.executable,
        args=("-I", str(MANY), str(parts), str(number)),
        mode="legacy",
        connect_timeout_seconds=120,
        **settings,
    )


async def test_ten_thousand_tools_of_two_hundred_servers(parts):
    """All are connected, nearly all at once, searched, described and called; those that are lazy rest again."""
    servers = {f"s{number}": server(parts, number, lazy=number >= CONNECTED) for number in range(SERVERS)}
    with anyio.fail_after(300):
        async with Broker(Config(servers=servers), startup_seconds=120) as broker:
            lazy = broker.serving.lazy_servers
            assert len(lazy) == SERVERS - CONNECTED
            session = broker.session(grants=[Grant("*.*")])
            await session.search(SearchRequest(query="x", filters=Filters(servers=lazy)))
            assert [status.state for status in broker.server_statuses()] == ["ready"] * SERVERS
            assert len(broker.catalog) == TOOLS
            assert set(broker.rest_lazy_servers()) == set(lazy)
            page = await session.search(SearchRequest(query="send an email message"))
            assert page.tools
            assert broker.tiers.hot().items
            assert broker.tiers.categories().next_cursor
            for number in (0, CONNECTED - 1, SERVERS - 1):
                entry = next(
                    entry
                    for entry in broker.catalog.of_server(f"s{number}")
                    if "required" not in entry.spec.input_schema
                )
                assert entry.qualified_name in broker.catalog.suggest(entry.qualified_name + "x")
                details = await session.get_tool_details([entry.qualified_name])
                assert details.described == (entry.qualified_name,)
                result = await session.call_directly(entry.qualified_name, {})
                assert result.failed is None
                assert (result.answer or {})["content"] == [{"type": "text", "text": entry.spec.name}]


async def test_a_storm_of_changed_listings_is_one_listing_a_second(parts, tmp_path):
    """Each call and each listing announces changes; only a call of `last` makes one, which has to be seen."""
    log = tmp_path / "listings"
    config = server(parts, 0, env={"STORM": "20", "LISTINGS": str(log)})
    with anyio.fail_after(120):
        began = anyio.current_time()
        async with Broker(Config(servers={"s": config}), opens_sandbox=False) as broker:
            revision = broker.catalog.revision
            for _ in range(100):
                await broker._upstreams.by_name["s"].call_tool("extra", {})
            assert broker.catalog.revision == revision
            await broker._upstreams.by_name["s"].call_tool("last", {})
            while broker.catalog.find("s.last") is None:
                await anyio.lowlevel.checkpoint()
            assert 2 <= len(log.read_text().splitlines()) <= 2 + anyio.current_time() - began
