"""The messages of a server behind HTTP, as the SDK hands them on: its requests counted, its answers checked.

Above: connecting.py. Below: the SDK's streams, http_trail.py, message_bounds.py. Each request is a task until its
answer has been taken, and a server that takes none could go on asking. An answer as JSON names the request that it is
for, and the SDK would hand it to whoever has sent that.
"""

from __future__ import annotations

from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.types.jsonrpc import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from broker.upstreams.message_bounds import FLOODED, REQUESTS
from broker.upstreams.sdk_streams import ReadingStream, Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.client._transport import TransportStreams
    from mcp.shared._stream_protocols import ReadStream, WriteStream

    from broker.upstreams.http_trail import HttpTrail

_Answer = JSONRPCResponse | JSONRPCError

_CANCEL_SECONDS = 0.5
"""How long the end of a call waits until the server is told that it was cancelled."""

_STUCK_SECONDS = 10.0


def watched(streams: TransportStreams, trail: HttpTrail, end: Callable[[str], None]) -> TransportStreams:
    """Return the same streams; `end` takes the reason where too many requests wait, or nothing more can be sent.

    What is answered to a call that the trail knows goes to that call.
    """
    reading, writing = streams
    waiting = _Waiting()
    return _Incoming(reading, trail, waiting, end), _Outgoing(writing, trail, waiting, end)


@dataclass(slots=True)
class _Waiting:
    """How many requests wait for our answers."""

    requests: int = 0

    async def settle(self) -> None:
        """Wait no more for the answer to one."""
        self.requests -= 1


class _Incoming(ReadingStream):
    def __init__(
        self,
        inner: ReadStream[SessionMessage | Exception],
        trail: HttpTrail,
        waiting: _Waiting,
        end: Callable[[str], None],
    ) -> None:
        self._inner = inner
        self._trail = trail
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
        sent = self._trail.sent_in(self.last_context)
        if sent is not None and isinstance(one, SessionMessage) and isinstance(one.message, _Answer):
            one.message = sent.own(one.message)
        return one

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Outgoing(Stream):
    """The SDK sends one message after the other, and waits for what is answered to all but requests."""

    def __init__(
        self, inner: WriteStream[SessionMessage], trail: HttpTrail, waiting: _Waiting, end: Callable[[str], None]
    ) -> None:
        self._inner = inner
        self._trail = trail
        self._waiting = waiting
        self._end = end
        self._stuck_since: float | None = None

    async def send(self, one: SessionMessage) -> None:
        """Hand a message on; that a call was cancelled only if that takes no time."""
        sent = self._trail.sent_in(copy_context())
        if isinstance(one.message, JSONRPCNotification) and one.message.method == "notifications/cancelled":
            # There is nothing to take back of a call that was refused; in the newer era the SDK would break off the
            # login that it waits for, and lose a refresh token that is good for one use.
            if sent is None or sent.refused is None:
                await self._take_back(one)
            return
        if isinstance(one.message, JSONRPCRequest) and sent is not None:
            sent.request_id = one.message.id
        try:
            await self._inner.send(one)
            self._stuck_since = None
        finally:
            if isinstance(one.message, _Answer):
                await self._waiting.settle()

    async def _take_back(self, one: SessionMessage) -> None:
        with anyio.move_on_after(_CANCEL_SECONDS):
            await self._inner.send(one)
            self._stuck_since = None
            return
        now = anyio.current_time()
        if self._stuck_since is None:
            self._stuck_since = now
        elif now - self._stuck_since >= _STUCK_SECONDS:
            self._end("it does not answer what it is told")

    async def aclose(self) -> None:
        await self._inner.aclose()
