"""Calls whose answers come straight from a child's pipe are answered as through the SDK's dispatcher."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from mcp import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

from broker.upstreams import child_calls
from broker.upstreams.child_calls import ChildDispatcher
from broker.upstreams.server_config import ServerConfig
from broker.upstreams.stdio import stdio_streams

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("deadline")]

SERVER = """
import json, os, sys, time
def send(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
heard = []
for line in sys.stdin:
    message = json.loads(line)
    heard.append(message)
    match message.get("params", {}).get("name"):
        case "returns":
            send(id=message["id"], result={"params": message["params"]})
        case "fails":
            send(id=message["id"], error={"code": -7, "message": "no", "data": [1]})
        case "answers with text for a number":
            send(id=str(message["id"]), result={})
        case "answers twice":
            send(id=message["id"], result={"first": True})
            send(id=message["id"], result={})
        case "answers another":
            send(id=message["id"] + 5, result={})
            send(id=None, error={"code": 1, "message": "of no request"})
            send(id=message["id"], result={"own": True})
        case "answers with more beside":
            send(id=message["id"], result={"own": True}, more=1)
        case "answers with an error beside":
            send(id=message["id"], result={"own": True}, error={"code": -7, "message": "no"})
        case "answers with a list":
            send(id=message["id"], result=[1])
            send(id=message["id"], result={"own": True})
        case "answers at length":
            send(id=message["id"], result={"text": "x" * 200_000})
        case "answers in two lines":
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}}).replace(" ", "\\n", 1), flush=True)
        case "answers behind what fills the pipe":
            answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}}) + "\\n"
            os.write(1, b"x" * 65_535 + b"\\n" + answer.encode())
        case "answers with another version":
            send(id=message["id"], result={}, jsonrpc="1.0")
        case "tells":
            send(id=message["id"], result={"heard": heard})
        case "reads no more for a second":
            time.sleep(1)
        case "closes its output and reads later":
            os.close(1)
            time.sleep(1)
        case "ends":
            break
