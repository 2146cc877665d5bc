"""What a server behind HTTP answers, read within bounds: so many bytes, uncompressed, and while somebody waits for it.

Above: http_trail.py, which sees each answer. Below: httpx2. The SDK bounds events alone. Any other answer it reads to
its end, however long that is, and one that is compressed may be a thousand times as long.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
import httpx2

from broker.upstreams.child_messages import LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

OVER_BOUND = f"its answer is over our bound of {LINE_BYTES} bytes"
COMPRESSED = "it sent a compressed answer, which nobody had asked for"
LATE = "nobody waits for its answer any more"

STREAM = "text/event-stream"
STREAM_SECONDS = 0.1
"""How soon after it was opened a stream is opened again; servers ask for less."""


class UnreadError(httpx2.StreamError):
    """An answer that is not read to its end; the text says why."""


class BoundedBody(httpx2.AsyncByteStream):
    """The body of an answer."""

    def __init__(self, answer: httpx2.Response, is_late: Callable[[], bool], on_unread: Callable[[str], None]) -> None:
        """Take the body of an answer; `is_late` tells that nobody waits for it, `on_unread` is told why it is left."""
        assert isinstance(answer.stream, httpx2.AsyncByteStream)  # noqa: S101  # it is one of an asynchronous client
        self._body = answer.stream
        self._is_compressed = answer.headers.get("content-encoding", "identity") != "identity"
        self._most_bytes = math.inf if STREAM in answer.headers.get("content-type", "").lower() else LINE_BYTES
        self._is_late = is_late
        self._on_unread = on_unread

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        """Yield its pieces.

        Raises:
            UnreadError: The rest is not read.
        """
        if self._is_compressed:
            raise self._unread(COMPRESSED)
        size = 0
        async for piece in self._body:
            size += len(piece)
            if size > self._most_bytes:
                raise self._unread(OVER_BOUND)
            if self._is_late():
                raise self._unread(LATE)
            yield piece

    async def aclose(self) -> None:
        """Close it."""
        await self._body.aclose()

    def _unread(self, why: str) -> UnreadError:
        self._on_unread(why)
        return UnreadError(why)


@dataclass(slots=True)
class Pace:
    """How often a stream is opened that its server ends again and again."""

    _opened_at: float = -math.inf

    async def wait(self) -> None:
        """Wait until it may be opened."""
        await anyio.sleep_until(self._opened_at + STREAM_SECONDS)
        self._opened_at = anyio.current_time()
