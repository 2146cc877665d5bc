"""Begins recorded runs with a seed and a time that it draws and records, and resumes runs with those that they had.

Above: execution.py. Below: run_journal.py. If recordings are off, seed and time are drawn all the same.
"""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from broker.errors import StoreError
from broker.recordings.journal.beginning import Beginning, present_versions
from broker.recordings.journal.recorded_grants import grants_to_record
from broker.recordings.journal.recorded_run import RecordedRun, ResumedRun
from broker.recordings.journal.repeating import present_request
from broker.recordings.journal.resuming import check_resumable
from broker.recordings.journal.resumptions import Resumptions
from broker.recordings.journal.retracing import past_of
from broker.recordings.journal.run_journal import RunJournal, UnrecordedRun
from broker.recordings.journal.unfinished_runs import UnfinishedRuns
from broker.recordings.keeping.transfer import load
from broker.recordings.redaction import Redaction

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker.authorization.desk import ConsentDesk
    from broker.recordings.keeping.entries import RecordingEntry
    from broker.recordings.keeping.recordings import Recordings
    from broker.recordings.parts import RecordedTool
    from broker.recordings.recording import Recording
    from broker.recordings.settings import UnknownOutcome
    from sandbox import Limits


class Recorder:
    """Begins and resumes the recorded runs of one broker."""

    def __init__(self, recordings: Recordings, secret_values: Iterable[str] = ()) -> None:
        """Record in `recordings`, without the `secret_values`."""
        self.recordings = recordings
        self.secret_values = frozenset(secret_values)
        self.unfinished = UnfinishedRuns(recordings)
        self.resumptions = Resumptions()

    @property
    def unknown_outcome(self) -> UnknownOutcome:
        """What the config says to do about a call of unknown outcome."""
        return self.recordings.settings.unknown_outcome

    @property
    def keeps_content(self) -> bool:
        """Whether runs that begin now can be resumed."""
        return self.recordings.settings.mode == "full"

    def begin(
        self,
        run_id: str,
        script: str,
        *,
        filename: str,
        manifest: Mapping[str, Any],
        limits: Limits,
        image: str,
        tools: Iterable[RecordedTool],
        desk: ConsentDesk,
    ) -> RecordedRun:
        """Begin a run of a script that may call these tools.

        Raises:
            StoreError: It cannot be recorded; nothing has been run.
        """
        seed, wall_ns = secrets.randbits(64), time.time_ns()
        if self.recordings.settings.mode == "off":
            return RecordedRun(run_id=run_id, seed=seed, wall_ns=wall_ns, journal=UnrecordedRun())
        tools = list(tools)
        beginning = Beginning(
            run_id=run_id,
            filename=filename,
            script=script,
            manifest=manifest,
            seed=seed,
            wall_ns=wall_ns,
            limits=limits,
            image=image,
            tools=tools,
            policy=desk.policy.config.model_dump(mode="json", by_alias=True),
            grants=grants_to_record(desk.book, tools),
            denials=desk.book.denials,
            principal=desk.principal,
            session=desk.session,
            request=present_request(),
            versions=present_versions(),
        )
        journal = RunJournal.begin(self.recordings, Redaction(self.secret_values), beginning)
        return RecordedRun(run_id=run_id, seed=seed, wall_ns=wall_ns, journal=journal)

    def resumable(self, name: str, image: str) -> Recording:
        """Return the recording of a run that can be resumed on this guest image; writes nothing.

        Raises:
            RecordingError: There is no such run, it has ended, or it cannot be resumed here; the text says why.
        """
        return self._resumable(self.recordings.find_open(name), image)

    def resume(self, recording: Recording, *, image: str, desk: ConsentDesk) -> ResumedRun:
        """Resume a run that `resumable` has returned, with the grants of `desk` besides its own.

        If that fails, the run stays as it was.

        Raises:
            RecordingError: Another process resumes it, it has ended meanwhile, or its recording lacks what it needs.
            StoreError: It cannot be recorded.
        """
        entry = self.recordings.claim(recording.begun.run_id)
        try:
            if (entry.id, self.recordings.content.line_count(entry.id)) != (recording.entry_id, recording.line_count):
                # Before it was claimed, another process had resumed it.
                recording = self._resumable(entry, image)
            return self._resumed(recording, desk)
        except BaseException:
            with suppress(StoreError):
                self.recordings.release(entry)
            raise

    def _resumable(self, entry: RecordingEntry, image: str) -> Recording:
        recording = load(self.recordings, entry)
        check_resumable(recording, image)
        return recording

    def _resumed(self, recording: Recording, desk: ConsentDesk) -> ResumedRun:
        begun, past = recording.begun, past_of(recording, goes_on=True)
        grants = grants_to_record(desk.book, begun.tools)
        return ResumedRun(
            run_id=begun.run_id,
            seed=begun.seed,
            wall_ns=begun.wall_ns,
            journal=RunJournal.resume(self.recordings, Redaction(self.secret_values), recording, grants),
            past=past,
            before=recording,
        )
