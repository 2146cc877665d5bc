"""The files of a store: where they are, made private, and what can be done with them.

Above: store.py, `codemode doctor`. Below: the file system. SQLite keeps a log (`-wal`) and shared memory (`-shm`)
beside the file.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

import platformdirs

from broker.errors import StoreError

VARIABLE = "CODEMODE_STORE"

_LEAST_BYTES = 64 * 1024
_BESIDE = ("-wal", "-shm", "-journal")
_UNWRITABLE = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


def user_store() -> Path:
    """Return where the user's own store is: `CODEMODE_STORE`, else in the user's data folder."""
    if given := os.environ.get(VARIABLE):
        return Path(given)
    return Path(platformdirs.user_data_path("codemode-broker")) / "broker.sqlite3"


def path_of(given: Path | str) -> Path:
    """Return the path of a store, which stays the same when the process goes to another folder.

    Raises:
        StoreError: It is what SQLite takes for something else than a file.
    """
    path = Path(given)
    if str(path) == ":memory:" or str(path).startswith("file:"):
        raise StoreError(
            f"{path} is no path of a file; {instead_of(path)} one. "
            "In a program, Store() without a path keeps all in memory."
        )
    return _absolute(path)


def instead_of(path: Path | None) -> str:
    """Return how to use another file than a store or one beside it: only the user's own is where the variable says."""
    is_users = path is not None and _absolute(path).parent == _absolute(user_store()).parent
    return f"set {VARIABLE} to" if is_users else "use"


def _absolute(path: Path) -> Path:
    try:
        return path.absolute()
    except OSError:  # the folder we are in is gone; opening the file says so
        return path


def is_there(path: Path) -> bool:
    """Tell whether a store is there, or may be: who may not look into its folder is told so when it is opened."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def make_private(path: Path) -> None:
    """Make the file before SQLite does, which would let others read it; its side files take its mode.

    Raises:
        StoreError: It cannot be made, or not be written; it is a device or pipe, whose mode is left as it is, or
            somebody else has put a file beside it, of which SQLite would take over what is in it.
    """
    from sandbox.private_folder import make_private_folder  # noqa: PLC0415  # --help loads nothing of the sandbox

    try:
        make_private_folder(path.parent)
        if path.exists() and not path.is_file():
            raise StoreError(f"{path} is no regular file; {instead_of(path)} another one.")
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        path.chmod(0o600)
        foreign = _foreign_beside(path.resolve())
    except OSError as error:
        what_to_do = f"check that its folder exists and is writable, or {instead_of(path)} another file"
        raise StoreError(
            f"{path} cannot be opened: {error.strerror}; {what_to_do}.", is_read_only=error.errno in _UNWRITABLE
        ) from error
    if foreign is not None:
        raise StoreError(f"{foreign} belongs to another user; remove it, or {instead_of(path)} a file elsewhere.")


def _foreign_beside(path: Path) -> Path | None:
    """Return a side file that is neither of this user nor of the owner of the store."""
    if sys.platform == "win32":
        return None
    owners = {os.geteuid(), path.stat().st_uid}
    for end in _BESIDE:
        beside = path.with_name(path.name + end)
        with suppress(FileNotFoundError):  # another process may be closing the store
            if beside.lstat().st_uid not in owners:
                return beside
    return None


def has_no_room(path: Path | None) -> bool:
    """Tell whether the disk of a store is full."""
    try:
        return path is not None and shutil.disk_usage(path.parent).free < _LEAST_BYTES
    except OSError:
        return False


def log_of(path: Path) -> Path:
    """Return where SQLite writes first what goes into a store."""
    return path.with_name(f"{path.name}-wal")


def identity_of(path: Path) -> tuple[int, int] | None:
    """Return what tells a store from any other file of its name; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def state_of(path: Path) -> tuple[int, ...]:
    """Return what is different after somebody has written to a store."""
    return (*_state(path), *_state(log_of(path)))


def has_log(path: Path) -> bool:
    """Tell whether a part of what was written to a store may be in its log only."""
    return _state(log_of(path))[0] > 0


def _state(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns
