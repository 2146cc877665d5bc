"""Replay without servers: the script runs again on the recorded answers, and every step is compared.

Above: the command line, broker.py. Below: recording.py, the sandbox. Calls are matched by their identity in the run,
which is their place in it, never by their arguments. The first step that comes out differently ends the replay.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from broker.recordings.journal.retracing import is_same_step, past_of, taken_again
from broker.recordings.redaction import Redaction
from broker.recordings.replay.text_diff import text_diff
from broker.recordings.writing import outcome_json
from sandbox import NoJournal, SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.recordings.events import Stepped
    from broker.recordings.recording import Recording
    from sandbox import Call, Completion, Limits, Printed, Sandbox, Step

SLOWER = 20
"""How much more processor time a replay may take than the run: other machines are slower."""

MAX_SECONDS = 600.0
"""Processor time that a replay may take in any case: a recording may come from anywhere, its limits with it."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What came out differently.

    Attributes:
        what: Which thing, as in `call 5 (git.git_log)`.
        line: Where in the script, 0 where that is not known.
        expected: The recorded text; JSON is written over several lines.
        actual: What came out now.
    """

    what: str
    line: int
    expected: str
    actual: str

    @property
    def diff(self) -> str:
        """The two as a unified diff, bounded."""
        return text_diff(self.expected, self.actual)


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay found.

    Attributes:
        difference: The first one; None when everything was the same.
        notes: What a reader should know beside that: a file that is cut short, another image where that may be why.
        steps: Steps that were compared.
        calls: Calls in the recording.
    """

    difference: Difference | None
    notes: tuple[str, ...]
    steps: int
    calls: int


async def replay(
    sandbox: Sandbox, recording: Recording, *, on_step: Callable[[int, Step, Sequence[Printed]], None] | None = None
) -> Replayed:
    """Replay a recording.

    Args:
        sandbox: Where to; entered.
        recording: What to.
        on_step: Told of each step that was the same, with its number.

    Raises:
        RecordingError: The recording does not hold what a replay needs.
    """
    comparison = _Comparison(recording, on_step)
    difference = None
    if taken_again(recording):
        try:
            await sandbox.run(
                recording.script,
                answer=_nothing,
                manifest=recording.manifest,
                filename=recording.begun.filename,
                limits=patient(recording.limits),
                seed=recording.begun.seed,
                wall_ns=recording.begun.wall_ns,
                journal=comparison,
                past=past_of(recording, goes_on=False),
            )
        except _DivergedError as error:
            difference = error.difference
    return Replayed(difference, _notes(sandbox, recording, difference), comparison.steps, len(recording.calls))


def patient(limits: Limits) -> Limits:
    """Return limits that a slower machine keeps as well."""
    return replace(
        limits,
        cpu_seconds=min(limits.cpu_seconds * SLOWER, MAX_SECONDS),
        wall_seconds=max(limits.wall_seconds, min(limits.wall_seconds * SLOWER, MAX_SECONDS)),
    )


class _DivergedError(SandboxError):
    def __init__(self, difference: Difference) -> None:
        super().__init__(difference.what)
        self.difference = difference


class _Comparison(NoJournal):
    def __init__(self, recording: Recording, on_step: Callable[[int, Step, Sequence[Printed]], None] | None) -> None:
        self.steps = 0
        self._recording = recording
        self._on_step = on_step
        self._redaction = Redaction()

    def retraced(self, number: int, returned: Step, printed: Sequence[Printed]) -> None:
        written = self._recording.steps[number]
        if not is_same_step(self._recording, number, returned, printed, self._redaction):
            raise _DivergedError(self._difference(number, written, returned, printed))
        self.steps += 1
        if self._on_step is not None:
            self._on_step(number, returned, printed)

    def _difference(self, number: int, written: Stepped, returned: Step, printed: Sequence[Printed]) -> Difference:
        load = self._recording.load
        line = self._line_before(number)
        for expected, actual in zip(written.calls, returned.calls, strict=False):
            then = {"function": expected.function, "arguments": load(expected.arguments)}
            now = {"function": actual.function, "arguments": actual.arguments}
            if then != now:
                what = f"call {expected.id} ({expected.function})"
                return Difference(what, actual.line or expected.line, pretty(then), pretty(now))
        if len(written.calls) != len(returned.calls):
            then_made = [f"{call.function}{_written(load(call.arguments))}" for call in written.calls]
            now_made = [f"{call.function}{_written(call.arguments)}" for call in returned.calls]
            return Difference(f"the calls of step {number}", line, "\n".join(then_made), "\n".join(now_made))
        then_text, now_text = self._recording.text_of(written.printed), "".join(piece.text for piece in printed)
        if then_text != now_text:
            return Difference(f"the printed text of step {number}", line, then_text, now_text)
        return self._ending(number, line, written, returned)

    def _ending(self, number: int, line: int, written: Stepped, returned: Step) -> Difference:
        then_outcome = None if written.outcome is None else self._recording.load(written.outcome)
        now_outcome = None if returned.outcome is None else outcome_json(returned.outcome)
        if then_outcome != now_outcome:
            return Difference(f"the outcome in step {number}", line, pretty(then_outcome), pretty(now_outcome))
        then = {"timer": written.timer, "cancelled": list(written.cancelled)}
        now = {"timer": returned.timer, "cancelled": list(returned.cancelled)}
        return Difference(f"what step {number} waits for", line, pretty(then), pretty(now))

    def _line_before(self, number: int) -> int:
        """Return the line of the last call made before a step."""
        lines = [story.line for story in self._recording.calls.values() if story.step < number]
        return lines[-1] if lines else 0


def pretty(value: Any) -> str:
    """Return JSON data over several lines."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def _written(arguments: Any) -> str:
    return json.dumps(arguments, ensure_ascii=False)


async def _nothing(_: Call) -> Completion | None:
    return None


def _notes(sandbox: Sandbox, recording: Recording, difference: Difference | None) -> tuple[str, ...]:
    notes = []
    if recording.cut:
        notes.append(f"the recording {recording.cut}; it was replayed up to there")
    elif recording.ended is None:
        notes.append("the run was interrupted; it was replayed up to there")
    if difference is not None and recording.begun.image != sandbox.image_digest:
        notes.append("it was recorded on another guest image, on which the script may have taken other steps")
    if recording.begun.redactions:
        notes.append(f"{recording.begun.redactions} secrets were taken out of script and stubs")
    return tuple(notes)
