"""Sessions that nobody uses are dropped, whether requests come or not."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.lowlevel
import pytest
import trio
from mcp import Client
from trio.testing import MockClock

from broker.server import app, session_keeper
from broker.server.session_keeper import NEW, SessionKeeper
from broker.texts import tool_texts

if TYPE_CHECKING:
    from broker.sessions import Session

pytestmark = pytest.mark.anyio

MINUTE = 60.0
ADD = {"code": "from tools import desk\nawait desk.add(a=1)"}
WAIT = {"code": "from tools import desk\nawait desk.wait()"}


class Clock:
    """Stands still until it is set."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now

    def pass_minutes(self, minutes: float) -> None:
        self.now += minutes * MINUTE


@pytest.fixture
def clock(monkeypatch):
    """What the sessions of the servers of a test go by."""
    clock = Clock()
    monkeypatch.setattr(app, "SessionKeeper", partial(SessionKeeper, clock=clock))
    return clock


async def begin(client):
    begun = await client.call_tool("execute_code", {"code": "1", "session": "new"})
    return begun.structured_content["session"]


async def until(condition) -> None:
    while not condition():
        await anyio.lowlevel.checkpoint()


async def test_after_an_hour_without_use_a_call_needs_its_description_again(connected, clock, calls):
    async with connected() as client:
        await client.call_tool("get_tool_details", {"tools": ["desk.add"]})
        clock.pass_minutes(59)
        kept = await client.call_tool("execute_code", ADD)
        clock.pass_minutes(61)
        gone = await client.call_tool("execute_code", ADD)
        calls_then = list(calls)
        described = await client.call_tool("execute_code", ADD)
    assert not kept.is_error
    assert gone.is_error
    assert "async def add(" in gone.content[0].text
    assert calls_then == [("add", 1, 2)]
    assert not described.is_error


async def test_after_an_hour_without_use_a_handle_is_of_no_session(connected, clock):
    async with connected() as client:
        handle = await begin(client)
        clock.pass_minutes(59)
        kept = await client.call_tool("execute_code", {"code": "1", "session": handle})
        clock.pass_minutes(61)
        gone = await client.call_tool("execute_code", {"code": "1", "session": handle})
    assert not kept.is_error
    assert (gone.is_error, gone.content[0].text) == (True, tool_texts.unknown_session(handle))


async def test_requests_look_for_idle_sessions_once_in_ten_minutes(served, mode, clock):
    async with served() as server, Client(server.mcp, mode=mode) as client:
        await begin(client)
        clock.pass_minutes(55)
        other = {"code": "1", "session": await begin(client)}
        held = []
        for minutes in (6, 3.9, 0.1):
            clock.pass_minutes(minutes)
            assert not (await client.call_tool("execute_code", other)).is_error
            held.append(len(server.sessions))
    assert held == [2, 2, 1]


async def test_a_session_with_a_script_that_runs_is_kept_and_idle_from_its_end(served, mode, clock, started, calls):
    async with served() as server, Client(server.mcp, mode=mode) as client:
        await client.call_tool("get_tool_details", {"tools": ["desk.add", "desk.wait"]})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "execute_code", WAIT)
            await started.wait()
            clock.pass_minutes(120)
            await begin(client)
            assert len(server.sessions) == 2
            tasks.cancel_scope.cancel()
        await until(lambda: ("cancelled",) in calls)
        clock.pass_minutes(59)
        assert not (await client.call_tool("execute_code", ADD)).is_error


async def test_a_server_that_nobody_asks_drops_its_idle_sessions(served, mode, clock, monkeypatch):
    monkeypatch.setattr(session_keeper, "SWEEP_SECONDS", 0.001)
    async with served() as server, Client(server.mcp, mode=mode) as client:
        await begin(client)
        assert len(server.sessions) == 1
        clock.pass_minutes(61)
        await until(lambda: len(server.sessions) == 0)


def test_without_requests_an_idle_session_is_gone_ten_minutes_later():
    async def held_after(*minutes: float) -> list[int]:
        keeper = SessionKeeper(
            lambda _: cast("Session", None), most=10, idle_seconds=60 * MINUTE, clock=trio.current_time
        )
        with keeper.using(cast("Any", None), NEW):
            pass
        held = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keeper.sweep_regularly)
            for pause in minutes:
                await anyio.sleep(pause * MINUTE)
                held.append(len(keeper))
            tasks.cancel_scope.cancel()
        return held

    assert trio.run(held_after, 59, 12, clock=MockClock(autojump_threshold=0)) == [1, 0]
