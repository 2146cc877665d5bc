"""What the sandbox tells, as lines of a recording.

Above: run_journal.py, and replay, which compares what it sees with lines made the same way. Below: events, redaction.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, assert_never

from sandbox import Completed, Parked, Raised, Stopped

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from broker.recordings.events import State
    from broker.recordings.parts import Part
    from broker.recordings.redaction import Redaction
    from sandbox import Outcome, PastStep, Printed, Step

_MAX = 1e300
INLINE_CHARACTERS = 2_048
"""JSON texts that are longer are kept by digest."""


_ENCODER = json.JSONEncoder(separators=(",", ":"))


@dataclass
class Line:
    """A line in the making: its JSON text, the large values that it names by digest, and an outcome as it is stored."""

    redaction: Redaction
    keeps_content: bool
    values: dict[str, str] = field(default_factory=dict)
    outcome: str = "null"

    def stored(self, value: Any) -> str:
        """Return the JSON text of a value as `Stored`."""
        return self.stored_text(_ENCODER.encode(value))

    def stored_text(self, text: str) -> str:
        """Return a JSON text as `Stored`."""
        if not self.keeps_content:
            return f'{{"omitted":{len(text)}}}'
        text = self.redaction.json_text(text)
        if len(text) <= INLINE_CHARACTERS:
            return f'{{"value":{text}}}'
        digest = hashlib.sha256(text.encode()).hexdigest()
        self.values[digest] = text
        return f'{{"sha256":"{digest}","characters":{len(text)}}}'

    def step(self, number: int, entered: PastStep, returned: Step, printed: Sequence[Printed]) -> str:
        """Return a step, without the braces around it."""
        calls = ",".join(
            f'{{"id":{call.id},"function":{json.dumps(call.function)},"line":{call.line},'
            f'"arguments":{self.stored(call.arguments)}}}'
            for call in returned.calls
        )
        if returned.outcome is not None:
            self.outcome = self.stored(outcome_json(returned.outcome))
        return (
            f'"number":{number},"now_ns":{entered.now_ns},"completions":{json.dumps(list(entered.completions))},'
            f'"calls":[{calls}],"cancelled":{json.dumps(returned.cancelled)},"timer":{json.dumps(returned.timer)},'
            f'"printed":{self.printed(printed)},"outcome":{self.outcome}'
        )

    def parts(self, parts: Iterable[Part]) -> str:
        """Return grants and the like; where no content is kept, without arguments and words of people."""
        content = None if self.keeps_content else {"arguments", "note"}
        dumped = [part.model_dump(mode="json", exclude=content, exclude_defaults=True) for part in parts]
        return self.redaction.json_text(_ENCODER.encode(dumped))

    def words(self, text: str) -> str:
        """Return what decided a call as a JSON text; it may hold tests on arguments, and words of people."""
        return self.redaction.json_text(_ENCODER.encode(text)) if self.keeps_content else '""'

    def printed(self, pieces: Sequence[Printed]) -> str:
        """Return printed text; pieces of one stream that follow each other are one."""
        texts = []
        for stream, group in groupby(pieces, attrgetter("stream")):
            text = self.stored("".join(piece.text for piece in group))
            texts.append(f'{{"stream":"{stream}","text":{text}}}')
        return f"[{','.join(texts)}]"


def members(values: Mapping[str, Any]) -> str:
    """Return a JSON object without the braces around it."""
    return _ENCODER.encode(values)[1:-1]


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as JSON data."""
    match outcome:
        case Completed(value):
            return {"completed": value}
        case Raised():
            return {"raised": asdict(outcome)}
        case Stopped():
            return {"stopped": asdict(outcome)}
        case Parked(calls):
            return {"parked": list(calls)}
    assert_never(outcome)


def state_of(outcome: Outcome) -> State:
    """Return the word for a run that has this outcome."""
    match outcome:
        case Completed():
            return "completed"
        case Raised():
            return "raised"
        case Stopped():
            return "stopped"
        case Parked():
            return "parked"
    assert_never(outcome)


def outcome_of(written: dict[str, Any]) -> Outcome:
    """Read an outcome.

    Raises:
        ValueError: It is none.
    """
    match written:
        case {"completed": value}:
            return Completed(value)
        case {"raised": {"type": str(kind), "message": str(message), "traceback": str(traceback)}}:
            return Raised(kind, message, traceback)
        case {"stopped": {"limit": str(limit), "amount": int() | float() as amount}} if abs(amount) < _MAX:
            return Stopped(limit, amount)
        case {"parked": [*calls]} if all(isinstance(call, int) for call in calls):
            return Parked(tuple(calls))
    raise ValueError("the outcome is none that there is")
