"""One recording, read and checked: what the run depends on, its steps, its calls, how it ended.

Above: replay, resume, show. Below: events. What is read may come from anywhere: every line is validated, and what the
lines say of each other is checked before anything relies on it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from pydantic import ValidationError

from broker.errors import RecordingError
from broker.recordings.events import (
    EVENT,
    VERSION,
    Answered,
    Asked,
    Begun,
    ByDigest,
    Denied,
    Ended,
    Event,
    Inline,
    Omitted,
    RecordedCall,
    RecordedText,
    Resumed,
    Sent,
    Stepped,
    Stored,
)
from broker.recordings.writing import Line, outcome_of
from sandbox import Limits, Past, PastStep, Stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from broker.recordings.redaction import Redaction
    from sandbox import Outcome, Printed, Step

_ANSWERS = ('{"value":', '{"error":')
_TIMED = frozenset({"wall_seconds", "cpu_seconds", "worker", "shutdown"})
"""Limits that stop a script at another place each time: the step that they end is not taken again."""


@dataclass(slots=True)
class CallStory:
    """Everything that a recording says about one call; times are Unix time in nanoseconds."""

    call: RecordedCall
    step: int
    made: int
    asked: int | None = None
    denied: Denied | None = None
    sent: Sent | None = None
    answered: Answered | None = None
    cancelled: int | None = None

    @property
    def has_failed(self) -> bool:
        """Whether the answer raised in the script; False where the answer was not kept."""
        result = None if self.answered is None else self.answered.result
        match result:
            case Inline(value={"error": _}):
                return True
        return False

    @property
    def is_unknown(self) -> bool:
        """Whether it was sent and its answer is not known."""
        return self.sent is not None and self.answered is None and self.cancelled is None


@dataclass(slots=True)
class Recording:
    """A recording that makes sense."""

    begun: Begun
    value: Callable[[str], str | None]
    entry_id: int = 0
    is_imported: bool = False
    steps: list[Stepped] = field(default_factory=list)
    calls: dict[int, CallStory] = field(default_factory=dict)
    ended: Ended | None = None
    gaps: list[tuple[int, int]] = field(default_factory=list)
    """From when to when nothing went on, because the run was interrupted or parked."""
    last_at: int = 0
    line_count: int = 0
    cut: str = ""
    """Where a file was cut short; empty where it was not."""

    @classmethod
    def read(cls, lines: Iterable[str], value: Callable[[str], str | None], **more: Any) -> Self:
        """Read the lines of a recording.

        Raises:
            RecordingError: They are none; the text names the line.
        """
        events = _events(lines)
        first = next(events, None)
        if not isinstance(first, Begun):
            raise RecordingError("it does not begin as a recording does")
        recording = cls(first, value, line_count=1, last_at=first.at, **more)
        for event in events:
            recording.line_count += 1
            problem = recording._add(event)
            if problem:
                raise RecordingError(f"line {recording.line_count}: {problem}")
        return recording

    @property
    def outcome(self) -> Outcome | None:
        """How it ended; None where it has not."""
        return None if self.ended is None else self._outcome(self.ended.outcome)

    @property
    def script(self) -> str:
        """The script's text."""
        return str(self.load(self.begun.script))

    @property
    def limits(self) -> Limits:
        """The bounds of the run."""
        whole = {name for name, kind in Limits.__annotations__.items() if kind == "int"}
        try:
            return Limits(
                **{name: int(value) if name in whole else value for name, value in self.begun.limits.items()}  # type: ignore[arg-type]
            )
        except (TypeError, ValueError) as error:
            raise RecordingError(f"its limits are not ours: {error}") from None

    @property
    def has_content(self) -> bool:
        """Whether it holds what a replay needs."""
        return self.begun.mode == "full"

    @property
    def taken_again(self) -> Sequence[Stepped]:
        """The steps that a replay takes: all but one that a limit on time ended."""
        last = self._outcome(self.steps[-1].outcome) if self.steps and self.steps[-1].outcome is not None else None
        is_timed = isinstance(last, Stopped) and last.limit in _TIMED
        return self.steps[:-1] if is_timed else self.steps

    def past(self, *, goes_on: bool) -> Past:
        """Return what the sandbox needs to take the run to where it was."""
        steps: list[PastStep] = []
        handed_in: set[int] = set()
        for step in self.taken_again:
            completions = {call: self._completion(call) for call in step.completions}
            handed_in |= completions.keys()
            steps.append(PastStep(step.now_ns, completions))
        waiting = {
            number: self._completion(number)
            for number, story in self.calls.items()
            if story.answered is not None and number not in handed_in and story.cancelled is None
        }
        characters = sum(len(str(self.load(text.text))) for step in steps_of(self) for text in step)
        return Past(tuple(steps), waiting, characters, goes_on)

    def load(self, stored: Stored) -> Any:
        """Return a value.

        Raises:
            RecordingError: It was not kept, or is not there.
        """
        match stored:
            case Inline(value=value):
                return value
            case ByDigest(sha256=digest):
                text = self.value(digest)
                if text is None:
                    raise RecordingError(f"the value {digest[:12]}… is missing from the recording")
                try:
                    return json.loads(text)
                except (ValueError, RecursionError):
                    raise RecordingError(f"the value {digest[:12]}… is no JSON that we can read") from None
            case Omitted():
                raise RecordingError("it holds metadata only: what was called, not with what")

    def answer(self, answered: Answered) -> dict[str, Any]:
        """Return the answer to a call: a `value`, or an `error` with `kind` and `message`.

        Raises:
            RecordingError: It is neither, was not kept, or is not there.
        """
        found: Any = self.load(answered.result)
        match found:
            case {"value": _} | {"error": {"kind": str(), "message": str()}}:
                return dict(found)
        raise RecordingError(f"the answer to call {answered.call} is neither a value nor an error")

    def is_same_step(self, number: int, returned: Step, printed: Sequence[Printed], redaction: Redaction) -> bool:
        """Tell whether a step that was taken again came out as it was written."""
        if number >= len(self.steps):
            return False
        written = self.steps[number]
        entered = PastStep(written.now_ns, dict.fromkeys(written.completions, ""))
        return normal(written) == normal(stepped(entered, number, returned, printed, redaction))

    def _completion(self, call: int) -> str:
        story = self.calls[call]
        if story.answered is None:
            raise RecordingError(f"call {call} was handed in without an answer")
        stored = story.answered.result
        if isinstance(stored, ByDigest):
            text = self.value(stored.sha256)
            if text is None:
                raise RecordingError(f"the answer to call {call} is missing from the recording")
        else:
            text = json.dumps(self.load(stored), separators=(",", ":"))
        if not text.startswith(_ANSWERS):
            raise RecordingError(f"the answer to call {call} is neither a value nor an error")
        return f'{{"id":{call},{text[1:]}'

    def _outcome(self, stored: Stored) -> Outcome | None:
        if isinstance(stored, Omitted):
            return None
        try:
            return outcome_of(self.load(stored))
        except ValueError as error:
            raise RecordingError(str(error)) from None

    def _add(self, event: Event) -> str:
        """Take one more line; returns what is wrong with it."""
        problem = self._take(event)
        self.last_at = max(self.last_at, event.at)
        return problem

    def _take(self, event: Event) -> str:
        match event:
            case Begun():
                return "it begins twice"
            case Stepped():
                return self._step(event)
            case Asked() | Denied() | Sent() | Answered():
                return self._tell(event)
            case Ended():
                self.ended = event
            case Resumed():
                self.ended = None
                self.gaps.append((self.last_at, event.at))
        return ""

    def _step(self, step: Stepped) -> str:
        if step.number != len(self.steps):
            return f"step {step.number} follows step {len(self.steps) - 1}"
        for call in step.completions:
            if call not in self.calls or self.calls[call].answered is None:
                return f"call {call} was handed in without an answer"
        for call in step.cancelled:
            if call in self.calls:
                self.calls[call].cancelled = step.at
        for made in step.calls:
            if made.id in self.calls:
                return f"call {made.id} is made twice"
            self.calls[made.id] = CallStory(made, step.number, step.at)
        self.steps.append(step)
        return ""

    def _tell(self, event: Asked | Denied | Sent | Answered) -> str:
        story = self.calls.get(event.call)
        if story is None:
            return f"call {event.call} was never made"
        match event:
            case Asked():
                story.asked = event.at
            case Denied():
                story.denied = event
            case Sent():
                story.sent = event
            case Answered():
                if story.answered is not None:
                    return f"call {event.call} is answered twice"
                story.answered = event
        return ""


