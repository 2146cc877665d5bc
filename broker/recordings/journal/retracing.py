"""The past that the sandbox needs to take a recorded run again, and the check that its steps are the same.

Above: replay, resuming. Below: recording.py, writing.py.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from broker.errors import RecordingError
from broker.recordings.events import EVENT, Stepped
from broker.recordings.parts import ByDigest
from broker.recordings.writing import Line
from sandbox import Past, PastStep, Stopped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.recordings.recording import Recording
    from broker.recordings.redaction import Redaction
    from sandbox import Printed, Step

_ANSWERS = ('{"value":', '{"error":')
_TIMED = frozenset({"wall_seconds", "cpu_seconds", "worker", "shutdown"})
"""Limits that stop a script at another place each time: the step that they end is not taken again."""


def taken_again(recording: Recording) -> Sequence[Stepped]:
    """Return the steps that a replay takes: all but one that a limit on time ended."""
    steps = recording.steps
    last = recording.read_outcome(steps[-1].outcome) if steps and steps[-1].outcome is not None else None
    is_timed = isinstance(last, Stopped) and last.limit in _TIMED
    return steps[:-1] if is_timed else steps


def past_of(recording: Recording, *, goes_on: bool) -> Past:
    """Return what takes the run to where it was.

    Raises:
        RecordingError: The recording does not hold what that needs.
    """
    taken = taken_again(recording)
    steps: list[PastStep] = []
    handed_in: set[int] = set()
    for step in taken:
        completions = {call: _completion(recording, call) for call in step.completions}
        handed_in |= completions.keys()
        steps.append(PastStep(step.now_ns, completions))
    waiting = {
        number: _completion(recording, number)
        for number, story in recording.calls.items()
        if story.answered is not None and number not in handed_in and story.cancelled is None
    }
    characters = len(recording.text_of(piece for step in taken for piece in step.printed))
    return Past(tuple(steps), waiting, characters, goes_on)


def is_same_step(
    recording: Recording, number: int, returned: Step, printed: Sequence[Printed], redaction: Redaction
) -> bool:
    """Tell whether a step that was taken again came out as it was written."""
    if number >= len(recording.steps):
        return False
    written = recording.steps[number]
    entered = PastStep(written.now_ns, dict.fromkeys(written.completions, ""))
    line = Line(redaction, keeps_content=True)
    body = line.step(number, entered, returned, printed)
    made = EVENT.validate_json(f'{{"event":"stepped","at":0,{body}}}')
    assert isinstance(made, Stepped)  # noqa: S101  # what the line above says
    return _normal(made) == _normal(written)


def _normal(step: Stepped) -> tuple[Any, ...]:
    """Return what makes two steps the same: not their times, and not the lines of calls, which older images lack."""
    calls = [(call.id, call.function, call.arguments) for call in step.calls]
    entered = (step.number, step.now_ns, step.completions)
    return *entered, calls, step.cancelled, step.timer, step.printed, step.outcome


def _completion(recording: Recording, call: int) -> str:
    story = recording.calls[call]
    if story.answered is None:
        raise RecordingError(f"call {call} was handed in without an answer")
    stored = story.answered.result
    if isinstance(stored, ByDigest):
        text = recording.value(stored.sha256)
        if text is None:
            raise RecordingError(f"the answer to call {call} is missing from the recording")
    else:
        text = json.dumps(recording.load(stored), separators=(",", ":"))
    if not text.startswith(_ANSWERS):
        raise RecordingError(f"the answer to call {call} is neither a value nor an error")
    return f'{{"id":{call},{text[1:]}'
