"""One SQLite file for what outlives a process: statistics, grants, audit, recordings.

Above: the components that keep something; each brings its own tables. Below: store_connection.py. A statement takes
tens of microseconds, so that callers make them inline. Several processes may use the same file at once.
"""

from __future__ import annotations

import sqlite3
import threading
import weakref
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from broker.errors import StoreError
from broker.store_connection import name_of, open_to_read, open_to_write, problem_of
from broker.store_files import has_no_room, identity_of, instead_of, is_there, path_of, state_of, user_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from types import TracebackType

_COMPONENTS = "CREATE TABLE IF NOT EXISTS component (name TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT"
_RETRY_SECONDS = 0.02


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

    def __init__(self, path: Path | str | None = None, *, for_reading: bool = False) -> None:
        """Open the file and make it, private to the user, where there is none; None is memory.

        With `for_reading`, what is in it can be read also where nothing can be written: on a full disk, on a file
        system that is read-only, in the folder of somebody else.

        Raises:
            StoreError: It cannot be used; the text says what to do.
        """
        path = self.path = None if path is None else path_of(path)
        self._name = name_of(path)
        self._lock = threading.RLock()
        self._unchanged: tuple[int, ...] | None = None
        try:
            self._connection = open_to_write(path)
        except StoreError as error:
            if path is None or not for_reading or not (error.is_read_only or has_no_room(path)):
                raise
            self._connection, self._unchanged = open_to_read(path, error)
        self._identity = None if path is None else identity_of(path)
        # A broker without a file makes a store in memory that nobody closes.
        self._close = weakref.finalize(self, self._connection.close)

    @classmethod
    def in_user_folder(cls, *, for_reading: bool = False) -> Self:
        """Open the user's own store; where there is none, what only reads makes none and finds nothing.

        Raises:
            StoreError: It cannot be used; the text says what to do.
        """
        path = user_store()
        return cls(None if for_reading and not is_there(path) else path, for_reading=for_reading)

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
                    f"{self._name}: its part {tables.component!r} was made by a newer codemode (version {version}, "
                    f"known is {len(tables.versions)}); install that, or {instead_of(self.path)} another file."
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
            if not self._is_in_transaction():
                self._check_in_place()
            try:
                rows = self._connection.execute(statement, parameters).fetchall()
            except sqlite3.Error as error:
                if not self._close.alive:
                    raise StoreError(f"{self._name}: it is closed; close it after the brokers that use it.") from None
                self._check_unchanged()
                problem = problem_of(error, self.path)
                if problem is None:
                    raise  # a wrong statement of ours
                raise problem from error
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
        return self._close.alive and self._connection.in_transaction

    def _check_in_place(self) -> None:
        """Refuse to write into a file that nobody finds any more: SQLite would go on with it."""
        if self.path is not None and self._close.alive and self._identity != identity_of(self.path):
            raise StoreError(f"{self._name}: it was moved or removed while in use; restart the program that uses it.")

    def _check_unchanged(self) -> None:
        if self.path is not None and self._unchanged is not None and self._unchanged != state_of(self.path):
            raise StoreError(f"{self._name}: it was written to while it was read; try again, or read it where it is.")
