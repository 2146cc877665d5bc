"""The connection to the file of a store: how it is opened, also where nothing can be written; what is wrong, in words.

Above: store.py. Below: sqlite3, store_files.py.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from broker.errors import StoreError
from broker.store_files import has_log, has_no_room, instead_of, log_of, make_private, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

BUSY_SECONDS = 5.0
"""How long a statement waits for another process that writes."""

NEW_ONE = "move it away, and a new one is made"
"""What to do with a store that is damaged."""

_RETRY_SECONDS = 0.02
_FAULT_CHARACTERS = 100
# By the primary code of SQLite's result; the low byte of the extended one.
_PROBLEMS = {
    sqlite3.SQLITE_FULL: "the disk is full; free some space",
    sqlite3.SQLITE_READONLY: "it cannot be written to; make the file and its folder writable",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check that its folder exists and is writable",
    sqlite3.SQLITE_PERM: "it may not be opened; check who owns the file",
    sqlite3.SQLITE_AUTH: "it may not be opened; check who owns the file",
    sqlite3.SQLITE_CORRUPT: f"it is damaged; {NEW_ONE}",
    sqlite3.SQLITE_NOTADB: "it is not a database of codemode; move it away, and codemode makes a new one",
    sqlite3.SQLITE_BUSY: f"another process has kept it locked for {BUSY_SECONDS:g} s; end that process",
    sqlite3.SQLITE_LOCKED: f"another process has kept it locked for {BUSY_SECONDS:g} s; end that process",
    sqlite3.SQLITE_IOERR: "it cannot be read or written; check the disk, or choose a folder on a local one",
}
_NO_ROOM = frozenset({sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY})


def open_to_write(path: Path | None) -> sqlite3.Connection:
    """Open the file and make it, private to the user, where there is none; None is memory.

    Raises:
        StoreError: It cannot be used; the text says what to do.
    """
    if path is not None:
        make_private(path)
    return _opened(":memory:" if path is None else str(path), path, _begin_log)


def open_to_read(path: Path, problem: StoreError) -> tuple[sqlite3.Connection, tuple[int, ...] | None]:
    """Open what cannot be written: on a full disk, on a file system that is read-only, in the folder of somebody else.

    Returns:
        The connection, and `state_of` the file where what is read is right only for as long as that stays.

    Raises:
        StoreError: `problem`, or that it cannot be read either.
    """
    uri = path.resolve().as_uri()
    with suppress(StoreError):
        return _opened(f"{uri}?mode=ro", path, _try_log), None
    if has_log(path):
        raise StoreError(
            f"{problem} It cannot be read there either, as a part of it is in {log_of(path).name}: copy both to a "
            f"folder that you may write to, and {instead_of(path)} the copy."
        )
    # Without a log it is whole for as long as nobody writes to it from elsewhere.
    unchanged = state_of(path)
    try:
        return _opened(f"{uri}?immutable=1", path, _try_log), unchanged
    except StoreError:
        raise problem from None


def name_of(path: Path | None) -> str:
    """Return how errors call a store."""
    return "the store in memory" if path is None else str(path)


def problem_of(error: sqlite3.Error, path: Path | None) -> StoreError | None:
    """Return what went wrong with the file, in words; None where it is something else."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None and isinstance(error, sqlite3.OperationalError):
        code = sqlite3.SQLITE_CORRUPT  # a text in it is not UTF-8: sqlite3 says so by itself, and shows the text
    code = sqlite3.SQLITE_ERROR if code is None else code & 0xFF
    if code in _NO_ROOM and has_no_room(path):
        code = sqlite3.SQLITE_FULL  # SQLite says so only of some of its files
    words = _PROBLEMS.get(code)
    if code == sqlite3.SQLITE_ERROR and path is not None and isinstance(error, sqlite3.OperationalError):
        from codegen.plain_text import one_line  # noqa: PLC0415  # Tab completion reads stores without codegen

        # Our statements fit the tables that we have made.
        words = f"its tables are not those of codemode ({one_line(str(error), _FAULT_CHARACTERS)}); {NEW_ONE}"
    if words is None:
        return None
    return StoreError(
        f"{name_of(path)}: {words}.",
        is_busy=code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED},
        is_read_only=code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN},
        is_damaged=code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR},
    )


def _opened(
    name: str, path: Path | None, prepare: Callable[[sqlite3.Connection, Path | None], None]
) -> sqlite3.Connection:
    with _in_words(path):
        connection = sqlite3.connect(
            name,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            uri=name.startswith("file:"),
        )
        try:
            prepare(connection, path)
            connection.execute("PRAGMA foreign_keys = ON")
            # The schema is read from the file: its expressions call nothing with an effect.
            connection.execute("PRAGMA trusted_schema = OFF")
        except BaseException:
            connection.close()
            raise
    return connection


def _begin_log(connection: sqlite3.Connection, path: Path | None) -> None:
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            with _in_words(path):
                connection.execute("PRAGMA journal_mode = WAL")
            break
        except StoreError as error:
            # For this statement alone SQLite does not wait, when two processes make the file at once.
            if not error.is_busy or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)
    # A power failure may lose the last rows and damages nothing; a process that dies loses nothing.
    connection.execute("PRAGMA synchronous = NORMAL")
    # Every checkpoint waits for the disk; 16 MB of the log between two of them.
    connection.execute("PRAGMA wal_autocheckpoint = 4000")


def _try_log(connection: sqlite3.Connection, _path: Path | None) -> None:
    """Read something: whether the log can be read comes out only now."""
    connection.execute("SELECT 1 FROM sqlite_master")


@contextmanager
def _in_words(path: Path | None) -> Iterator[None]:
    """Raise what goes wrong with the file in a block as `problem_of` says it."""
    try:
        yield
    except sqlite3.Error as error:
        problem = problem_of(error, path)
        if problem is None:
            raise
        raise problem from error
