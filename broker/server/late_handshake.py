"""Serves a client that looked for the newer era first, and makes the older handshake after all.

Above: `codemode serve`, over standard streams. Below: the SDK, which serves a connection in the era of its first
request and refuses `initialize` once that was `server/discover`. A client waits a few seconds for that answer, fewer
than a server may take to start on a busy machine, and then gives the server up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCRequest

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.server import Server

Received: TypeAlias = SessionMessage | Exception

PROBE, HANDSHAKE = "server/discover", "initialize"


async def serve_connection(
    server: Server[Any],
    incoming: MemoryObjectReceiveStream[Received],
    outgoing: MemoryObjectSendStream[SessionMessage],
) -> None:
    """Serve a client until it goes; from the start where it shakes hands after nothing but probes."""
    handshake: SessionMessage | None = None
    async with incoming, outgoing:
        while True:
            relayed, receiving = anyio.create_memory_object_stream[Received](0)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(server.run, receiving, outgoing.clone(), server.create_initialization_options())
                async with relayed:
                    handshake = await _relay(handshake, incoming, relayed)
            if handshake is None:
                return


async def _relay(
    first: SessionMessage | None,
    incoming: MemoryObjectReceiveStream[Received],
    relayed: MemoryObjectSendStream[Received],
) -> SessionMessage | None:
    """Pass messages on until the end; return the handshake that cannot be answered behind what was passed on."""
    asked: set[str] = set()
    if first is not None:
        asked.add(HANDSHAKE)
        await relayed.send(first)
    async for one in incoming:
        if isinstance(one, SessionMessage) and isinstance(one.message, JSONRPCRequest):
            if one.message.method == HANDSHAKE and asked == {PROBE}:
                return one
            asked.add(one.message.method)
        await relayed.send(one)
    return None
