"""One call of a recorded run: what the lines of the recording say about it, put together.

Above: reading.py, which reads the lines, and whatever shows or compares calls. Below: events.py, parts.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from broker.errors import RecordingError
from broker.recordings.parts import ByDigest, Inline, load_stored

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.recordings.events import Answered, Denied, Kept, Sent
    from broker.recordings.parts import CallAnswer, RecordedCall

CallStatus: TypeAlias = Literal["ok", "failed", "refused", "cancelled", "unknown", "waiting"]


@dataclass(slots=True)
class CallStory:
    """Everything that a recording says about one call; times are Unix time in nanoseconds.

    Attributes:
        call: The call as it is written down; `function`, `line` and `arguments` read it.
        value: Finds the JSON text of a large value by its digest.
        step: The number of the step that made it.
        made: When the script made it.
        asked: When a person was asked about it; None where nobody was.
        denied: When it was refused (`at`), and why (`by`).
        sent: When it was sent (`at`), to which `server` and `tool`, and what allowed it (`by`).
        answered: When its answer came (`at`); `answer`, `result` and `error` read it.
        cancelled: When the script stopped waiting for it.
        said: What a person said of it.
        kept: The content blocks of its answer, of which the script got handles.
    """

    call: RecordedCall
    value: Callable[[str], str | None] = field(repr=False, compare=False)
    step: int
    made: int
    asked: int | None = None
    denied: Denied | None = None
    sent: Sent | None = None
    answered: Answered | None = None
    cancelled: int | None = None
    said: CallAnswer | None = None
    kept: Kept | None = None

    @property
    def function(self) -> str:
        """What was called, as `namespace.function`."""
        return self.call.function

    @property
    def line(self) -> int:
        """Where in the script; 0 where that is not known."""
        return self.call.line

    @property
    def arguments(self) -> Any:
        """What it was called with, by parameter.

        Raises:
            RecordingError: It was not kept, or is not there.
        """
        return load_stored(self.call.arguments, self.value)

    @property
    def status(self) -> CallStatus:
        """How it ended; `unknown` if it was sent and is not answered, `waiting` if it was not sent yet."""
        if self.denied is not None:
            return "refused"
        if self.answered is not None:
            return "failed" if self.has_failed else "ok"
        if self.cancelled is not None:
            return "cancelled"
        return "unknown" if self.sent is not None else "waiting"

    @property
    def answer(self) -> dict[str, Any] | None:
        """The answer: a `value`, or an `error` with the `kind` and `message` of the exception, and perhaps `details`.

        Raises:
            RecordingError: It is neither, was not kept, or is not there.
        """
        if self.answered is None:
            return None
        found: Any = load_stored(self.answered.result, self.value)
        match found:
            case {"value": _}:
                return dict(found)
            case {"error": {"kind": str(), "message": str()} as error} if isinstance(error.get("details", {}), dict):
                return dict(found)
        raise RecordingError(f"the answer to call {self.call.id} is neither a value nor an error")

    @property
    def result(self) -> Any:
        """What the script got; None where the call has not returned. Raises as `answer`."""
        return (self.answer or {}).get("value")

    @property
    def error(self) -> dict[str, Any] | None:
        """What was raised in the script; None where nothing was. Raises as `answer`."""
        return (self.answer or {}).get("error")

    @property
    def has_failed(self) -> bool:
        """Whether the answer raised in the script; False where the answer was not kept."""
        match None if self.answered is None else self.answered.result:
            case Inline(value={"error": _}):
                return True
            case ByDigest(sha256=digest):
                return (self.value(digest) or "").startswith('{"error":')
        return False

    @property
    def is_over(self) -> bool:
        """Whether the script waits for it no longer, or is about to have its answer."""
        return self.answered is not None or self.cancelled is not None

    @property
    def is_unknown(self) -> bool:
        """Whether it was sent and its answer is not known."""
        return self.sent is not None and not self.is_over
