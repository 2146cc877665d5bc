"""Recordings as they are listed: one row of the store each.

Above: recordings.py. Below: lines.py, parts.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.recordings.lines import MAX_LINE_BYTES
from broker.recordings.parts import MAX_INTEGER

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.recordings.events import State

SHUTDOWN = "shutdown"
"""The owner of an interrupted run that goes on as after a crash: its process was told to end, or the disk was full."""

# What is longer than a line may be is not read as JSON, which takes four times as much memory.
_IS_JSON = f"length(CAST(line AS BLOB)) <= {MAX_LINE_BYTES} AND json_valid(line)"
# Of a run that is not settled, as after a crash, its calls are counted.
SELECT = (
    "SELECT id, run_id, began, mode, filename, state, owner, CASE WHEN state != 'running' THEN calls ELSE "  # noqa: S608
    f"(SELECT coalesce(sum(CASE WHEN {_IS_JSON} THEN json_array_length(line, '$.calls') END), 0) "
    'FROM recording_line WHERE recording_line.recording = recording.id AND line LIKE \'{"event":"stepped",%\') END, '
    "ended, bytes, is_imported, was_resumed, coalesce(ran, max(ended - began, 0)) FROM recording"
)

_NO_PART_OF_AN_ID = re.compile(r"[^0-9a-z_]")
_ID_CHARACTERS = 40


class Times(NamedTuple):
    """When a run began, when it ended, and for how long it lay interrupted or parked in between; in nanoseconds.

    When one ended that was cut off, only the process that carried it on knows: `ended` is None elsewhere.
    """

    began: int
    ended: int | None
    lain: int

    @property
    def ran(self) -> int | None:
        """For how long it went on; the clock may have been set back, and by any time in a file of others."""
        if self.ended is None:
            return None
        return min(max(self.ended - self.began - self.lain, 0), MAX_INTEGER)


def seen_by(principal: str | None) -> tuple[str, tuple[str, ...]]:
    """Return which rows are of runs that a principal began here, as a condition and its parameters; all when None.

    An imported recording only says whose it is, and one that cannot be read says nothing.
    """
    if principal is None:
        return "1", ()
    begun = f"SELECT CASE WHEN {_IS_JSON} THEN coalesce(json_extract(line, '$.principal'), '') END "
    begun += "FROM recording_line WHERE recording_line.recording = recording.id AND number = 0"
    return f"NOT is_imported AND ? = ({begun})", (principal,)


@dataclass(frozen=True, slots=True)
class RecordingEntry:
    """One recording, as it is listed.

    Attributes:
        id: The number that the store has for it.
        mode: `full`, or `metadata` where its content was not kept.
        filename: How tracebacks call the script.
        state: `running`, `interrupted`, `parked`, `completed`, `raised` or `stopped`.
        began: Unix time in nanoseconds; so is `ended`.
        ended: When it ended, was parked or was interrupted; None if that is not known, as after a crash.
        ran: How long it ran, in nanoseconds; None where `ended` is.
        calls: Calls that the script made.
        characters: Size of its lines and values.
        is_imported: It was made elsewhere: what it says was allowed counts for nothing here.
        was_resumed: It was resumed after it was interrupted or parked.
        has_crashed: Its process died, was told to end, or could not write. An interrupted run that has not crashed was
            ended on purpose.
        owner: The process that runs it, or ran it last.
    """

    id: int
    run_id: str
    began: int
    mode: str
    filename: str
    state: State
    calls: int
    ended: int | None
    characters: int
    is_imported: bool
    ran: int | None
    was_resumed: bool = False
    has_crashed: bool = False
    owner: str = field(default="", compare=False)

    @property
    def seconds(self) -> float | None:
        """For how long it went on, without the time that it lay; None where `ran` is."""
        return None if self.ran is None else self.ran / 1e9

    @property
    def is_open(self) -> bool:
        """Whether the run was interrupted or is parked, and so may go on."""
        return self.state in {"interrupted", "parked"}


def read_entry(row: tuple[Any, ...], lives: Callable[[str], bool]) -> RecordingEntry:
    """Read a row of `SELECT`; `lives` tells whether the process of an owner's name has not ended.

    An id that somebody has written into the store is no terminal sequence and no path here.
    """
    number, run_id, began, mode, filename, state, owner, calls, ended, size, imported, resumed, ran = row
    has_crashed = owner == SHUTDOWN or (state == "running" and not lives(owner))
    now: State = "interrupted" if has_crashed else state
    flags = bool(resumed), has_crashed
    run_id = _NO_PART_OF_AN_ID.sub("?", run_id[:_ID_CHARACTERS])
    return RecordingEntry(
        number, run_id, began, mode, filename, now, calls, ended, size, bool(imported), ran, *flags, owner
    )
