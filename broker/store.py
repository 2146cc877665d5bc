"""One SQLite file for what outlives a process: statistics, grants, audit, recordings.

Above: the components that keep something; each brings its own tables. Below: sqlite3. A statement takes tens of
microseconds, so that callers make them inline. Several processes may use the same file at once.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import time
import weakref
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import platformdirs

from broker.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

VARIABLE = "CODEMODE_STORE"
BUSY_SECONDS = 5.0
"""How long a statement waits for another process that writes."""

_COMPONENTS = "CREATE TABLE IF NOT EXISTS component (name TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT"
_RETRY_SECONDS = 0.02
_LEAST_BYTES = 64 * 1024
# By the primary code of SQLite's result; the low byte of the extended one.
_TROUBLE = {
    sqlite3.SQLITE_FULL: "the disk is full; free some space",
    sqlite3.SQLITE_READONLY: "it cannot be written to; make the file and its folder writable",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check that its folder exists and is writable",
    sqlite3.SQLITE_PERM: "it may not be opened; check who owns the file",
    sqlite3.SQLITE_AUTH: "it may not be opened; check who owns the file",
    sqlite3.SQLITE_CORRUPT: "it is damaged; move it away, and a new one is made",
    sqlite3.SQLITE_NOTADB: "it is no database of ours; move it away, and a new one is made",
    sqlite3.SQLITE_BUSY: f"another process has kept it locked for {BUSY_SECONDS:g} s; end that process",
    sqlite3.SQLITE_LOCKED: f"another process has kept it locked for {BUSY_SECONDS:g} s; end that process",
    sqlite3.SQLITE_IOERR: "it cannot be read or written; check the disk, or choose a folder on a local one",
}
_NO_ROOM = frozenset({sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY})


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one component.

    Attributes:
        component: Its name, once for all times.
        versions: The statements that make each version out of the one before, the first out of nothing. What
            has been released is never edited; a change is one more version.
    """

    component: str
    versions: tuple[tuple[str, ...], ...]


