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
    """A file that takes everything; what comes after a fault is lost.

    Attributes:
        fault: What was lost for another reason than that nobody reads it, in words.
    """

    fault = ""
    _has_ended = False

    def write(self, data: Buffer, /) -> int:
        """Write as far as that goes; a pipe that whoever started us has made non-blocking is waited for."""
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
    """Open those that are closed, which other files would take the place of, and let all last.

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
    """Return why stdout could not be written; empty where it could, or nobody reads it."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw.fault if isinstance(raw, LastingFile) else ""


def _lasting(stream: TextIO | None, number: int) -> io.TextIOWrapper:
    buffer = io.BufferedWriter(LastingFile(number, "w", closefd=False))
    encoding = stream.encoding if stream is not None else "utf-8"
    return io.TextIOWrapper(
        buffer, encoding, "backslashreplace", line_buffering=stream is None or bool(stream.line_buffering)
    )
