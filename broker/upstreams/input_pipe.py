"""The stdin of a child process: takes at once what fits into the pipe, and waits only with the rest.

Above: server_process.py, which makes one, and child_messages.py, which writes to it. Below: the system's pipes, or
anyio's streams on Windows, whose pipes do not say what they take at once.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

import anyio

if TYPE_CHECKING:
    from anyio.abc import ByteSendStream


class InputPipe:
    """A pipe that does not block."""

    def __init__(self, writing_end: int) -> None:
        """Take over the end that is written to."""
        self._end: int | None = writing_end
        if sys.platform != "win32":  # where there is `InputStream`
            os.set_blocking(writing_end, False)

    def write(self, data: bytes | memoryview) -> int:
        """Write what is taken at once; return how many bytes that was.

        Raises:
            OSError: The child has closed it.
        """
        if self._end is None:
            raise BrokenPipeError
        try:
            return os.write(self._end, data)
        except BlockingIOError:
            return 0

    async def finish(self, data: bytes) -> None:
        """Write all of it, however long the child takes to read; given up, part of it may have been written.

        Raises:
            OSError: The child has closed it.
            anyio.ClosedResourceError: It was closed here.
        """
        rest = memoryview(data)  # a slow child takes a page at a time, and of bytes each would leave a copy
        while rest:
            if self._end is None:
                raise anyio.ClosedResourceError
            await anyio.wait_writable(self._end)
            rest = rest[self.write(rest) :]

    async def aclose(self) -> None:
        """Close it, so that the child reads its end."""
        if self._end is not None:
            anyio.notify_closing(self._end)
            os.close(self._end)
            self._end = None


class InputStream:
    """A stream that only takes something by waiting."""

    def __init__(self, stream: ByteSendStream) -> None:
        """Take over anyio's stream."""
        self._stream = stream

    def write(self, _data: bytes) -> int:
        """Write nothing."""
        return 0

    async def finish(self, data: bytes) -> None:
        """See `InputPipe`.

        Raises:
            anyio.BrokenResourceError: The child has closed it.
            anyio.ClosedResourceError: It was closed here.
        """
        await self._stream.send(data)

    async def aclose(self) -> None:
        """See `InputPipe`."""
        with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._stream.aclose()


Input: TypeAlias = InputPipe | InputStream
"""What a child reads."""
