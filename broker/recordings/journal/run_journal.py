"""Writes one run down as it happens.

Above: execution.py, which begins it, the sandbox, which tells of steps and answers, and tool_calls.py, which tells of
decisions. Below: recordings.py. Each method returns when its line is written; what it raises ends the run.
"""

from __future__ import annotations

import json
import time
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from broker.calls.call_journal import NoCallJournal
from broker.errors import RecordingError, StoreError
from broker.recordings.events import VERSION
from broker.recordings.journal.leave import recorded_denial, recorded_grant
from broker.recordings.journal.retracing import is_same_step
from broker.recordings.writing import Line, outcome_json, state_of
from sandbox import NoJournal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pydantic import BaseModel

    from broker.authorization.grants import Denial, Held
    from broker.recordings.keeping.recordings import Recordings
    from broker.recordings.parts import CallAnswer, RecordedTool
    from broker.recordings.recording import Recording
    from broker.recordings.redaction import Redaction
    from sandbox import Limits, Outcome, PastStep, Printed, Step


class UnrecordedRun(NoJournal, NoCallJournal):
    """A run that is not recorded."""


@dataclass(frozen=True, kw_only=True)
class Beginning:
    """All that a run depends on but the answers to its calls; fields as of `events.Begun`."""

    run_id: str
    filename: str
    script: str
    manifest: Mapping[str, Any]
    seed: int
    wall_ns: int
    limits: Limits
    image: str
    tools: Sequence[RecordedTool]
    policy: Any
    versions: Mapping[str, str]
    grants: Sequence[Held] = ()
    denials: Sequence[Denial] = ()
    principal: str = ""
    session: str = ""
    request: str = ""


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
        self._redaction = redaction
        self._recording = recording
        self._keeps_content = keeps_content
        self._before = before
        self._number = 0 if before is None else before.line_count
        self._steps = 0 if before is None else len(before.steps)
        self._calls = 0 if before is None else len(before.calls)
        self._grant_numbers: dict[str, int] = {}
        self._grants = 0 if before is None else len(before.grants)
        self._last: tuple[Outcome | None, str] = None, ""
        self._is_settled = False
        self._fault: StoreError | None = None
        self._waiting: list[Callable[[], object]] = []
        self._beside: list[Callable[[], object]] = []

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
            journal._begun(beginning, mode)
        return journal

    @classmethod
    def resume(
        cls, recordings: Recordings, redaction: Redaction, recording: Recording, grants: Sequence[Held] = ()
    ) -> RunJournal:
        """Go on with a run that was claimed; `grants` hold for it beside its own."""
        journal = cls(recordings, redaction, recording=recording.entry_id, keeps_content=True, before=recording)
        journal._write(journal._line(), "resumed", f'"grants":{journal._granted(grants)}')
        return journal

    @property
    def can_resume(self) -> bool:
        """Whether the run can be taken up from what is kept."""
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
        write = self._written(line, "stepped", body)
        if returned.calls:
            self._waiting.append(write)
        else:
            self._write_now(write)

    def answered(self, call_id: int, completion: str) -> None:
        """Write an answer, before the script sees it."""
        line = self._line()
        self._write(line, "answered", f'"call":{call_id},"result":{line.stored_text(_without_id(completion))}')

    def retraced(self, number: int, returned: Step, printed: Sequence[Printed]) -> None:
        """Compare a step with what was written.

        Raises:
            RecordingError: The script did something else than the first time.
        """
        if self._before is None or not is_same_step(self._before, number, returned, printed, self._redaction):
            raise RecordingError(
                f"step {number} of the run came out differently from what was recorded, so it cannot go on from there; "
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
            self._write(line, "ended", body)
            self.recordings.settle(self._recording, state_of(outcome), self._calls)
        self._is_settled = True

    def asked(self, call_id: int) -> None:
        """Write that a person is about to be asked."""
        self._write(self._line(), "asked", f'"call":{call_id}')

    def decided(
        self, by: str, calls: Sequence[CallAnswer], *, grants: Sequence[Held] = (), denials: Sequence[Denial] = ()
    ) -> None:
        """Write what a person has answered, before anything that it allows is sent."""
        line = self._line()
        denied = self._dumped([recorded_denial(denial) for denial in denials])
        body = f'"by":{json.dumps(by)},"calls":{self._dumped(calls)},"denials":{denied}'
        self._write(line, "decided", f'{body},"grants":{self._granted(grants)}')

    def revoked(self, grant_id: str) -> None:
        """Write that a grant was taken back, if it is one of this run's."""
        number = self._grant_numbers.pop(grant_id, None)
        if number is not None:
            self._write(self._line(), "revoked", f'"grant":{number}')

    def denied(self, call_id: int, by: str) -> None:
        """Write a refusal."""
        self._write(self._line(), "denied", f'"call":{call_id},"by":{json.dumps(by)}')

    def sent(self, call_id: int, *, server: str, tool: str, digest: str, by: str, grant_id: str = "") -> None:
        """Write that a call is about to be sent."""
        grant = self._grant_numbers.get(grant_id)
        told = {"call": call_id, "server": server, "tool": tool, "digest": digest, "by": by, "grant": grant}
        self._write(self._line(), "sent", _members(told))

    def kept(self, call_id: int, blocks: Mapping[str, Any]) -> None:
        """Write the content blocks of an answer, before the answer."""
        line = self._line()
        values = ",".join(f"{json.dumps(name)}:{line.stored(block)}" for name, block in blocks.items())
        self._write(line, "kept", f'"call":{call_id},"blocks":{{{values}}}')

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write what is written in a block at once, at its end."""
        try:
            with self.recordings.together():
                yield
        except StoreError as error:
            self._fault = error
            raise

    def with_next(self, write: Callable[[], object]) -> None:
        """Have something else written together with the next line; every run has a last one."""
        self._beside.append(write)

    def cut_off(self) -> None:
        """Count the run as interrupted by a crash from here on."""
        self.recordings.cut_off(self._recording, self._calls)
        self._is_settled = True

    def close(self) -> None:
        """Leave the run; one that has not ended is interrupted, as by a crash where it could not be written down.

        Raises:
            StoreError: Its last lines cannot be written.
        """
        try:
            if self._fault is None:
                self._write_now()
                if not self._is_settled:
                    self.recordings.settle(self._recording, "interrupted", self._calls)
                    self._is_settled = True
        finally:
            if not self._is_settled:
                self.recordings.cut_off(self._recording, self._calls)
                with suppress(StoreError), self.recordings.together():
                    for write in self._beside:
                        write()

    def _begun(self, beginning: Beginning, mode: str) -> None:
        line = self._line()
        script, manifest = line.stored(beginning.script), line.stored(beginning.manifest)
        body = {
            "format": "codemode-recording",
            "version": VERSION,
            "run_id": beginning.run_id,
            "mode": mode,
            "filename": beginning.filename,
            "seed": beginning.seed,
            "wall_ns": beginning.wall_ns,
            "limits": asdict(beginning.limits),
            "image": beginning.image,
            "tools": [tool.model_dump() for tool in beginning.tools],
            "principal": beginning.principal,
            "session": beginning.session,
            "versions": dict(beginning.versions),
            "redactions": self._redaction.count,
        }
        stored = f'"script":{script},"manifest":{manifest},"policy":{line.stored(beginning.policy)}'
        denied = self._dumped([recorded_denial(denial) for denial in beginning.denials])
        leave = f'"grants":{self._granted(beginning.grants)},"denials":{denied}'
        self._write(line, "begun", f"{_members(body)},{stored},{leave}")

    def _granted(self, grants: Sequence[Held]) -> str:
        """Number grants, and return them as they are written."""
        for held in grants:
            self._grant_numbers[held.id] = self._grants
            self._grants += 1
        return self._dumped([recorded_grant(held) for held in grants])

    def _dumped(self, parts: Sequence[BaseModel]) -> str:
        content = None if self._keeps_content else {"arguments", "note"}
        dumped = [part.model_dump(mode="json", exclude=content, exclude_defaults=True) for part in parts]
        return self._redaction.json_text(json.dumps(dumped, separators=(",", ":")))

    def _line(self) -> Line:
        return Line(self._redaction, self._keeps_content)

    def _write(self, line: Line, event: str, body: str) -> None:
        self._write_now(self._written(line, event, body))

    def _written(self, line: Line, event: str, body: str) -> Callable[[], object]:
        """Return what writes a line; its number and time are those of now."""
        text = f'{{"event":"{event}","at":{time.time_ns()}{"," if body else ""}{body}}}'
        number = self._number
        self._number += 1
        return partial(self.recordings.append, self._recording, number, text, line.values)

    def _write_now(self, *writes: Callable[[], object]) -> None:
        """Write, after what has waited for this; nothing is written after what could not be."""
        if self._fault is not None:
            raise self._fault
        waiting, self._waiting = [*self._waiting, *self._beside, *writes], []
        try:
            with self.recordings.together() if len(waiting) > 1 else nullcontext():
                for write in waiting:
                    write()
        except StoreError as error:
            self._fault = error
            raise
        self._beside = []


def _members(values: Mapping[str, Any]) -> str:
    return json.dumps(values, separators=(",", ":"))[1:-1]


def _without_id(completion: str) -> str:
    """`{"id":7,"value":1}` as `{"value":1}`: equal answers are kept once."""
    return "{" + completion[completion.index(",") + 1 :].lstrip()
