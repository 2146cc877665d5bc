"""The messages of a server behind HTTP, as the SDK's transport hands them on, with what the server asks counted.

Above: connecting.py. Below: the SDK's streams, child_messages.py for the bound. Each request is a task until its answer
has been taken, and a server that takes none could go on asking.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.types.jsonrpc import JSONRPCError, JSONRPCRequest, JSONRPCResponse

from broker.upstreams.child_messages import FLOODED, REQUESTS, Reading, Stream

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

    from mcp.client._transport import TransportStreams
    from mcp.shared._stream_protocols import ReadStream, WriteStream


def counted(streams: TransportStreams, end: Callable[[str], None]) -> TransportStreams:
    """Return the same streams; `end` takes the reason where too many requests wait for an answer."""
    reading, writing = streams
    waiting = _Waiting()
    return _Incoming(reading, waiting, end), _Outgoing(writing, waiting)


@dataclass(slots=True)
class _Waiting:
    """How many requests wait for our answers."""

    requests: int = 0

    async def settle(self) -> None:
        """Wait no more for the answer to one."""
        self.requests -= 1


class _Incoming(Reading):
    def __init__(
        self, inner: ReadStream[SessionMessage | Exception], waiting: _Waiting, end: Callable[[str], None]
    ) -> None:
        self._inner = inner
        self._waiting = waiting
        self._end = end

    @property
    def last_context(self) -> Context | None:
        """In what context the last message came, for the SDK."""
        found: Context | None = getattr(self._inner, "last_context", None)
        return found

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message.

        Raises:
            anyio.EndOfStream: There is none, or nothing more is read of this server.
        """
        one = await self._inner.receive()
        if isinstance(one, SessionMessage) and isinstance(one.message, JSONRPCRequest):
            self._waiting.requests += 1
            if self._waiting.requests > REQUESTS:
                self._end(FLOODED)
                raise anyio.EndOfStream
            one.metadata = ServerMessageMetadata(on_request_unanswered=self._waiting.settle)
        return one

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Outgoing(Stream):
    def __init__(self, inner: WriteStream[SessionMessage], waiting: _Waiting) -> None:
        self._inner = inner
        self._waiting = waiting

    async def send(self, one: SessionMessage) -> None:
        """Hand a message on."""
        try:
            await self._inner.send(one)
        finally:
            if isinstance(one.message, JSONRPCResponse | JSONRPCError):
                await self._waiting.settle()

    async def aclose(self) -> None:
        await self._inner.aclose()
