"""Reads the answers of servers behind HTTP within bounds: so many bytes, uncompressed, while somebody waits for them.

Above: http_trail.py, which sees each answer. Below: httpx2. The SDK bounds the bytes of events alone. Any other answer
it reads to its end, however long that is, and one that is compressed may be a thousand times as long. A message is
counted before the SDK, which decodes it, has its last piece.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import httpx2

from broker.upstreams.message_bounds import LINE_BYTES, MANY_VALUES, OVER_BOUND, VALUES
from broker.value_count import values_in

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
    from contextlib import AbstractContextManager

COMPRESSED = "it sent a compressed answer, which nobody had asked for"
UNREACHED = "nothing answers at its URL"
BROKEN_OFF = "it closed the connection before it answered"
LATE = "nobody waits for its answer any more"
NO_TIME = "it said when to ask again, and that is no time"

STREAM = "text/event-stream"
_LINE_END = re.compile(rb"\r\n|\n|\r")
_RETRY = re.compile(rb"(?:^|[\r\n])retry:([^\r\n]*)")
_EVENT_ENDS = (b"\n\n", b"\n\r", b"\r\r")
_LONGEST_RETRY = 10**12
STREAM_SECONDS = 0.1
"""How soon after it was opened a stream is opened again; servers ask for less."""


_TURN_BYTES = 4 * 1024
_TURN_LINES = 256


class UnreadError(httpx2.StreamError):
    """An answer was not read to its end; the text says why."""


class BoundedBody(httpx2.AsyncByteStream):
    """The body of an answer."""

    def __init__(
        self,
        answer: httpx2.Response,
        waited_for: Callable[[], AbstractContextManager[None]],
        on_unread: Callable[[str], None],
    ) -> None:
        """Take an answer's body, each piece awaited in a `waited_for` block; `on_unread` gets why it was not read."""
        assert isinstance(answer.stream, httpx2.AsyncByteStream)  # noqa: S101  # it is one of an asynchronous client
        self._body = answer.stream
        self._is_compressed = answer.headers.get("content-encoding", "identity") != "identity"
        self._is_stream = STREAM in answer.headers.get("content-type", "").lower()
        self._message = bytearray()
        self._waited_for = waited_for
        self._on_unread = on_unread

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        """Yield its pieces.

        Raises:
            UnreadError: The rest is not read.
        """
        if self._is_compressed:
            raise self._unread(COMPRESSED)
        pieces = aiter(self._body)
        try:
            while (piece := await self._next(pieces)) is not None:
                for part in _turns(piece):
                    self._message += part
                    if self._is_stream:
                        self._end_events(len(part))
                    if len(self._message) > LINE_BYTES:
                        raise self._unread(OVER_BOUND)
                    yield part
                    await anyio.lowlevel.checkpoint()
        except httpx2.TransportError:
            if self._is_stream:
                raise  # it may be opened again
            raise self._unread(BROKEN_OFF) from None
        self._end_message(len(self._message))

    async def _next(self, pieces: AsyncIterator[bytes]) -> bytes | None:
        with self._waited_for():
            return await anext(pieces, None)

    def _end_events(self, size: int) -> None:
        """Count the events that end within the last bytes: where two line ends meet, each of one or two characters."""
        begin = max(len(self._message) - size - 1, 0)
        if (end := max(self._message.rfind(pair, begin) for pair in _EVENT_ENDS)) >= 0:
            self._end_message(end + 2)

    def _end_message(self, end: int) -> None:
        ended = bytes(self._message[:end])
        if self._is_stream and not all(map(_is_time, _RETRY.findall(ended))):
            raise self._unread(NO_TIME)
        if any(values_in(one, VALUES) > VALUES for one in (_data_of(ended) if self._is_stream else [ended])):
            raise self._unread(MANY_VALUES)
        del self._message[:end]

    async def aclose(self) -> None:
        """Close it."""
        await self._body.aclose()

    def _unread(self, why: str) -> UnreadError:
        self._on_unread(why)
        return UnreadError(why)


def _is_time(retry: bytes) -> bool:
    """Tell whether the SDK can sleep for so many milliseconds, or passes over what is no number; else it would fail."""
    try:
        return 0 <= int(retry.decode("utf-8", "replace")) < _LONGEST_RETRY
    except ValueError:
        return True


def _turns(piece: bytes) -> Iterator[bytes]:
    """Yield what is handed on before others have their turn: of many lines a few, as each may be an event."""
    size = _TURN_BYTES if piece.count(b"\n") + piece.count(b"\r") > _TURN_LINES else max(len(piece), 1)
    for begin in range(0, len(piece), size):
        yield piece[begin : begin + size]


def _data_of(events: bytes) -> Iterator[bytes]:
    """Yield the data of each event, so that no quote outside of it counts."""
    data: list[bytes] = []
    for line in _LINE_END.split(events):
        if line.startswith(b"data:"):
            data.append(line[len(b"data:") :])
        elif not line:
            yield b"\n".join(data)
            data = []
    yield b"\n".join(data)


@dataclass(slots=True)
class StreamInterval:
    """Bounds how often a stream is opened again that its server keeps ending."""

    _opened_at: float = -math.inf

    async def wait(self) -> None:
        """Wait until it may be opened."""
        await anyio.sleep_until(self._opened_at + STREAM_SECONDS)
        self._opened_at = anyio.current_time()
