"""The recorded runs that can be resumed: which they are, of which principal, and for which request.

Above: recorder.py, which resumes them, sessions.py and broker.py. Below: recordings.py.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.errors import RecordingError, StoreError
from broker.logging import logger
from broker.recordings.journal.recorded_grants import numbers_of
from broker.recordings.keeping.recordings import OPEN
from broker.recordings.keeping.transfer import load, load_beginning

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.authorization.grants import Held
    from broker.recordings.events import Begun
    from broker.recordings.keeping.recordings import Recordings


@dataclass(frozen=True)
class UnfinishedRuns:
    """The unfinished runs of one store."""

    recordings: Recordings

    def id_of(self, name: str, principal: str | None) -> str:
        """Return the whole id of a run of a principal, or of anybody when None.

        Raises:
            RecordingError: The principal has none of that name; of others' runs nothing is said.
        """
        return self.recordings.find(name, principal).run_id

    def is_open(self, run_id: str, principal: str) -> bool:
        """Tell whether a run of a principal is recorded here that was interrupted or is parked."""
        try:
            return self.recordings.find_open(run_id, principal).run_id == run_id
        except RecordingError:
            return False  # there is none, it has ended, or makes no sense

    def requested(self, request: str, within_seconds: float | None = None) -> list[str]:
        """Return the parked and crashed runs that a client may go on with by repeating its request.

        Runs that were resumed already are among them, whatever became of them, because a new run would make their calls
        twice. Those that another process goes on with come last. With `within_seconds`, only runs that began that
        recently.
        """
        try:
            found = sorted(self.recordings.requested(request, within_seconds), key=self.recordings.runs_elsewhere)
        except StoreError as error:
            # A run that cannot be found cannot be begun either: its first line would not be written.
            logger().error("a repeated request cannot be looked for", problem=str(error))
            return []
        return [entry.run_id for entry in found]

    def forget_request(self, run_id: str) -> None:
        """Let the request that began a run begin a new one when it is repeated: its client knows how this one ended."""
        with suppress(RecordingError, StoreError):  # it is told once more
            self.recordings.forget_request(run_id)

    def take_back(self, runs: Iterable[str], held: Held) -> None:
        """Record in unfinished runs that a grant was revoked, so that none of them brings it back.

        Raises:
            StoreError: It cannot be written down.
        """
        for run_id in runs:
            with suppress(RecordingError):  # it was removed, or cannot go on
                entry = self.recordings.find(run_id)
                self.recordings.append_revoked(entry, numbers_of(load(self.recordings, entry), held))

    def waiting(self, principal: str) -> list[str]:
        """Return the runs of a principal that are parked, or waited for somebody when their process died.

        One that was ended on purpose while it waited is not among them: an answer would send what nobody wants now.
        """
        found = []
        for entry in self.recordings.entries(states=OPEN, principal=principal):
            if entry.state != "parked" and not entry.has_crashed:
                continue
            with suppress(RecordingError):  # `codemode runs` says so
                recording = load(self.recordings, entry)
                found += [entry.run_id] if recording.has_content and recording.waits else []
        return found

    def crashed(self) -> list[str]:
        """Return the runs that ended with their process, not on purpose, and that can go on."""
        entries = self.recordings.entries()
        return [one.run_id for one in entries if one.has_crashed and one.mode == "full" and not one.is_imported]

    def begun(self, run_id: str) -> Begun:
        """Return what a run began with.

        Raises:
            RecordingError: There is none, or it makes no sense.
        """
        return load_beginning(self.recordings, self.recordings.find(run_id))
