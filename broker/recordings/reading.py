"""The lines of a recording, checked against each other, as a `Recording`.

Above: keeping/transfer.py for the store, files.py. Below: lines.py, which checks each line alone. A recording may come
from anywhere: nothing relies on a line before it fits those before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.errors import RecordingError
from broker.recordings.call_story import CallStory
from broker.recordings.events import (
    Answered,
    Asked,
    Begun,
    Decided,
    Denied,
    Ended,
    Kept,
    Resumed,
    Revoked,
    Sent,
    Stepped,
)
from broker.recordings.lines import read_events
from broker.recordings.recording import Recording

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from broker.recordings.events import Event


def recording_of_lines(lines: Iterable[str], value: Callable[[str], str | None], **more: Any) -> Recording:
    """Read the lines of a recording.

    Args:
        lines: The lines, as JSON.
        value: Returns the JSON text of a value by its digest; None where it is not there.
        more: Fields of the `Recording` that are not in its lines.

    Raises:
        RecordingError: A line is not one of ours, or does not fit the ones before; the text names it.
    """
    events = read_events(lines)
    first = beginning_of(events)
    recording = Recording(first, value, line_count=1, last_at=first.at, **more)
    recording.grants += first.grants
    recording.denials += first.denials
    for event in events:
        recording.line_count += 1
        if problem := _take(recording, event):
            raise RecordingError(f"line {recording.line_count}: {problem}")
        if not isinstance(event, Revoked):  # also written while nothing goes on
            recording.last_at = max(recording.last_at, event.at)
    return recording


def beginning_of(events: Iterator[Event]) -> Begun:
    """Take the first line of a recording.

    Raises:
        RecordingError: It does not begin a recording.
    """
    first = next(events, None)
    if not isinstance(first, Begun):
        raise RecordingError("it does not begin as a recording does")
    return first


def _take(recording: Recording, event: Event) -> str:
    """Add what one more line says; return what is wrong with it, or nothing."""
    match event:
        case Begun():
            return "it begins twice"
        case Stepped():
            return _step(recording, event)
        case Asked() | Denied() | Sent() | Kept() | Answered():
            return _tell(recording, event)
        case Decided():
            return _decide(recording, event)
        case Revoked():
            recording.revoked.add(event.grant)
        case Ended():
            recording.ended = event
        case Resumed():
            recording.ended = None
            recording.grants += event.grants
            recording.gaps.append((recording.last_at, event.at))
    return ""


def _step(recording: Recording, step: Stepped) -> str:
    calls = recording.calls
    if step.number != len(recording.steps):
        return f"step {step.number} follows step {len(recording.steps) - 1}"
    for call in step.completions:
        if call not in calls or calls[call].answered is None:
            return f"call {call} was handed in without an answer"
    for call in step.cancelled:
        if call in calls:
            calls[call].cancelled = step.at
    for made in step.calls:
        if made.id in calls:
            return f"call {made.id} is made twice"
        calls[made.id] = CallStory(made, recording.value, step.number, step.at)
    recording.steps.append(step)
    return ""


def _decide(recording: Recording, event: Decided) -> str:
    recording.grants += event.grants
    recording.denials += event.denials
    for said in event.calls:
        if said.call not in recording.calls:
            return f"call {said.call} was never made"
        recording.calls[said.call].said = said
    return ""


def _tell(recording: Recording, event: Asked | Denied | Sent | Kept | Answered) -> str:
    story = recording.calls.get(event.call)
    if story is None:
        return f"call {event.call} was never made"
    match event:
        case Asked():
            story.asked = event.at
        case Denied():
            story.denied = event
        case Sent():
            story.sent = event
            if event.grant is not None:
                recording.uses[event.grant] += 1
        case Kept():
            story.kept = event
        case Answered():
            if story.answered is not None:
                return f"call {event.call} is answered twice"
            story.answered = event
    return ""
