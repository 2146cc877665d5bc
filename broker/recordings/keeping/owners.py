"""Which process a running run belongs to, and whether that process still lives.

Above: recordings.py. Below: a lock on a file, which the system releases when the process ends, however it ends.
"""

from __future__ import annotations

import errno
import os
import secrets
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from broker.errors import StoreError
from broker.store_files import instead_of
from sandbox.private_folder import make_private_folder

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

if TYPE_CHECKING:
    from pathlib import Path


class Owner:
    """This process, as others see it; with no folder there are no others."""

    def __init__(self, folder: Path | None) -> None:
        """Take the lock, in a file that others can find.

        Raises:
            StoreError: The file cannot be made.
        """
        self.name = f"{os.getpid()}-{secrets.token_hex(8)}"
        self._folder = folder
        self._file: int | None = None
        if folder is not None:
            try:
                make_private_folder(folder)
                self._file = os.open(folder / self.name, os.O_RDWR | os.O_CREAT, 0o600)
            except OSError as error:
                raise StoreError(
                    f"{folder} cannot be used: {error.strerror}; check that it is a folder and writable, or "
                    f"{instead_of(folder)} another file for the store."
                ) from error
            _lock(self._file)

    def close(self) -> None:
        """Give the lock back: what this process had running is interrupted."""
        if self._file is not None and self._folder is not None:
            os.close(self._file)  # first: Windows removes no open file
            (self._folder / self.name).unlink(missing_ok=True)
            self._file = None


def is_of_this_process(name: str) -> bool:
    """Tell whether an owner is of this process, perhaps of another broker in it."""
    return name.partition("-")[0] == str(os.getpid())


def lives(folder: Path | None, name: str) -> bool:
    """Tell whether the process of that name, another one than this, has not ended."""
    if folder is None or not name or not {"/", "\0"}.isdisjoint(name):
        return False
    try:
        file = _opened(folder / name)
    except OSError as error:
        return error.errno not in {errno.ENOENT, errno.ENOTDIR}
    try:
        if not _lock(file):
            return True
        with suppress(OSError):
            (folder / name).unlink()
        return False
    finally:
        os.close(file)


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR)  # NFS locks no other file
    except OSError as error:
        if error.errno not in {errno.EROFS, errno.EACCES}:
            raise
        return os.open(path, os.O_RDONLY)


def _lock(file: int) -> bool:
    """Return whether the lock was free."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
