"""Clients that look for the newer era first and shake hands after all, as those do that wait no longer."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from broker.server.late_handshake import serve_connection

pytestmark = pytest.mark.anyio

CLIENT = {"name": "test", "version": "1"}
ENVELOPE = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": CLIENT,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}
HANDSHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}


class Wire:
    """The client's end of a connection."""

    def __init__(self, sending, receiving):
        self._sending = sending
        self._receiving = receiving

    async def send(self, number, method, params):
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        await self._sending.send(SessionMessage(jsonrpc_message_adapter.validate_python(message)))

    async def answer(self, number):
        """Wait for the answer to a request, whatever comes before it."""
        async for one in self._receiving:
            message = one.message.model_dump(by_alias=True, exclude_unset=True)
            if message.get("id") == number:
                return message
        raise AssertionError("the server went")

    async def ask(self, number, method, params):
        await self.send(number, method, params)
        return await self.answer(number)


@pytest.fixture
def wire(served):
    @asynccontextmanager
    async def connect():
        sending, incoming = anyio.create_memory_object_stream[Any](10)
        outgoing, receiving = anyio.create_memory_object_stream[Any](10)
        async with served() as server, anyio.create_task_group() as tasks, receiving:
            tasks.start_soon(serve_connection, server.mcp, incoming, outgoing)
            async with sending:
                yield Wire(sending, receiving)

    return connect


@pytest.mark.parametrize("waits", [False, True], ids=["unanswered", "answered"])
async def test_a_handshake_after_a_probe_is_answered_and_opens_the_older_era(wire, waits):
    async with wire() as client:
        await client.send(0, "server/discover", ENVELOPE)
        if waits:
            await client.answer(0)
        shaken = await client.ask(1, "initialize", HANDSHAKE)
        listed = await client.ask(2, "tools/list", {})
    assert shaken["result"]["protocolVersion"] == "2025-11-25"
    assert len(listed["result"]["tools"]) == 3


async def test_a_probe_that_is_answered_opens_the_newer_era(wire):
    async with wire() as client:
        found = await client.ask(0, "server/discover", ENVELOPE)
        listed = await client.ask(1, "tools/list", ENVELOPE)
    assert found["result"]["supportedVersions"] == ["2026-07-28"]
    assert len(listed["result"]["tools"]) == 3


async def test_a_handshake_after_other_requests_is_refused(wire):
    async with wire() as client:
        await client.ask(0, "server/discover", ENVELOPE)
        await client.ask(1, "tools/list", ENVELOPE)
        refused = await client.ask(2, "initialize", HANDSHAKE)
        listed = await client.ask(3, "tools/list", ENVELOPE)
    assert refused["error"]["code"] == -32022
    assert len(listed["result"]["tools"]) == 3


async def test_a_second_handshake_begins_nothing_anew(wire):
    async with wire() as client:
        await client.ask(0, "initialize", HANDSHAKE)
        await client.ask(1, "initialize", HANDSHAKE)
        described = await client.ask(
            2, "tools/call", {"name": "get_tool_details", "arguments": {"tools": ["desk.add"]}}
        )
    assert described["result"]["isError"] is False
