"""What is read from a child process.

Above: server_process.py, which opens it, and child_messages.py, which reads it. Below: the system's pipes, or anyio's
streams on Windows, whose pipes do not say when there is something to read.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyio.abc import ByteReceiveStream

CHUNK_BYTES = 64 * 1024
"""The most that is read at once."""


class OutputPipe:
    """A pipe that does not block."""

    def __init__(self, reading_end: int) -> None:
        """Take over the end that is read."""
        self._end: int | None = reading_end
        if sys.platform != "win32":  # where there is `OutputStream`
            os.set_blocking(reading_end, False)

    async def receive(self, is_taken: Callable[[bytes], bool]) -> bytes:
        """Return the next chunk that `is_taken` leaves, which is asked for each and must not raise.

        On asyncio the event loop itself asks: a turn of it sooner than a task that it wakes up, and with less code.

        Raises:
            anyio.EndOfStream: The child has closed it.
            anyio.ClosedResourceError: It was closed here.
            OSError: It cannot be read.
        """
        if self._end is None:
            raise anyio.ClosedResourceError
        is_asyncio = anyio.get_cancelled_exc_class() is asyncio.CancelledError
        chunk = await (_left_on_asyncio if is_asyncio else _left)(self._end, is_taken)
        if not chunk:
            raise anyio.EndOfStream
        return chunk

    async def aclose(self) -> None:
        """Close it. Nobody may be receiving."""
        if self._end is not None:
            os.close(self._end)
            self._end = None


async def _left(end: int, is_taken: Callable[[bytes], bool]) -> bytes:
    while True:
        await anyio.wait_readable(end)
        with suppress(BlockingIOError):
            chunk = os.read(end, CHUNK_BYTES)
            if not chunk or not is_taken(chunk):
                return chunk


async def _left_on_asyncio(end: int, is_taken: Callable[[bytes], bool]) -> bytes:
    loop = asyncio.get_running_loop()
    left: asyncio.Future[bytes] = loop.create_future()

    def read() -> None:
        if left.done():
            return
        try:
            chunk = os.read(end, CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            left.set_exception(error)
            return
        if not chunk or not is_taken(chunk):
            left.set_result(chunk)

    loop.add_reader(end, read)
    try:
        return await left
    finally:
        loop.remove_reader(end)


class OutputStream:
    """A stream that is read by waiting for it."""

    def __init__(self, stream: ByteReceiveStream) -> None:
        """Take over anyio's stream."""
        self._stream = stream

    async def receive(self, is_taken: Callable[[bytes], bool]) -> bytes:
        """See `OutputPipe`.

        Raises:
            anyio.EndOfStream: The child has closed it.
            anyio.ClosedResourceError: It was closed here.
            anyio.BrokenResourceError: It cannot be read.
        """
        while is_taken(chunk := await self._stream.receive(CHUNK_BYTES)):
            pass
        return chunk

    async def aclose(self) -> None:
        """See `OutputPipe`."""
        with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._stream.aclose()


Output: TypeAlias = OutputPipe | OutputStream
"""What a child writes."""
