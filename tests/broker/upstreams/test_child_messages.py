"""Messages to and from a child process, over real pipes."""

from __future__ import annotations

import gc
import json
import os
import sys
import tracemalloc
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp.types.jsonrpc import JSONRPCNotification, JSONRPCRequest, jsonrpc_message_adapter

from broker.upstreams import child_messages
from broker.upstreams.input_pipe import InputPipe
from broker.upstreams.server_config import ServerConfig
from broker.upstreams.stdio import stdio_streams

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp.client._transport import TransportStreams

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("deadline")]

ECHO = """
import os
while data := os.read(0, 65_536):
    while data:
        data = data[os.write(1, data):]
"""
CLOSING = "import os, time; os.close(0); print('{}', flush=True); time.sleep(60)"
ASKING = """
import json, sys
def send(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for one in range(1_500):
    send(id=one, method="ask")
    if CANCELS:
        send(method="notifications/cancelled", params={"requestId": one})
send(method="done")
sys.stdin.read()
"""
LEAVING = """
import pathlib, sys
print('{"jsonrpc": "2.0", "method": "note", "params": {"number": 1}}', flush=True)
sys.stdin.read()
print("x" * BIG, flush=True)
pathlib.Path(KEPT).write_text("kept")
"""
LONG = """
import json
print(json.dumps({"jsonrpc": "2.0", "method": "note", "params": {"tools": [{"name": "echo"}] * 100_000}}))
"""
DEAF = "import time; time.sleep(60)"
BIG = 1_000_000


@pytest.fixture
def ended():
    """Why the connection was ended."""
    return []


@asynccontextmanager
async def child(code: str, ended: list[str]) -> AsyncIterator[TransportStreams]:
    async with stdio_streams(
        ServerConfig(command=sys.executable, args=("-c", code)), ended.append, redact=str
    ) as streams:
        yield streams


def message(number: int, size: int = 0) -> SessionMessage:
    params = {"number": number, "filling": "x" * size}
    return SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="note", params=params))


def request(number: int, size: int = 0) -> SessionMessage:
    params = {"number": number, "filling": "x" * size}
    return SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=number, method="ask", params=params))


def number(received: SessionMessage | Exception) -> int:
    assert isinstance(received, SessionMessage)
    assert isinstance(received.message, JSONRPCNotification | JSONRPCRequest)
    assert received.message.params is not None
    return int(received.message.params["number"])


async def test_messages_larger_than_the_pipe_arrive_whole_from_many_senders(ended):
    async with child(ECHO, ended) as (incoming, outgoing), anyio.create_task_group() as tasks:
        for one in range(20):
            tasks.start_soon(outgoing.send, request(one, BIG if one % 2 else 0))
        assert {number(await incoming.receive()) for _ in range(20)} == set(range(20))
    assert not ended


async def test_what_a_pipe_does_not_take_at_once_is_not_copied_for_each_piece_that_it_takes():
    reading_end, writing_end = os.pipe()
    pipe, data = InputPipe(writing_end), bytes(8 * BIG)
    read = 0

    async def read_slowly() -> None:
        nonlocal read
        while read < len(data):
            await anyio.wait_readable(reading_end)
            read += len(os.read(reading_end, 4_096))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read_slowly)
        tracemalloc.start()
        try:
            await pipe.finish(data)
            _, most_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    await pipe.aclose()
    os.close(reading_end)
    assert read == len(data)
    assert most_bytes < BIG


