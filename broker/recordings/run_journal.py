"""Writes one run down as it happens.

Above: execution.py, which begins it, the sandbox, which tells of steps and answers, and tool_calls.py, which tells of
decisions. Below: recordings.py. Each method returns when its line is written; what it raises ends the run.
"""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from broker.errors import RecordingError, StoreError
from broker.logging import logger
from broker.recordings.events import VERSION, RecordedTool
from broker.recordings.writing import Line, outcome_json, state_of
from sandbox import NoJournal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from broker.recordings.events import State
    from broker.recordings.recording import Recording
    from broker.recordings.recordings import Recordings
    from broker.recordings.redaction import Redaction
    from sandbox import Limits, Outcome, PastStep, Printed, Step


class CallJournal(Protocol):
    """What is written down of a call on its way to a server.

    Each `commit` to the store takes longer than all else that is written about a call. So there are two of them for a
    call: before it is sent, and before the script is given its answer.
    """

    def together(self) -> AbstractContextManager[None]:
        """Write what is written in a block at once, at its end."""

    def with_next(self, write: Callable[[], object]) -> None:
        """Have something else written together with the next line, or now where there will be none."""

    def asked(self, call_id: int) -> None:
        """A person is about to be asked."""

    def denied(self, call_id: int, by: str) -> None:
        """The call was refused."""

    def sent(self, call_id: int, *, server: str, tool: str, digest: str, by: str) -> None:
        """The call was allowed and is about to be sent."""


class NoCallJournal:
    """Writes nothing."""

    def together(self) -> AbstractContextManager[None]:
        """Do nothing."""
        return nullcontext()

    def with_next(self, write: Callable[[], object]) -> None:
        """Write it now. Never raises: nobody could act on it."""
        try:
            write()
        except StoreError as error:
            logger().error("the store cannot be written", problem=str(error))

    def asked(self, call_id: int) -> None:
        """Do nothing."""

    def denied(self, call_id: int, by: str) -> None:
        """Do nothing."""

    def sent(self, call_id: int, *, server: str, tool: str, digest: str, by: str) -> None:
        """Do nothing."""


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
    grants: Sequence[str]
    policy: Any
    versions: Mapping[str, str]


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
        self._recordings = recordings
        self._redaction = redaction
        self._recording = recording
        self._keeps_content = keeps_content
        self._before = before
        self._number = 0 if before is None else before.line_count
        self._steps = 0 if before is None else len(before.steps)
        self._calls = 0 if before is None else len(before.calls)
        self._is_settled = False
        self._waiting: list[Callable[[], object]] = []

    @classmethod
    def begin(cls, recordings: Recordings, redaction: Redaction, beginning: Beginning) -> RunJournal:
        """Write the first line.

        Raises:
            StoreError: It cannot be written; nothing has been run.
        """
        mode = recordings.settings.mode
        recording = recordings.begin(beginning.run_id, mode, beginning.filename)
        journal = cls(recordings, redaction, recording=recording, keeps_content=mode == "full")
        journal._begun(beginning, mode)
        return journal

    @classmethod
    def resume(cls, recordings: Recordings, redaction: Redaction, recording: Recording) -> RunJournal:
        """Go on with a run that was claimed."""
        journal = cls(recordings, redaction, recording=recording.entry_id, keeps_content=True, before=recording)
        journal._write(journal._line(), "resumed", "")
        return journal

    def stepped(self, entered: PastStep, returned: Step, printed: Sequence[Printed]) -> None:
        """Write a step, before its calls are made.

        One with calls waits for the next line: each of them has another one before it has any effect.
        """
        line = self._line()
        body = line.step(self._steps, entered, returned, printed)
        self._steps += 1
        self._calls += len(returned.calls)
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
        if self._before is None or not self._before.is_same_step(number, returned, printed, self._redaction):
            raise RecordingError(
                f"step {number} of the run came out differently from what was recorded, so it cannot go on from there; "
                "a secret that was taken out of the recording would do that."
            )

    def ended(self, outcome: Outcome, printed: Sequence[Printed]) -> None:
        """Write the outcome."""
        line = self._line()
        body = f'"outcome":{line.stored(outcome_json(outcome))},"printed":{line.printed(printed)}'
        with self.together():
            self._write(line, "ended", body)
            self._settle(state_of(outcome))

    def asked(self, call_id: int) -> None:
        """Write that a person is about to be asked."""
        self._write(self._line(), "asked", f'"call":{call_id}')

    def denied(self, call_id: int, by: str) -> None:
        """Write a refusal."""
        self._write(self._line(), "denied", f'"call":{call_id},"by":{json.dumps(by)}')

    def sent(self, call_id: int, *, server: str, tool: str, digest: str, by: str) -> None:
        """Write that a call is about to be sent."""
        body = _members({"call": call_id, "server": server, "tool": tool, "digest": digest, "by": by})
        self._write(self._line(), "sent", body)

    def together(self) -> AbstractContextManager[None]:
        """Write what is written in a block at once, at its end."""
        return self._recordings.together()

    def with_next(self, write: Callable[[], object]) -> None:
        """Have something else written together with the next line; every run has a last one."""
        self._waiting.append(write)

    def close(self) -> None:
        """Leave the run; one that has not ended is interrupted."""
        if self._waiting:
            self._write_now()
        if not self._is_settled:
            self._settle("interrupted")

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
            "grants": list(beginning.grants),
            "versions": dict(beginning.versions),
            "redactions": self._redaction.count,
        }
        stored = f'"script":{script},"manifest":{manifest},"policy":{line.stored(beginning.policy)}'
        self._write(line, "begun", f"{_members(body)},{stored}")

    def _line(self) -> Line:
        return Line(self._redaction, self._keeps_content)

    def _write(self, line: Line, event: str, body: str) -> None:
        self._write_now(self._written(line, event, body))

    def _written(self, line: Line, event: str, body: str) -> Callable[[], object]:
        """Return what writes a line; its number and time are those of now."""
        text = f'{{"event":"{event}","at":{time.time_ns()}{"," if body else ""}{body}}}'
        number = self._number
        self._number += 1
        return partial(self._recordings.append, self._recording, number, text, line.values)

    def _write_now(self, *writes: Callable[[], object]) -> None:
        """Write, after what has waited for this."""
        if not self._waiting:
            for write in writes:
                write()
            return
        waiting, self._waiting = self._waiting, []
        with self.together():
            for write in (*waiting, *writes):
                write()

    def _settle(self, state: State) -> None:
        self._is_settled = True
        self._recordings.settle(self._recording, state, self._calls)


def _members(values: Mapping[str, Any]) -> str:
    return json.dumps(values, separators=(",", ":"))[1:-1]


def _without_id(completion: str) -> str:
    """`{"id":7,"value":1}` as `{"value":1}`: equal answers are kept once."""
    return "{" + completion[completion.index(",") + 1 :].lstrip()
