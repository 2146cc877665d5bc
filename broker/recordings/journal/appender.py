"""The end of one recording, to which this process alone appends.

Above: run_journal.py, which knows what is written. Below: recordings.py. Lines keep their order, also where one waits
for the next; nothing is written after what could not be.
"""

from __future__ import annotations

import time
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING

from broker.errors import StoreError
from broker.recordings.keeping.entries import Times

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from broker.recordings.events import State
    from broker.recordings.keeping.recordings import Recordings
    from broker.recordings.recording import Recording


class Appender:
    """Appends to one recording, until it is settled."""

    def __init__(self, recordings: Recordings, recording: int, before: Recording | None) -> None:
        """Append after the lines that are there already."""
        self._recordings = recordings
        self._recording = recording
        self._before = before
        self._number = 0 if before is None else before.line_count
        self.size = 0 if before is None else recordings.content.size(recording)
        """What the recording holds, and what waits to be written, in characters."""
        self._values = set() if before is None else set(recordings.content.digests(recording))
        self._first_at = self._last_at = 0
        self._waiting: list[Callable[[], object]] = []
        self._beside: list[Callable[[], object]] = []
        self._fault: StoreError | None = None
        self._is_settled = False

    def append(self, event: str, body: str, values: Mapping[str, str] | None = None) -> None:
        """Write a line, and the values that it names.

        Raises:
            StoreError: It cannot be written, or an earlier one could not.
        """
        self._write(self._line(event, body, values))

    def append_with_next(self, event: str, body: str, values: Mapping[str, str]) -> None:
        """Write a line together with the next one, with the present time."""
        self._waiting.append(self._line(event, body, values))

    def with_next(self, write: Callable[[], object]) -> None:
        """Have something else written together with the next line, or when the recording is left."""
        self._beside.append(write)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write what is written in a block at once, at its end."""
        beside = self._beside
        try:
            with self._recordings.together():
                yield
        except StoreError as error:
            self._fault, self._beside = error, beside
            raise

    def settle(self, state: State, calls: int) -> None:
        """Note how the run stands, and how many calls it has made."""
        self._recordings.settle(self._recording, state, calls, self._times(state))
        self._is_settled = True

    def cut_off(self, calls: int) -> None:
        """Mark the run as interrupted by a crash."""
        self._recordings.cut_off(self._recording, calls, self._times("interrupted"))
        self._is_settled = True

    def close(self, calls: int) -> None:
        """Leave the recording; a run that has not ended is interrupted, as by a crash where that cannot be written.

        Raises:
            StoreError: Its last lines cannot be written.
        """
        try:
            if self._fault is None:
                self._write()
                if not self._is_settled:
                    self.settle("interrupted", calls)
        finally:
            if not self._is_settled:
                self.cut_off(calls)
                with suppress(StoreError), self._recordings.together():
                    for write in self._beside:
                        write()

    def _line(self, event: str, body: str, values: Mapping[str, str] | None) -> Callable[[], object]:
        """Return a function that writes a line with its present number and time."""
        at = time.time_ns()
        self._first_at = self._first_at or at
        self._last_at = max(self._last_at, at)
        text = f'{{"event":"{event}","at":{at}{"," if body else ""}{body}}}'
        number = self._number
        self._number += 1
        values = values or {}
        self.size += len(text) + sum(len(values[digest]) for digest in values.keys() - self._values)
        self._values |= values.keys()
        return partial(self._recordings.content.append, self._recording, number, text, values)

    def _times(self, state: State) -> Times:
        """Return the times of the run's lines, as they are read out of them; one that is interrupted ends now."""
        before = self._before
        ended = max(self._last_at, time.time_ns()) if state == "interrupted" else self._last_at
        if before is None:
            return Times(self._first_at, ended, 0)
        return Times(before.begun.at, max(before.last_at, ended), before.lain + self._first_at - before.last_at)

    def _write(self, *writes: Callable[[], object]) -> None:
        """Write, after everything that waited for the next line."""
        if self._fault is not None:
            raise self._fault
        waiting, self._waiting = [*self._waiting, *self._beside, *writes], []
        try:
            with self.together() if len(waiting) > 1 else nullcontext():
                for write in waiting:
                    write()
                self._beside = []
        except StoreError as error:
            self._fault = error
            raise
