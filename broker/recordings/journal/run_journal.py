"""Writes one run down as it happens.

Above: recorder.py, which begins it, the sandbox, which tells of steps and answers, and tool_calls.py, which tells of
decisions. Below: writing.py and beginning.py for what a line says, appender.py for when it is written. Each method
returns when its line is written; what it raises ends the run.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from broker.calls.call_journal import NoCallJournal
from broker.errors import RecordingError
from broker.recordings.journal.appender import Appender
from broker.recordings.journal.beginning import begun
from broker.recordings.journal.recorded_grants import recorded_denial, recorded_grant
from broker.recordings.journal.retracing import is_same_step
from broker.recordings.writing import Line, members, outcome_json, state_of
from sandbox import NoJournal
from sandbox.limits import MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from broker.authorization.calls import PendingCall
    from broker.authorization.decision import Allow
    from broker.authorization.grants import Denial, Held
    from broker.recordings.journal.beginning import Beginning
    from broker.recordings.keeping.recordings import Recordings
    from broker.recordings.parts import CallAnswer
    from broker.recordings.recording import Recording
    from broker.recordings.redaction import Redaction
    from sandbox import Outcome, PastStep, Printed, Step


class UnrecordedRun(NoJournal, NoCallJournal):
    """A run that is not recorded."""


class RunJournal:
    """The journal of one run of this process."""

    def __init__(
        self,
        recordings: Recordings,
        redaction: Redaction,
        *,
        recording: int,
        keeps_content: bool,
        before: Recording | None = None,
    ) -> None:
        """Go on writing where a recording ends; `begin` and `resume` make the object."""
        self.recordings = recordings
        self._appender = Appender(recordings, recording, before)
        self._redaction = redaction
        self._keeps_content = keeps_content
        self._before = before
        self._steps = 0 if before is None else len(before.steps)
        self._calls = 0 if before is None else len(before.calls)
        self._grant_numbers: dict[str, int] = {}
        self._grants = 0 if before is None else len(before.grants)
        self._last: tuple[Outcome | None, str] = None, ""
        self.most_bytes = recordings.settings.max_run_mib * MIB

    @property
    def is_full(self) -> bool:
        """Whether so much is recorded that the run is stopped."""
        return self._appender.size >= self.most_bytes

    @classmethod
    def begin(cls, recordings: Recordings, redaction: Redaction, beginning: Beginning) -> RunJournal:
        """Write the first line.

        Raises:
            StoreError: It cannot be written; nothing has been run.
        """
        mode = recordings.settings.mode
        with recordings.together():
            recording = recordings.begin(beginning.run_id, mode, beginning.filename, request=beginning.request)
            journal = cls(recordings, redaction, recording=recording, keeps_content=mode == "full")
            line = journal._line()
            journal._number(beginning.grants)
            journal._append("begun", line, begun(beginning, mode, line))
        return journal

    @classmethod
    def resume(
        cls, recordings: Recordings, redaction: Redaction, recording: Recording, grants: Sequence[Held] = ()
    ) -> RunJournal:
        """Go on with a run that was claimed; `grants` hold for it beside its own."""
        journal = cls(recordings, redaction, recording=recording.entry_id, keeps_content=True, before=recording)
        journal._number(grants)
        journal._appender.append("resumed", f'"grants":{journal._line().parts(map(recorded_grant, grants))}')
        return journal

    @property
    def can_resume(self) -> bool:
        """Whether the run can be resumed from what is kept."""
        return self._keeps_content

    def given_back(self, grant_id: str, number: int) -> None:
        """Take note of the id under which a grant of the recording holds now."""
        self._grant_numbers[grant_id] = number

    def stepped(self, entered: PastStep, returned: Step, printed: Sequence[Printed]) -> None:
        """Write a step, before its calls are made.

        One with calls waits for the next line: each of them has another one before it has any effect.
        """
        line = self._line()
        body = line.step(self._steps, entered, returned, printed)
        self._steps += 1
        self._calls += len(returned.calls)
        self._last = returned.outcome, line.outcome
        append = self._appender.append_with_next if returned.calls else self._appender.append
        append("stepped", body, line.values)

    def answered(self, call_id: int, completion: str) -> None:
        """Write an answer, before the script sees it."""
        line = self._line()
        self._append("answered", line, f'"call":{call_id},"result":{line.stored_text(_without_id(completion))}')

    def retraced(self, number: int, returned: Step, printed: Sequence[Printed]) -> None:
        """Compare a step with what was written.

        Raises:
            RecordingError: The script did something else than the first time.
        """
        if self._before is None or not is_same_step(self._before, number, returned, printed, self._redaction):
            raise RecordingError(
                f"step {number} of the run came out differently from what was recorded, so it cannot be resumed; "
                "a secret that was taken out of the recording would do that."
            )

    def ended(self, outcome: Outcome, printed: Sequence[Printed]) -> None:
        """Write the outcome; one that ended the last step is stored as it was there, since a large one costs time."""
        line = self._line()
        of_last_step, stored = self._last
        if outcome is not of_last_step:
            stored = line.stored(outcome_json(outcome))
        body = f'"outcome":{stored},"printed":{line.printed(printed)}'
        with self.together():
            self._append("ended", line, body)
            self._appender.settle(state_of(outcome), self._calls)

    def asked(self, call_id: int) -> None:
        """Write that a person is about to be asked."""
        self._appender.append("asked", f'"call":{call_id}')

    def decided(
        self, by: str, calls: Sequence[CallAnswer], *, grants: Sequence[Held] = (), denials: Sequence[Denial] = ()
    ) -> None:
        """Write what a person has answered, before anything that it allows is sent."""
        line = self._line()
        denied, granted = line.parts(map(recorded_denial, denials)), line.parts(map(recorded_grant, grants))
        self._number(grants)
        body = f'"by":{json.dumps(by)},"calls":{line.parts(calls)},"denials":{denied},"grants":{granted}'
        self._appender.append("decided", body)

    def revoked(self, grant_id: str) -> None:
        """Write that a grant was taken back, if it is one of this run's."""
        number = self._grant_numbers.pop(grant_id, None)
        if number is not None:
            self._appender.append("revoked", f'"grant":{number}')

    def denied(self, call_id: int, by: str) -> None:
        """Write a refusal."""
        self._appender.append("denied", f'"call":{call_id},"by":{self._line().words(by)}')

    def sent(self, call_id: int, call: PendingCall, allowed: Allow) -> None:
        """Write that a call is about to be sent."""
        grant = None if allowed.held is None else self._grant_numbers.get(allowed.held.id)
        told = {"call": call_id, "server": call.server, "tool": call.tool, "digest": call.digest, "grant": grant}
        by = self._line().words(f"{allowed.basis.kind}: {allowed.basis.name}")
        self._appender.append("sent", f'{members(told)},"by":{by}')

    def kept(self, call_id: int, blocks: Mapping[str, Any]) -> None:
        """Write the content blocks of an answer, before the answer."""
        line = self._line()
        values = ",".join(f"{json.dumps(name)}:{line.stored(block)}" for name, block in blocks.items())
        self._append("kept", line, f'"call":{call_id},"blocks":{{{values}}}')

    def together(self) -> AbstractContextManager[None]:
        """Write what is written in a block at once, at its end."""
        return self._appender.together()

    def with_next(self, write: Callable[[], object]) -> None:
        """Have something else written together with the next line; every run has a last one."""
        self._appender.with_next(write)

    def cut_off(self) -> None:
        """Count the run as interrupted by a crash from here on."""
        self._appender.cut_off(self._calls)

    def close(self) -> None:
        """Leave the run; one that has not ended is interrupted, as by a crash where it could not be written down.

        Raises:
            StoreError: Its last lines cannot be written.
        """
        self._appender.close(self._calls)

    def _number(self, grants: Sequence[Held]) -> None:
        for held in grants:
            self._grant_numbers[held.id] = self._grants
            self._grants += 1

    def _line(self) -> Line:
        return Line(self._redaction, self._keeps_content)

    def _append(self, event: str, line: Line, body: str) -> None:
        self._appender.append(event, body, line.values)


def _without_id(completion: str) -> str:
    """Return `{"id":7,"value":1}` as `{"value":1}`: equal answers are kept once."""
    return "{" + completion[completion.index(",") + 1 :].lstrip()