def steps_of(recording: Recording) -> Iterator[tuple[RecordedText, ...]]:
    """Return what each step printed that is taken again."""
    return (step.printed for step in recording.taken_again)


def stepped(
    entered: PastStep, number: int, returned: Step, printed: Sequence[Printed], redaction: Redaction
) -> Stepped:
    """Return a step as it would have been written; large values are kept by digest."""
    line = Line(redaction, keeps_content=True)
    body = line.step(number, entered, returned, printed)
    event = EVENT.validate_json(f'{{"event":"stepped","at":0,{body}}}')
    assert isinstance(event, Stepped)  # noqa: S101  # what the line above says
    return event


def normal(step: Stepped) -> dict[str, Any]:
    """What makes two steps the same: not when they were taken, and not the lines of calls, which older images lack."""
    return step.model_dump(exclude={"at": True, "calls": {"__all__": {"line"}}})


def _events(lines: Iterable[str]) -> Iterator[Event]:
    for number, line in enumerate(lines, start=1):
        try:
            yield EVENT.validate_json(line)
        except ValidationError as error:
            raise RecordingError(f"line {number}: {explain(line, error)}") from None


def explain(line: str, error: ValidationError) -> str:
    """Say what is wrong with a line, without its content."""
    try:
        decoded = json.loads(line)
    except (ValueError, RecursionError):
        return "it is not JSON"
    if not isinstance(decoded, dict):
        return "it is not a JSON object"
    version = decoded.get("version")
    if isinstance(version, int) and version > VERSION:
        return f"it is of a newer codemode (format {version}, known is {VERSION}); install that"
    first = error.errors(include_input=False, include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg'].lower()}" if place else first["msg"].lower()
