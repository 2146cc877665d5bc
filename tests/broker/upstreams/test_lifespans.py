"""The lifespans of servers in this process: what they open, they can close; how they fail, the log says."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest
from mcp.server import MCPServer

from broker import Broker
from broker.upstreams import connecting

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("deadline")]


def server_with(lifespan) -> MCPServer:
    return MCPServer("shop", lifespan=asynccontextmanager(lifespan))


async def states_of(server: MCPServer):
    async with Broker(servers={"shop": server}, opens_sandbox=False) as broker:
        await broker.wait_until_settled()
        (status,) = broker.server_statuses()
    return status.state, status.problem, status.what_to_do


async def test_a_lifespan_closes_what_it_has_opened_when_the_broker_is_left():
    ended = []

    async def lifespan(_server):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            yield {}
            await anyio.lowlevel.checkpoint()  # as a pool of connections does that is closed
            ended.append("after the block")
            tasks.cancel_scope.cancel()

    assert await states_of(server_with(lifespan)) == ("ready", None, None)
    assert ended == ["after the block"]


async def test_a_lifespan_that_does_not_end_holds_nobody_for_long(monkeypatch, caplog):
    monkeypatch.setattr(connecting, "_LIFESPAN_END_SECONDS", 0)

    async def lifespan(_server):
        yield {}
        await anyio.sleep_forever()

    assert await states_of(server_with(lifespan)) == ("ready", None, None)
    assert "a lifespan was cut off at its end" in caplog.text
    assert "server is down" not in caplog.text


async def test_a_lifespan_that_cannot_begin_is_explained_in_the_log(caplog):
    async def lifespan(_server):
        yield {"model": await anyio.Path("/nowhere/model.bin").read_bytes()}

    state, problem, what_to_do = await states_of(server_with(lifespan))
    assert (state, problem) == ("down", "it cannot be used: FileNotFoundError")
    assert what_to_do == "The log has the traceback."
    assert "'/nowhere/model.bin'" in caplog.text


async def test_a_lifespan_that_exits_is_told_by_what_it_raised(caplog):
    async def lifespan(_server):
        yield sys.exit(3)

    assert (await states_of(server_with(lifespan)))[:2] == ("down", "it cannot be used: SystemExit")
    assert "SystemExit: 3" in caplog.text


async def test_a_lifespan_that_fails_at_its_end_is_in_the_log(caplog):
    async def lifespan(_server):
        yield {}
        raise ValueError("already closed")

    assert await states_of(server_with(lifespan)) == ("ready", None, None)
    assert "ValueError: already closed" in caplog.text


async def test_a_lifespan_that_begins_too_slowly_is_what_to_look_at(monkeypatch):
    monkeypatch.setattr("broker.upstreams.upstream._OWN_START_SECONDS", 0.01)

    async def lifespan(_server):
        await anyio.Event().wait()
        yield

    state, problem, what_to_do = await states_of(server_with(lifespan))
    assert (state, problem) == ("down", "it did not become ready within 0.01 s")
    assert what_to_do == "See what its lifespan waits for."
