"""The envelope: how a run ended, as `codemode run --json` prints it and a model's reply is made of.

Above: execution.py, which fills it, and whoever shows it. Below: attempts.py. Texts in it are the script's and
servers', without our secrets.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, InstanceOf

from broker.authorization.questions import Question  # noqa: TC001  # pydantic reads it
from broker.calls.attempts import CallRecord  # noqa: TC001  # the same
from broker.runs.not_described import NotDescribed  # noqa: TC001  # the same
from sandbox import Completed, Parked, Raised, Stopped, Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.calls.content_blocks import ContentBlocks
    from broker.redaction import Redactor
    from sandbox import Outcome


class ExecutionError(BaseModel):
    """What ended a script that raised; the texts are the guest's, or ours where the script was not started."""

    model_config = ConfigDict(extra="forbid")

    type: str
    message: str
    traceback: str


class StoppedBy(BaseModel):
    """The limit that ended a script, and what was allowed, in the limit's unit.

    `shutdown` is no limit: the run was stopped from outside, after so many seconds.
    """

    model_config = ConfigDict(extra="forbid")

    limit: str
    amount: float
    line: int | None = None

    @property
    def reached(self) -> str:
        """The limit and its amount, as `calls=1000`."""
        return f"{self.limit}={int(self.amount) if self.amount.is_integer() else f'{self.amount:g}'}"


class WaitsFor(BaseModel):
    """What a parked run waits for: the question's id, its text for a person, and how many calls are in it.

    `asked` is the question itself; not in the JSON.
    """

    model_config = ConfigDict(extra="forbid")

    question: str
    text: str
    calls: int
    asked: InstanceOf[Question] = Field(exclude=True, repr=False)

    @classmethod
    def answer_to(cls, asked: Question, question_id: str) -> Self:
        """Return a wait for the answer to a question."""
        return cls(question=question_id, text=asked.as_text(), calls=len(asked.calls), asked=asked)


class ExecutionResult(BaseModel):
    """The envelope: everything about one run, as `codemode run --json` prints it.

    `parked` means that the run waits for an answer and can go on; without an answerer a call is refused
    instead, and a script that does not catch that has `raised` a `ToolRefusedError`.

    Attributes:
        duration_ms: From when there was a sandbox for it: reading and checking the script, questions, the run itself.
        displayed: Content blocks of MCP that the script displayed; not in the JSON.
        not_displayed: How many more it displayed than there is room for; not in the JSON.
        alike_calls: How many of its last calls were the same, arguments included; not in the JSON.
        waits_for: What a run waits for that `Session.resume` goes on with; not in the JSON.
        not_described: What a script named that was not described, so that it was not started; not in the JSON.
    """

    model_config = ConfigDict(extra="forbid")

    outcome: Literal["completed", "raised", "stopped", "parked"]
    value: Any = None
    stdout: str = ""
    stderr: str = ""
    error: ExecutionError | None = None
    stopped: StoppedBy | None = None
    calls: list[CallRecord]
    usage: dict[str, int | float]
    run_id: str
    duration_ms: float
    displayed: list[dict[str, Any]] = Field(default=[], exclude=True, repr=False)
    not_displayed: int = Field(default=0, exclude=True)
    alike_calls: int = Field(default=0, exclude=True)
    waits_for: WaitsFor | None = Field(default=None, exclude=True)
    not_described: NotDescribed | None = Field(default=None, exclude=True, repr=False)

    @property
    def is_refused(self) -> bool:
        """Whether the script ended because a call of it was refused, also inside an exception group."""
        if self.error is None or not any(call.status == "refused" for call in self.calls):
            return False
        grouped = self.error.type.endswith("ExceptionGroup") and "ToolRefusedError" in self.error.traceback
        return self.error.type == "ToolRefusedError" or grouped


def envelope_of(  # noqa: PLR0913  # the parts of an envelope
    outcome: Outcome,
    run_id: str,
    began: float,
    *,
    calls: Sequence[CallRecord] = (),
    stdout: str = "",
    stderr: str = "",
    usage: Usage | None = None,
    blocks: ContentBlocks | None = None,
    question: Question | None = None,
    alike_calls: int = 0,
    not_described: NotDescribed | None = None,
) -> ExecutionResult:
    """Return the envelope of a run that began at `began` on the monotonic clock."""
    fields: dict[str, Any] = {}
    match outcome:
        case Completed(value):
            fields = {"outcome": "completed", "value": value}
        case Raised(kind, message, traceback):
            fields = {
                "outcome": "raised",
                "error": ExecutionError(type=kind, message=message, traceback=traceback),
            }
        case Stopped(limit, amount, line):
            fields = {"outcome": "stopped", "stopped": StoppedBy(limit=limit, amount=amount, line=line)}
        case Parked():
            waits = None if question is None else WaitsFor.answer_to(question, f"q_{question.digest[:32]}")
            fields = {"outcome": "parked", "waits_for": waits}
    usage = usage or Usage(0.0, 0.0, 0, 0, 0)
    return ExecutionResult(
        **fields,
        stdout=stdout,
        stderr=stderr,
        calls=list(calls),
        usage={name: getattr(usage, name) for name in usage.__slots__},
        run_id=run_id,
        displayed=blocks.displayed if blocks is not None else [],
        not_displayed=blocks.left_out if blocks is not None else 0,
        alike_calls=alike_calls,
        not_described=not_described,
        duration_ms=round((time.monotonic() - began) * 1_000, 3),
    )


def redacted_outcome(outcome: Outcome, redact: Redactor) -> Outcome:
    """Take secrets out of what a script returned or raised; it may have put one together from parts."""
    match outcome:
        case Completed(value):
            return Completed(redact.value(value))
        case Raised(kind, message, traceback):
            return Raised(kind, redact(message), redact(traceback))
    return outcome
