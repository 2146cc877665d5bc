"""A file without a name: however the processes end that hold it, nothing is left of it.

On Linux it lies in memory, where no folder's mount options concern it, and is sealed; elsewhere it is a temporary file.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import IO

if sys.platform != "win32":
    import fcntl


def nameless_file(label: str, content: bytes, *, is_written: bool = False) -> IO[bytes]:
    """Make one that holds `content`, and on Linux can hold nothing else, whoever has a descriptor of it.

    Args:
        label: What the system's lists of open files call it.
        content: Its bytes.
        is_written: Whether they may change later; their number never does.

    Raises:
        OSError: There is no room for it.
    """
    if sys.platform == "linux" and hasattr(os, "memfd_create"):
        file = _filled(os.fdopen(os.memfd_create(label, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING), "w+b"), content)
        seals = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals if is_written else seals | fcntl.F_SEAL_WRITE)
        return file
    return _filled(tempfile.TemporaryFile(), content)


def _filled(file: IO[bytes], content: bytes) -> IO[bytes]:
    with contextlib.ExitStack() as undo:
        undo.enter_context(file)
        file.write(content)
        file.flush()
        undo.pop_all()
    return file
