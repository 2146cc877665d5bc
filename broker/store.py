"""One SQLite file for what outlives a process: statistics, grants, audit, recordings.

Above: the components that keep something; each brings its own tables. Below: sqlite3. A statement takes tens of
microseconds, so that callers make them inline. Several processes may use the same file at once.
"""

from __future__ import annotations

import sqlite3
import threading
import time
import weakref
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from broker.errors import StoreError
from broker.store_files import VARIABLE, has_log, has_no_room, log_of, make_private, state_of, user_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from types import TracebackType

BUSY_SECONDS = 5.0
"""How long a statement waits for another process that writes."""

_COMPONENTS = "CREATE TABLE IF NOT EXISTS component (name TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT"
_RETRY_SECONDS = 0.02
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

        With `for_reading`, what is in it can be read also where nothing can be written: on a full disk, on a file
        system that is read-only, in the folder of somebody else.

        Raises:
            StoreError: It cannot be used; the text says what to do.
        """
        self.path = path
        self._name = "the store in memory" if path is None else str(path)
        self._lock = threading.RLock()
        self._unchanged: tuple[int, ...] | None = None
        try:
            if path is not None:
                make_private(path)
            self._open(":memory:" if path is None else str(path))
        except StoreError as error:
            if path is None or not for_reading or not (error.is_read_only or has_no_room(path)):
                raise
            self._open_for_reading(path, error)

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
                rows = self._connection.execute(statement, parameters).fetchall()
            except sqlite3.Error as error:
                self._check_unchanged()
                self._tell(error)
                raise  # a wrong statement of ours
            except UnicodeEncodeError:
                raise StoreError(f"{self._name}: a text that is not Unicode is not in it and cannot be kept.") from None
            self._check_unchanged()
            return rows

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

    def versions(self) -> dict[str, int]:
        """Return the version of each component that has tables here."""
        return dict(self.execute("SELECT name, version FROM component ORDER BY name"))

    def first_damage(self, within_seconds: float) -> str | None:
        """Look through the file; return the first thing that is wrong, or nothing; None where the time was too short.

        Raises:
            StoreError: The file cannot be used.
        """
        is_over = threading.Event()
        clock = threading.Thread(target=self._interrupt_after, args=(within_seconds, is_over))
        clock.start()
        try:
            [[found]] = self.execute("PRAGMA quick_check(1)")
        except sqlite3.OperationalError:  # interrupted
            return None
        finally:
            is_over.set()
            clock.join()
        return "" if found == "ok" else str(found)

    def _interrupt_after(self, seconds: float, is_over: threading.Event) -> None:
        """Interrupt the statement that is running, again and again: before it runs that has no effect."""
        while not is_over.wait(seconds):
            self._connection.interrupt()
            seconds = _RETRY_SECONDS

    def _is_in_transaction(self) -> bool:
        return self._connection.in_transaction

    def _open(self, name: str, *, writes: bool = True) -> None:
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
            self._configure(writes=writes)
        except BaseException:
            self._close()
            raise

    def _open_for_reading(self, path: Path, problem: StoreError) -> None:
        """Open what cannot be written.

        Raises:
            StoreError: `problem`, or that it cannot be read either.
        """
        uri = path.resolve().as_uri()
        with suppress(StoreError):
            self._open(f"{uri}?mode=ro", writes=False)
            return
        if has_log(path):
            raise StoreError(
                f"{problem} It cannot be read there either, as a part of it is in {log_of(path).name}: copy both to a "
                f"folder that you may write to, and set {VARIABLE} to the copy."
            )
        # Without a log it is whole for as long as nobody writes to it from elsewhere.
        self._unchanged = state_of(path)
        try:
            self._open(f"{uri}?immutable=1", writes=False)
        except StoreError:
            raise problem from None

    def _check_unchanged(self) -> None:
        if self.path is not None and self._unchanged not in {None, state_of(self.path)}:
            raise StoreError(f"{self._name}: it was written to while it was read; try again, or read it where it is.")

    def _configure(self, *, writes: bool) -> None:
        if writes:
            self._begin_log()
            # A power failure may lose the last rows and damages nothing; a process that dies loses nothing.
            self.execute("PRAGMA synchronous = NORMAL")
            # Every checkpoint waits for the disk; 16 MB of the log between two of them.
            self.execute("PRAGMA wal_autocheckpoint = 4000")
        else:
            self.execute("SELECT 1 FROM sqlite_master")  # whether the log can be read comes out only now
        self.execute("PRAGMA foreign_keys = ON")
        # The schema is read from the file: its expressions call nothing with an effect.
        self.execute("PRAGMA trusted_schema = OFF")

    def _begin_log(self) -> None:
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

    def _tell(self, error: sqlite3.Error) -> None:
        """Raise what went wrong with the file in words; returns where it is something else."""
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in _NO_ROOM and has_no_room(self.path):
            code = sqlite3.SQLITE_FULL  # SQLite says so only of some of its files
        trouble = _TROUBLE.get(code)
        if trouble is not None:
            raise StoreError(
                f"{self._name}: {trouble}.",
                is_busy=code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED},
                is_read_only=code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN},
                is_damaged=code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB},
            ) from error
