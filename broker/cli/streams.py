"""The standard streams of `codemode`: one that is closed or cannot be written ends the writing, not the command.

Above: `main`. Below: the descriptors 0 to 2. A run has called tools when its reader goes away or the disk that its
output goes to is full, and the journal has what it prints.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

    from typing_extensions import Buffer

_GONE = {errno.EPIPE, errno.EBADF, errno.EIO}  # nobody reads any more: a pipe, nothing, a terminal that was closed


class LastingFile(io.FileIO):
    """A file that never fails to be written; after a fault, what is written is lost.

    Attributes:
        fault: Why output was lost, in words; empty if only because nobody reads it.
    """

    fault = ""
    _has_ended = False

    def write(self, data: Buffer, /) -> int:
        """Write as much as possible; wait for a pipe that somebody else has made non-blocking."""
        if not self._has_ended:
            try:
                return self._written(data)
            except OSError as error:
                self._has_ended = True
                if error.errno not in _GONE:
                    self.fault = error.strerror or str(error)
        return memoryview(data).nbytes

    def _written(self, data: Buffer) -> int:
        while (written := super().write(data)) is None:
            select.select((), (self,), ())
        return written


def open_standard_streams() -> None:
    """Open the standard streams that are closed, before other files take their numbers, and make all of them last.

    What an encoding lacks is written as its escape. Windows keeps its own: its terminals take text, not bytes.
    """
    if sys.platform == "win32":
        return
    for number in range(3):
        with suppress(OSError):
            os.fstat(number)
            continue
        os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115  # open as long as the process
    sys.stdout, sys.stderr = _lasting(sys.stdout, 1), _lasting(sys.stderr, 2)


def lost_output() -> str:
    """Return why stdout could not be written; empty if it could, or if nobody reads it."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw.fault if isinstance(raw, LastingFile) else ""


def _lasting(stream: TextIO | None, number: int) -> io.TextIOWrapper:
    buffer = io.BufferedWriter(LastingFile(number, "w", closefd=False))
    encoding = stream.encoding if stream is not None else "utf-8"
    return io.TextIOWrapper(
        buffer, encoding, "backslashreplace", line_buffering=stream is None or bool(stream.line_buffering)
    )
