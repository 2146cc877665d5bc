"""The recordings of this user: begun, settled, claimed, found, listed, removed.

Above: run_journal.py, the command line. Below: content.py, store.py. Several processes write
at once, each to its own runs.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Self, get_args

from broker.errors import RecordingError, StoreError
from broker.recordings.events import State
from broker.recordings.keeping.content import RecordedContent
from broker.recordings.keeping.entries import SELECT, SHUTDOWN, read_entry, seen_by
from broker.recordings.keeping.owners import Owner, is_of_this_process, lives
from broker.recordings.keeping.tables import TABLES
from broker.recordings.settings import RecordingSettings
from broker.store_files import user_store
from codegen.plain_text import one_line
from sandbox.limits import MIB

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from broker.recordings.keeping.entries import RecordingEntry, Times
    from broker.store import Store

_DAY_NS = 86_400 * 10**9
STATES: tuple[State, ...] = get_args(State)
OPEN: tuple[State, ...] = ("interrupted", "parked")
_MAX_NAMED = 4
_BEGINNING = re.compile(r"(run_)?[0-9a-f]+")


class Recordings:
    """All recordings in one store.

    Attributes:
        store: The store.
        content: What is in them.
        settings: How runs are recorded.
    """

    def __init__(self, store: Store, settings: RecordingSettings | None = None) -> None:
        """Make the tables where there are none; the settings matter to whoever begins recordings.

        Raises:
            StoreError: The store cannot be used.
        """
        self.settings = settings or RecordingSettings()
        self.store = store
        store.prepare(TABLES)
        self.content = RecordedContent(store)
        self._owner: Owner | None = None
        self._cut_off: dict[int, tuple[int, Times | None]] = {}
        """Runs of which nothing more could be written, with their calls and times."""
        self.is_shutting_down = False
        """Whether runs that are interrupted now are so because this process is about to end."""

    def close(self) -> None:
        """Let what this process still has running count as interrupted from now on. The store is left open."""
        if self._owner is not None:
            self._owner.close()
            self._owner = None

    def __enter__(self) -> Self:
        """Return the recordings."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close them."""
        self.close()

    def begin(self, run_id: str, mode: str, filename: str, *, is_imported: bool = False, request: str = "") -> int:
        """Make room for a run of this process, and return its number.

        `request` is what a client has to repeat to go on with it.

        Raises:
            RecordingError: A run of this id is recorded already.
            StoreError: It cannot be written down; nothing has been run.
        """
        self._settle_cut_off()
        now = time.time_ns()
        imported_at = now if is_imported else 0
        with self.store.transaction():
            self._prune()
            rows = self.store.execute(
                "INSERT INTO recording "
                "(run_id, began, mode, filename, state, owner, request, is_imported, imported_at) "
                "VALUES (?, ?, ?, ?, 'running', ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id",
                (run_id, now, mode, filename, self._me().name, request, is_imported, imported_at),
            )
        if not rows:
            raise RecordingError(f"{run_id} is recorded already; `codemode recordings rm {run_id}` removes that.")
        return int(rows[0][0])

    def together(self) -> AbstractContextManager[None]:
        """Let what is written in a block, also by others to the same store, take effect together."""
        return self.store.transaction()

    def settle(self, recording: int, state: State, calls: int, times: Times | None = None) -> None:
        """Note how a run stands that this process does not carry on; `times` are those of its journal."""
        self._settle(recording, state, calls, times, has_crashed=state == "interrupted" and self.is_shutting_down)

    def cut_off(self, recording: int, calls: int, times: Times | None = None) -> None:
        """Note, as soon as that can be written, that a run of this process was interrupted as by a crash."""
        self._cut_off[recording] = calls, times
        with suppress(StoreError):
            self._settle_cut_off()

    def _settle_cut_off(self) -> None:
        for recording, (calls, times) in self._cut_off.items():
            self._settle(recording, "interrupted", calls, times, has_crashed=True)
        self._cut_off.clear()

    def _settle(self, recording: int, state: State, calls: int, times: Times | None, *, has_crashed: bool) -> None:
        began, ended, ran = (None, time.time_ns(), None) if times is None else (times.began, times.ended, times.ran)
        owner = SHUTDOWN if has_crashed else ""
        self.store.execute(
            "UPDATE recording SET state = ?, calls = ?, ended = ?, ran = ?, began = coalesce(?, began), owner = ?, "
            "bytes = ? WHERE id = ?",
            (state, calls, ended, ran, began, owner, self.content.size(recording), recording),
        )

    def claim(self, run_id: str) -> RecordingEntry:
        """Make a run that was interrupted or is parked this process's own; return how it stood.

        Raises:
            RecordingError: It is neither, or another process has been faster.
            StoreError: It cannot be written down.
        """
        with self.store.transaction():
            entry = self.find_open(run_id)
            self.store.execute(
                "UPDATE recording SET state = 'running', owner = ?, ended = NULL, ran = NULL, was_resumed = 1 "
                "WHERE id = ?",
                (self._me().name, entry.id),
            )
        return entry

    def release(self, entry: RecordingEntry) -> None:
        """Let a run that was claimed stand as before: nothing of it has gone on.

        Raises:
            StoreError: It cannot be written down; the run is interrupted when this process has ended.
        """
        owner = SHUTDOWN if entry.has_crashed else ""
        self.store.execute(
            "UPDATE recording SET state = ?, owner = ?, calls = ?, ended = ?, ran = ?, was_resumed = ? WHERE id = ?",
            (entry.state, owner, entry.calls, entry.ended, entry.ran, entry.was_resumed, entry.id),
        )

    def entries(
        self, limit: int | None = None, *, states: Collection[State] = STATES, principal: str | None = None
    ) -> list[RecordingEntry]:
        """List the recordings of a principal, or of all, that are in one of these states, newest first."""
        seen, parameters = seen_by(principal)
        # What is running is interrupted where its process has ended.
        written = {*states, "running"} if "interrupted" in states else set(states)
        most = limit if limit is not None and written == set(STATES) else -1
        rows = self.store.execute(
            f"{SELECT} WHERE state IN ({','.join('?' * len(written))}) AND {seen} ORDER BY began DESC, id DESC LIMIT ?",
            (*written, *parameters, most),
        )
        return list(islice((entry for entry in map(self._entry, rows) if entry.state in states), limit))

    def requested(self, request: str, within_seconds: float | None = None) -> list[RecordingEntry]:
        """List the runs of a request that can go on, or were resumed already, newest first.

        A request that is written `REQUEST.STATE` is one of those of `REQUEST`, and goes on with a run that was ended on
        purpose as well. With `within_seconds`, only those that began so lately.
        """
        if not request:
            return []
        self._settle_cut_off()
        since = 0 if within_seconds is None else time.time_ns() - int(within_seconds * 1e9)
        rows = self.store.execute(
            f"{SELECT} WHERE request != '' AND request >= ? AND request < ? || '/' "
            "AND mode = 'full' AND began >= ? ORDER BY id DESC",
            (request, request, since),
        )
        states = {"parked", "interrupted"} if "." in request else {"parked"}
        entries = map(self._entry, rows)
        return [entry for entry in entries if entry.state in states or entry.has_crashed or entry.was_resumed]

    def forget_request(self, run_id: str) -> None:
        """Let a request that is repeated begin a run of its own, unless the one that it began is going on."""
        entry = self.find(run_id)
        if entry.state != "running":
            self.store.execute("UPDATE recording SET request = '' WHERE id = ?", (entry.id,))

    def append_revoked(self, entry: RecordingEntry, grants: Sequence[int]) -> None:
        """Write that grants of a run were taken back, unless it has gone on or ended meanwhile."""
        with self.store.transaction():
            if not self.find(entry.run_id).is_open:
                return
            for grant in grants:
                line = f'{{"event":"revoked","at":{time.time_ns()},"grant":{grant}}}'
                self.store.execute(
                    "INSERT INTO recording_line SELECT recording, max(number) + 1, ? FROM recording_line "
                    "WHERE recording = ? GROUP BY recording",
                    (line, entry.id),
                )

    def find(self, name: str, principal: str | None = None) -> RecordingEntry:
        """Return the recording of a run, by its id or the beginning of it, or the one begun `last` here.

        Where a principal is given, there are no runs but its own.

        Raises:
            RecordingError: There is none, or several begin so.
        """
        if found := self.named(name, principal):
            return found
        if principal is not None:
            raise RecordingError(
                f"this principal has recorded no run {one_line(name, 80)!r} here; {self._hint(principal)}."
            )
        if name == "last":
            raise RecordingError("nothing is recorded yet; `codemode run` and `codemode serve` record.")
        raise RecordingError(f"there is no recording {one_line(name, 80)!r}; {self._hint(principal)}.")

    def named(self, name: str, principal: str | None = None) -> RecordingEntry | None:
        """Return the recording that `find` finds, or `None` where there is none.

        Raises:
            RecordingError: Several begin so.
        """
        seen, parameters = seen_by(principal)
        if name == "last":  # not the newest by the clock, which may have been set back
            rows = self.store.execute(f"{SELECT} WHERE {seen} ORDER BY is_imported, id DESC LIMIT 1", parameters)
        elif not _BEGINNING.fullmatch(name):
            return None
        else:
            start = name if name.startswith("run_") else f"run_{name}"
            rows = self.store.execute(
                f"{SELECT} WHERE run_id >= ? AND run_id < ? AND {seen} LIMIT {_MAX_NAMED}",
                (start, f"{start}g", *parameters),
            )
        found = [self._entry(row) for row in rows]
        if len(found) > 1:
            these = ", ".join(sorted(entry.run_id for entry in found))
            raise RecordingError(f"several recordings begin with {name!r}, such as {these}; give more of the id.")
        return found[0] if found else None

    def find_open(self, name: str, principal: str | None = None) -> RecordingEntry:
        """Return the recording of a run that was interrupted or is parked, as `find` does.

        Raises:
            RecordingError: There is none of that name, or it is neither.
            StoreError: That one of this process was interrupted cannot be written down still.
        """
        self._settle_cut_off()
        entry = self.find(name, principal)
        if not entry.is_open:
            where = "this process" if is_of_this_process(entry.owner) else "another process"
            said = f"runs in {where}" if entry.state == "running" else f"has ended: {entry.state}"
            raise RecordingError(f"{entry.run_id} {said}, so there is nothing to resume.")
        return entry

    def runs_elsewhere(self, entry: RecordingEntry) -> bool:
        """Tell whether another process carries a run on."""
        return entry.state == "running" and not self._is_own(entry.owner)

    def remove(self, recordings: Sequence[int]) -> None:
        """Remove recordings, and the values that no other one uses."""
        with self.store.transaction():
            for recording in recordings:
                used = self.store.execute("SELECT sha256 FROM recording_value_use WHERE recording = ?", (recording,))
                self.store.execute("DELETE FROM recording WHERE id = ?", (recording,))
                for row in used:
                    self.store.execute(
                        "DELETE FROM recording_value WHERE sha256 = ? AND NOT EXISTS "
                        "(SELECT 1 FROM recording_value_use WHERE recording_value_use.sha256 = recording_value.sha256)",
                        row,
                    )

    def _prune(self) -> None:
        """Remove recordings that ended, or were imported, too long ago, and the oldest while all are too large.

        One that is too large by itself makes room before any other.
        """
        oldest, most = time.time_ns() - self.settings.max_days * _DAY_NS, self.settings.max_mib * MIB
        (total,) = self.store.execute("SELECT coalesce(sum(bytes), 0) FROM recording")[0]
        rows = self.store.execute(
            "SELECT id, max(ended, imported_at) AS since, bytes FROM recording "
            "WHERE owner = '' AND state NOT IN ('parked', 'interrupted') AND (since < ? OR ?) "
            "ORDER BY bytes <= ?, since",
            (oldest, total > most, most),
        )
        gone = []
        for number, since, size in rows:
            if since >= oldest and total <= most:
                break
            total -= size
            gone.append(number)
        self.remove(gone)

    def _entry(self, row: tuple[Any, ...]) -> RecordingEntry:
        return read_entry(row, self._lives)

    def _lives(self, owner: str) -> bool:
        # Without making a file of our own: what is recorded can be looked at on a full disk.
        return self._is_own(owner) or lives(self._owners, owner)

    def _hint(self, principal: str | None) -> str:
        """Return what to do where a principal, or the operator, finds no recording."""
        if self.settings.mode == "off":
            return "recordings are off, as they are without a store"
        if principal is None and self.store.path in {None, user_store()}:
            return "`codemode recordings list` has all"
        return "`Broker.recordings` lists them"

    def _is_own(self, owner: str) -> bool:
        return self._owner is not None and owner == self._owner.name

    def _me(self) -> Owner:
        if self._owner is None:
            self._owner = Owner(self._owners)
        return self._owner

    @property
    def _owners(self) -> Path | None:
        path = self.store.path
        return None if path is None else path.parent / "owners"
