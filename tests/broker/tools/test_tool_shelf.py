"""Scores that follow the clock and the store, while the broker itself calls nothing."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest
import structlog
from mcp.server import MCPServer

from broker import Broker, Config
from broker.redaction import Redactor
from broker.store import Store
from broker.tiers import CallStatistics
from broker.tools import tool_shelf
from broker.tools.tool_shelf import ToolShelf
from broker.upstreams.listing import Listing
from codegen import ToolAnnotations, ToolSpec

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("deadline", "ticking_fast")]

NOW = 1_000_000_000.0
DAY = 86_400.0


class Clock:
    """Stands still until it is set."""

    now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def ticking_fast(monkeypatch):
    monkeypatch.setattr(tool_shelf, "SCORES_SECONDS", 0.001)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.sqlite3"


@pytest.fixture
def kept(path, clock):
    """A shelf with two tools on a store, whose scores are kept in the background for the time of a block."""

    @asynccontextmanager
    async def keep():
        with Store(path) as store:
            shelf = ToolShelf(
                Config(), ["git"], {}, redact=Redactor(()), store=store, embedder=None, ranker=None, clock=clock
            )
            tools = tuple(ToolSpec("git", name, None, "", {}, None, ToolAnnotations()) for name in ("log", "show"))
            shelf.take_listing("git", Listing(tools, ()))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(shelf.keep_scores)
                yield shelf
                tasks.cancel_scope.cancel()

    return keep


def first(tiers) -> tuple[str, str]:
    """The name and the tier of the tool that is ranked first."""
    item = tiers.hot().items[0]
    return item["name"], item["tier"]


async def until(condition) -> None:
    while not condition():
        await anyio.lowlevel.checkpoint()


def note(statistics: CallStatistics, tool: str, count: int, server: str = "git") -> None:
    for _ in range(count):
        statistics.note(server, tool, is_success=True, seconds=0.01)


async def test_a_hot_tool_that_nobody_calls_any_more_gets_warm(kept, clock):
    async with kept() as shelf:
        note(shelf.statistics, "show", 50)
        await until(lambda: first(shelf.tiers) == ("git.show", "hot"))
        clock.now += 60 * DAY
        await until(lambda: first(shelf.tiers) == ("git.show", "warm"))


async def test_tools_change_places_as_time_passes(kept, clock):
    async with kept() as shelf:
        note(shelf.statistics, "log", 50)
        clock.now += 7 * DAY
        note(shelf.statistics, "show", 42)
        await until(lambda: first(shelf.tiers)[0] == "git.show")
        clock.now += 60 * DAY
        await until(lambda: first(shelf.tiers)[0] == "git.log")


async def test_calls_that_another_process_writes_into_the_store_count(kept, path, clock):
    async with kept() as shelf:
        assert first(shelf.tiers) == ("git.log", "cold")
        with Store(path) as store:
            other = CallStatistics(store, clock=clock)
            note(other, "show", 50)
            other.flush()
        await until(lambda: first(shelf.tiers) == ("git.show", "hot"))
        assert shelf.statistics.of("git", "show").calls == 50


async def test_a_store_that_cannot_be_read_costs_no_more_than_the_calls_of_others(kept, path, clock):
    with structlog.testing.capture_logs() as logs:
        async with kept() as shelf:
            note(shelf.statistics, "show", 50)
            await until(lambda: first(shelf.tiers) == ("git.show", "hot"))
            path.rename(path.with_suffix(".moved"))
            await until(lambda: logs)
            clock.now += 60 * DAY
            await until(lambda: first(shelf.tiers) == ("git.show", "warm"))
    assert [entry["event"] for entry in logs] == ["statistics are not kept"]
    assert "it was moved or removed while in use" in logs[0]["reason"]


async def test_a_broker_sees_what_others_call_while_it_calls_nothing(path):
    desk = MCPServer("desk")

    @desk.tool()
    def add(a: int, b: int) -> int:
        return a + b

    with Store(path) as store, Store(path) as other_store:
        async with Broker(servers={"desk": desk}, store=store) as broker:
            other = CallStatistics(other_store)
            note(other, "add", 50, server="desk")
            other.flush()
            await until(lambda: first(broker.tiers) == ("desk.add", "hot"))