async def test_a_message_is_written_whole_when_its_sender_has_long_gone(ended):
    async with child(ECHO, ended) as (incoming, outgoing):
        await outgoing.send(request(1, 10 * BIG // 2))
        with anyio.move_on_after(0):
            await outgoing.send(request(2))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(outgoing.send, request(3))
            assert [number(await incoming.receive()) for _ in range(2)] == [1, 3]
    assert not ended


async def test_a_child_that_does_not_read_is_given_up_and_so_is_who_waits_for_it(ended, monkeypatch):
    monkeypatch.setattr(child_messages, "_WRITE_SECONDS", 0.2)
    async with child(DEAF, ended) as (_, outgoing):
        await outgoing.send(request(1, BIG))
        with pytest.raises(anyio.BrokenResourceError):
            await outgoing.send(request(2))
        with pytest.raises(anyio.BrokenResourceError):
            await outgoing.send(message(3))
    assert ended == ["it does not read its input"]


async def test_a_notification_waits_for_no_child_and_comes_behind_what_is_on_its_way(ended):
    async with child(ECHO, ended) as (incoming, outgoing):
        await outgoing.send(request(1, 5 * BIG))
        with anyio.move_on_after(0):
            await outgoing.send(request(4))
        with anyio.move_on_after(0) as scope:
            await outgoing.send(message(2))
        await outgoing.send(message(3))
        assert not scope.cancelled_caught
        assert [number(await incoming.receive()) for _ in range(3)] == [1, 2, 3]
        await outgoing.send(request(5))
        assert number(await incoming.receive()) == 5
    assert not ended


async def test_a_child_that_has_closed_its_input_is_told_of(ended):
    async def send_for_ever(outgoing) -> None:
        while True:
            await outgoing.send(message(1))
            await anyio.lowlevel.checkpoint()

    async with child(CLOSING, ended) as (_, outgoing):
        with pytest.raises(anyio.BrokenResourceError):
            await send_for_ever(outgoing)
    assert ended == ["it closed its input"]


async def test_a_child_may_write_more_than_the_pipe_holds_before_it_ends_by_itself(ended, tmp_path):
    kept = tmp_path / "kept"
    async with child(f"BIG = {BIG}; KEPT = {str(kept)!r}" + LEAVING, ended) as (incoming, _):
        assert number(await incoming.receive()) == 1
    assert kept.read_text() == "kept"
    assert not ended


async def test_a_message_of_several_kinds_is_of_the_one_that_the_sdk_takes_it_for(ended):
    parts: tuple[dict[str, object], ...] = (
        {"id": 1, "result": {"list": [1, None]}},
        {"id": "1", "result": {}, "error": None},
        {"id": 1, "result": {}, "error": {"code": 1, "message": "no"}},
        {"id": None, "result": None, "error": {"code": 1, "message": "no"}},
        {"id": 1, "result": {}, "method": "note"},
        {"id": None, "method": "note", "params": None},
        {"id": 1, "method": "ask", "params": {"a": 1}},
    )
    lines = [json.dumps({"jsonrpc": "2.0", **one}) for one in parts]
    async with child(f"print({chr(10).join(lines)!r})", ended) as (incoming, _):
        for line in lines:
            received = await incoming.receive()
            assert isinstance(received, SessionMessage)
            assert received.message == jsonrpc_message_adapter.validate_json(line, by_name=False)


async def test_a_flood_of_messages_holds_up_no_other_task(ended):
    lines = message(1).message.model_dump_json() + "\n"
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    flood = f"print({lines!r} * 2_000)"
    async with child(flood, ended) as (incoming, _), anyio.create_task_group() as tasks:
        await incoming.receive()
        tasks.start_soon(other)
        for _ in range(1_000):
            await incoming.receive()
        tasks.cancel_scope.cancel()
    assert turns >= 500


@pytest.mark.parametrize(
    ("cancels", "reason"),
    [(False, ["it sent more than 1000 requests and did not wait for answers"]), (True, [])],
    ids=["waits for all", "cancelled"],
)
async def test_requests_that_the_server_has_cancelled_are_not_waited_for(ended, cancels, reason):
    is_done = anyio.Event()

    async def on_request(*_):
        await anyio.sleep_forever()

    async def on_notify(_, method, __):
        if method == "done":
            is_done.set()

    async def run(streams) -> None:
        await JSONRPCDispatcher(*streams).run(on_request, on_notify)
        is_done.set()

    async with child(ASKING.replace("CANCELS", str(cancels)), ended) as streams, anyio.create_task_group() as tasks:
        tasks.start_soon(run, streams)
        await is_done.wait()
        assert ended[:1] == reason
        tasks.cancel_scope.cancel()


async def test_a_long_message_is_read_without_collecting_garbage_amid_it(ended):
    begun: list[str] = []

    def note(phase: str, _: dict[str, int]) -> None:
        begun.extend([phase] if phase == "start" else [])

    async with child(LONG, ended) as (incoming, _):
        gc.callbacks.append(note)
        try:
            received = await incoming.receive()
        finally:
            gc.callbacks.remove(note)
    assert isinstance(received, SessionMessage)
    assert gc.isenabled()
    assert len(begun) < 10
