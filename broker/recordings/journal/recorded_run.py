"""One run as an execution gets it: the seed and times that it depends on, and the journal that records it.

Above: execution.py. Below: run_journal.py, which keeps the journal, and interruption.py for what is said of a run that
is cut off.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker.errors import StoreError
from broker.recordings.journal.interruption import interrupted
from broker.recordings.journal.run_journal import RunJournal, UnrecordedRun
from sandbox import Past, SandboxError

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from broker.recordings.recording import Recording


@dataclass(frozen=True, kw_only=True)
class RecordedRun:
    """One run, from its beginning or from where it was interrupted.

    Attributes:
        run_id: Its id.
        seed: Where its random numbers come from.
        wall_ns: Unix time at which its clock starts.
        journal: Records it; keeps nothing if the run is not recorded.
        past: What happened before it was resumed; empty in a run that begins.
    """

    run_id: str
    seed: int
    wall_ns: int
    journal: RunJournal | UnrecordedRun
    past: Past = field(default_factory=Past)

    def __enter__(self) -> Self:
        """Return the run."""
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        """Leave the run; one that has not ended can be resumed.

        Raises:
            RunInterruptedError: It could not be written down to its end, or there was no sandbox for it any more.
        """
        if not isinstance(self.journal, RunJournal):
            return
        fault = error if isinstance(error, StoreError | SandboxError) else None
        if isinstance(error, SandboxError):
            self.journal.cut_off()
        try:
            self.journal.close()
        except StoreError as last:
            fault = fault or (last if error is None else None)
        if fault is not None:
            raise interrupted(self.journal.recordings, self.run_id, fault) from error


@dataclass(frozen=True, kw_only=True)
class ResumedRun(RecordedRun):
    """A run that is resumed.

    Attributes:
        before: The recording of what happened before.
    """

    journal: RunJournal
    before: Recording
