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
CONNECTED = 12
"""Servers that are not lazy: connecting all two hundred at once takes a small machine minutes."""


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
    """All are connected, in groups, searched, described and called; those that are lazy rest again."""
    servers = {f"s{number}": server(parts, number, lazy=number >= CONNECTED) for number in range(SERVERS)}
    with anyio.fail_after(300):
        async with Broker(Config(servers=servers), startup_seconds=120) as broker:
            names = sorted(broker.lazy_servers, key=lambda name: int(name[1:]))
            for start in range(0, len(names), 10):
                group = names[start : start + 10]
                session = broker.session()
                await session.search(SearchRequest(query="x", filters=Filters(servers=group)))
                assert set(broker.rest_lazy_servers()) == set(group)
            assert len(broker.catalog) == TOOLS
            assert not any(status.problem for status in broker.server_statuses())
            session = broker.session(grants=[Grant("*.*")])
            page = await session.search(SearchRequest(query="send an email message"))
            assert page.tools
            entry = broker.catalog.of_server(f"s{SERVERS - 1}")[0]
            assert entry.qualified_name in broker.catalog.suggest(entry.qualified_name + "x")
            assert broker.tiers.hot().items
            assert broker.tiers.categories().next_cursor
            details = await session.get_tool_details([entry.qualified_name])
            assert details.described == (entry.qualified_name,)
            result = await session.call_directly(entry.qualified_name, {})
            assert result.failed is None or result.failed.kind == "ToolArgumentsError"


@pytest.mark.parametrize("storm", [1_000])
async def test_a_storm_of_changed_listings_is_listed_a_few_times(parts, tmp_path, storm):
    log = tmp_path / "listings"
    config = server(parts, 0, env={"STORM": str(storm), "LISTINGS": str(log)})
    with anyio.fail_after(120):
        async with Broker(Config(servers={"s": config}), opens_sandbox=False) as broker:
            revision = broker.catalog.revision
            for _ in range(3):
                await broker._upstreams.by_name["s"].call_tool("extra", {})
            while len(log.read_text().splitlines()) < 2:
                await anyio.lowlevel.checkpoint()
            assert len(log.read_text().splitlines()) <= 4
            assert broker.catalog.revision == revision
