"""Reads a file that a person has named: a config, a policy, a script, a recording; tells what is no name of a file.

Above: whatever reads one, or writes one. Below: the system. The name may be that of a device, which has no size and no
end, or of a pipe, as a shell's `<(…)` is, whose other end nobody may have opened.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_PIECE_BYTES = 1024 * 1024


def read_named(path: Path, most: int) -> bytes:
    """Return the content of a file, at most so many bytes.

    Raises:
        OSError: It cannot be read, or is a pipe of which nothing comes.
    """
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "its name has a NUL character")
    data = bytearray()
    with open(path, "rb", buffering=0, opener=_without_waiting) as file:  # a Path has no opener
        while len(data) < most and (piece := file.read(min(_PIECE_BYTES, most - len(data)))):
            data += piece
        if not data and stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.ENODATA, "nothing comes from this pipe")
    return bytes(data)


def names_a_folder(given: str | os.PathLike[str]) -> bool:
    """Tell whether a name ends as that of a folder, there or not: a `Path` made of it leaves the slash out."""
    return os.fspath(given).endswith((os.sep, os.altsep or os.sep))


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; the system would wait until somebody opens the other end of a pipe, whatever signals come."""
    if sys.platform == "win32":
        return os.open(path, flags)
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)
    return descriptor
