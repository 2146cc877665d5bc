"""The folder that an image is built in: removed afterwards, and by the next build where its process was killed.

Above: image_builds.py. Below: the temporary directory, which others may write to. A folder is held by a lock that the
system releases when the process ends, however it ends.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "codemode-image-"
LOCK_NAME = "lock"


@contextmanager
def build_folder() -> Iterator[Path]:
    """Yields an empty folder of this process alone, which is removed with all that is in it.

    First removes those of builds that were killed, of some hundred megabytes each.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if _is_left_behind(folder):
            shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        folder = Path(name)
        with _held(folder):
            yield folder


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    handle, unseen = tempfile.mkstemp(dir=folder)
    try:
        if sys.platform != "win32":
            fcntl.flock(handle, fcntl.LOCK_EX)
            # Only now under the name that others look for: none of them ever finds it free.
            Path(unseen).rename(folder / LOCK_NAME)
        yield
    finally:
        os.close(handle)


def _is_left_behind(folder: Path) -> bool:
    """Whether a folder is one that a process of this user held which has ended; of Windows nothing is known."""
    if sys.platform != "win32":
        with suppress(OSError):
            found = folder.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
                with (folder / LOCK_NAME).open("rb") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return True
    return False