class Store:
    """One file, or memory that is gone when it is closed. May be used from several threads."""

    def __init__(self, path: Path | None = None, *, for_reading: bool = False) -> None:
        """Open the file and make it, private to the user, where there is none; None is memory.

        With `for_reading`, what is in it can be read also where there is no room for the files that SQLite needs beside
        it.

        Raises:
            StoreError: It cannot be used; the text says what to do.
        """
        self.path = path
        self._name = "the store in memory" if path is None else str(path)
        self._lock = threading.RLock()
        if path is not None:
            self._make(path)
        try:
            self._open(":memory:" if path is None else str(path))
        except StoreError:
            if path is None or not (for_reading and self._has_no_room()) or _has_content(Path(f"{path}-wal")):
                raise
            # Nobody writes to it: without a log beside it, it is whole.
            self._open(f"{path.resolve().as_uri()}?immutable=1")

    @classmethod
    def in_user_folder(cls, *, for_reading: bool = False) -> Self:
        """Open the user's own store.

        Raises:
            StoreError: It cannot be used; the text says what to do.
        """
        return cls(user_store(), for_reading=for_reading)

    def __enter__(self) -> Self:
        """Return the store, which is open already."""
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close the file; of no further use afterwards."""
        with self._lock:
            self._close()

    def prepare(self, tables: Tables) -> None:
        """Bring the tables of a component to its version; does nothing where they are.

        Raises:
            StoreError: A newer version of codemode has written them, or the file cannot be used.
        """
        # Nothing is written where nothing has to be: what is there can be read on a full disk.
        if self._version(tables) == len(tables.versions):
            return
        with self.transaction():
            self.execute(_COMPONENTS)
            version = self._version(tables)
            if version > len(tables.versions):
                raise StoreError(
                    f"{self._name}: its part {tables.component!r} is of a newer codemode (version {version}, known is "
                    f"{len(tables.versions)}); install that, or set CODEMODE_STORE to another file."
                )
            for statements in tables.versions[version:]:
                for statement in statements:
                    self.execute(statement)
            self.execute(
                "INSERT INTO component VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET version = excluded.version",
                (tables.component, len(tables.versions)),
            )

    def _version(self, tables: Tables) -> int:
        """Return the version of the tables of a component; 0 where there are none."""
        if not self.execute("SELECT 1 FROM sqlite_master WHERE name = 'component'"):
            return 0
        found = self.execute("SELECT version FROM component WHERE name = ?", (tables.component,))
        return int(found[0][0]) if found else 0

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows. Outside `transaction` it is one by itself.

        Raises:
            StoreError: The file cannot be used; the text says what to do.
        """
        with self._lock:
            try:
                return self._connection.execute(statement, parameters).fetchall()
            except sqlite3.Error as error:
                self._tell(error)
                raise  # a wrong statement of ours
            except UnicodeEncodeError:
                raise StoreError(f"{self._name}: a text that is not Unicode is not in it and cannot be kept.") from None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Let the statements of a block take effect together or, when it raises, not at all.

        No other process writes meanwhile, so that what is read in the block is still true at its end. Inside
        another one it is part of that. The block does not await: another task would write into it.

        Raises:
            StoreError: The file cannot be used; the text says what to do.
        """
        with self._lock:
            if self._is_in_transaction():
                yield
                return
            self.execute("BEGIN IMMEDIATE")
            try:
                yield
                # SQLite has ended it by itself where the disk is full.
                if self._is_in_transaction():
                    self.execute("COMMIT")
            except BaseException:
                if self._is_in_transaction():
                    self.execute("ROLLBACK")
                raise

    def _is_in_transaction(self) -> bool:
        return self._connection.in_transaction

    def _open(self, name: str) -> None:
        try:
            self._connection = sqlite3.connect(
                name,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
                uri=name.startswith("file:"),
            )
        except sqlite3.Error as error:
            self._tell(error)
            raise
        # A broker without a file makes a store in memory that nobody closes.
        self._close = weakref.finalize(self, self._connection.close)
        try:
            self._configure()
        except BaseException:
            self._close()
            raise

    def _make(self, path: Path) -> None:
        """Make the file before SQLite does, which would let others read it; its side files take its mode."""
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            path.chmod(0o600)
        except OSError as error:
            what_to_do = "check that its folder exists and is writable, or set CODEMODE_STORE to another file"
            raise StoreError(f"{self._name} cannot be opened: {error.strerror}; {what_to_do}.") from error

    def _configure(self) -> None:
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self.execute("PRAGMA journal_mode = WAL")
                break
            except StoreError as error:
                # For this statement alone SQLite does not wait, when two processes make the file at once.
                if not error.is_busy or time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_SECONDS)
        # A power failure may lose the last rows and damages nothing; a process that dies loses nothing.
        self.execute("PRAGMA synchronous = NORMAL")
        # Every checkpoint waits for the disk; 16 MB of the log between two of them.
        self.execute("PRAGMA wal_autocheckpoint = 4000")
        self.execute("PRAGMA foreign_keys = ON")
        # The schema is read from the file: its expressions call nothing with an effect.
        self.execute("PRAGMA trusted_schema = OFF")

    def _tell(self, error: sqlite3.Error) -> None:
        """Raise what went wrong with the file in words; returns where it is something else."""
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in _NO_ROOM and self._has_no_room():
            code = sqlite3.SQLITE_FULL  # SQLite says so only of some of its files
        trouble = _TROUBLE.get(code)
        if trouble is not None:
            raise StoreError(
                f"{self._name}: {trouble}.", is_busy=code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
            ) from error

    def _has_no_room(self) -> bool:
        try:
            return self.path is not None and shutil.disk_usage(self.path.parent).free < _LEAST_BYTES
        except OSError:
            return False


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def user_store() -> Path:
    """Return where the user's own store is: `CODEMODE_STORE`, else in the user's data folder."""
    if given := os.environ.get(VARIABLE):
        return Path(given)
    return Path(platformdirs.user_data_path("codemode-broker")) / "broker.sqlite3"