"""
CASES = (
    "returns",
    "fails",
    "answers with text for a number",
    "answers twice",
    "answers another",
    "answers with more beside",
    "answers with an error beside",
    "answers with a list",
    "answers at length",
    "answers in two lines",
    "answers behind what fills the pipe",
    "answers with another version",
)


@asynccontextmanager
async def connected(kind=ChildDispatcher):
    async with (
        stdio_streams(
            ServerConfig(command=sys.executable, args=("-c", SERVER)), lambda _reason: None, redact=str
        ) as streams,
        anyio.create_task_group() as tasks,
    ):
        dispatcher = kind(*streams)

        async def on_notify(*_):
            pass

        await tasks.start(dispatcher.run, None, on_notify)
        yield dispatcher
        tasks.cancel_scope.cancel()


async def answered(dispatcher, name, options=None, arguments=1):
    try:
        return await dispatcher.send_raw_request("tools/call", {"name": name, "arguments": {"a": arguments}}, options)
    except MCPError as error:
        return error.error


async def ids_of_calls(dispatcher):
    return [one["id"] for one in (await answered(dispatcher, "tells"))["heard"] if one["method"] == "tools/call"]


@pytest.mark.parametrize("case", CASES)
async def test_a_call_is_answered_as_through_the_sdk(case):
    async with connected() as ours, connected(JSONRPCDispatcher) as theirs:
        assert await answered(ours, case) == await answered(theirs, case)
        assert await answered(ours, "returns") == await answered(theirs, "returns")


async def test_calls_at_the_same_time_each_have_their_own_answer():
    found = {}
    async with connected() as dispatcher:

        async def call(number):
            params = {"name": "returns", "arguments": {"number": number}}
            found[number] = (await dispatcher.send_raw_request("tools/call", params))["params"]["arguments"]["number"]

        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(call, number)
    assert found == {number: number for number in range(50)}


async def test_the_child_is_told_of_a_cancelled_call():
    async with connected() as dispatcher:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(answered, dispatcher, "is silent")
            while len(await ids_of_calls(dispatcher)) < 2:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        heard = (await answered(dispatcher, "tells"))["heard"]
    [silent] = [one["id"] for one in heard if one.get("params", {}).get("name") == "is silent"]
    told = [one["params"]["requestId"] for one in heard if one["method"] == "notifications/cancelled"]
    assert told == [silent]


@pytest.mark.parametrize("options", [{}, {"timeout": 60}], ids=["ours", "the SDK's"])
async def test_a_call_is_left_at_once_though_its_child_does_not_read_and_the_child_is_told_later(options):
    big = {"name": "is silent", "arguments": {"a": "x" * 1_000_000}}
    async with connected() as dispatcher:
        assert (await answered(dispatcher, "returns"))["params"]
        await dispatcher.notify("note", {"name": "reads no more for a second"})
        began = anyio.current_time()
        for arguments in (big, {"name": "never sent"}):
            with anyio.move_on_after(0.05) as scope:
                await dispatcher.send_raw_request("tools/call", arguments, options)
            assert scope.cancelled_caught
        assert anyio.current_time() - began < 0.5
        heard = (await answered(dispatcher, "tells"))["heard"]
    sent = {one["params"]["name"]: one.get("id") for one in heard if "name" in one["params"]}
    told = [one["params"]["requestId"] for one in heard if one["method"] == "notifications/cancelled"]
    assert told[0] == sent["is silent"]
    assert len(told) == (1 if not options else 2)  # the SDK tells of requests that were not written too
    assert "never sent" not in sent


@pytest.mark.parametrize("way", ["send_at_once", "send_raw_request"])
async def test_nothing_is_sent_for_somebody_who_has_been_cancelled(way):
    async with connected() as dispatcher:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await getattr(dispatcher, way)("tools/call", {"name": "returns"})
        assert scope.cancelled_caught
        assert [one["params"]["name"] for one in (await answered(dispatcher, "tells"))["heard"]] == ["tells"]


async def test_a_call_for_which_the_pipe_has_no_room_is_left_to_the_way_that_waits_for_it():
    big = {"name": "returns", "arguments": {"a": "x" * 1_000_000}}
    async with connected() as dispatcher:
        assert (await answered(dispatcher, "returns"))["params"]
        await dispatcher.notify("note", {"name": "reads no more for a second"})
        begun = await dispatcher.send_at_once("tools/call", big)
        assert begun is not None
        assert await dispatcher.send_at_once("tools/call", {"name": "is silent"}) is None
        assert await answered(dispatcher, "returns") == {"params": {"name": "returns", "arguments": {"a": 1}}}
        assert await dispatcher.answer(begun) == {"params": big}
        heard = (await answered(dispatcher, "tells"))["heard"]
    assert [one["params"]["name"] for one in heard if "id" in one] == ["returns", "returns", "returns", "tells"]


async def test_the_child_is_told_of_a_call_that_is_cancelled_after_it_was_sent_at_once():
    async with connected() as dispatcher:
        begun = await dispatcher.send_at_once("tools/call", {"name": "is silent"})
        assert begun is not None
        with anyio.CancelScope() as scope:
            scope.cancel()
            await dispatcher.answer(begun)
        assert scope.cancelled_caught
        silent, told, _ = (await answered(dispatcher, "tells"))["heard"]
    assert (told["method"], told["params"]["requestId"]) == ("notifications/cancelled", silent["id"])


async def test_nothing_is_sent_at_once_to_a_child_that_has_ended_and_what_was_fails():
    async with connected() as dispatcher:
        begun = await dispatcher.send_at_once("tools/call", {"name": "ends"})
        assert begun is not None
        with pytest.raises(MCPError, match="Connection closed"):
            await dispatcher.answer(begun)
        assert await dispatcher.send_at_once("tools/call", {"name": "returns"}) is None


async def test_calls_fail_that_wait_when_the_child_ends_and_those_after_it():
    found = []

    async def call(name):
        found.append(await answered(dispatcher, name))

    async with connected() as dispatcher:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, "is silent")
            tasks.start_soon(call, "ends")
        await call("returns")
    assert [(one.code, one.message) for one in found] == [(-32000, "Connection closed")] * 3


async def test_a_call_fails_that_could_only_be_written_when_nothing_was_read_any_more():
    found = []

    async def call(arguments):
        found.append(await answered(dispatcher, "is silent", arguments=arguments))

    async with connected() as dispatcher:
        assert (await answered(dispatcher, "returns"))["params"]
        await dispatcher.notify("note", {"name": "closes its output and reads later"})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, "x" * 1_000_000)
            tasks.start_soon(call, "")
    assert [(one.code, one.message) for one in found] == [(-32000, "Connection closed")] * 2


async def test_what_takes_more_than_an_answer_goes_the_way_of_the_sdk(monkeypatch):
    async def on_progress(*_):
        pass

    ways: list[Any] = [{"on_progress": on_progress}, {"timeout": 5}, {"request_id": 77}, {"headers": {}}, {}]
    async with connected() as dispatcher:
        for options in ways:
            await answered(dispatcher, "returns", options)
        monkeypatch.setattr(child_calls, "is_in_span", lambda: True)
        await answered(dispatcher, "returns")
        ids = await ids_of_calls(dispatcher)
    assert ids == [1, 2, 77, 1_000_000_000, 1_000_000_001, 3, 4]
