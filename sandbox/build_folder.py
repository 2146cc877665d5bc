"""The folder that an image is built in: removed afterwards, and by the next build where its process was killed.

Above: image_builds.py. Below: the temporary directory, which others may write to. A folder is held by a lock that the
system releases when the process ends, however it ends.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import sys
import tempfile
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "codemode-image-"
LOCK_NAME = "lock"

_ROUNDS = 20


@contextmanager
def build_folder() -> Iterator[Path]:
    """Yield an empty folder of this process alone, which is removed with all that is in it.

    First removes those of builds that were killed, of some hundred megabytes each.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if _is_left_behind(folder):
            _remove(folder)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    remove = atexit.register(partial(_remove, folder))  # the build may be on a thread that nobody waits for
    try:
        with _held(folder):
            yield folder
    finally:
        _remove(folder)
        atexit.unregister(remove)


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


def _remove(folder: Path) -> None:
    """Remove a folder, again and again where a thread still writes to it; its lock last, by which others find it."""
    for _ in range(_ROUNDS):
        with suppress(OSError):
            rest = [path for path in folder.iterdir() if path.name != LOCK_NAME]
            if not rest:
                (folder / LOCK_NAME).unlink(missing_ok=True)
                folder.rmdir()
                return
            for path in rest:
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink()


def _is_left_behind(folder: Path) -> bool:
    """Tell whether a folder is one that a process of this user held which has ended; of Windows nothing is known."""
    if sys.platform != "win32":
        with suppress(OSError):
            found = folder.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
                with (folder / LOCK_NAME).open("rb") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return True
    return False
