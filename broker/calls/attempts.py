"""One attempt of a script to call a tool, from call to answer: its records for the envelope and the audit.

Above: tool_calls.py, which carries it along. Below: audit/log.py. The audit is written before the call is sent; a call
that cannot be written down is not made.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal

from pydantic import ConfigDict

from broker.authorization.decision import Deny
from broker.errors import StoreError
from broker.logging import logger
from sandbox import Completion, Failed, Returned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.audit.log import AuditLog
    from broker.authorization.calls import PendingCall
    from broker.authorization.decision import Allow, Basis
    from broker.calls.call_journal import CallJournal

DecisionName = Literal["allowed", "denied", "undecided"]
Status = Literal[
    "ok",
    "tool_error",
    "refused",
    "bad_arguments",
    "not_described",
    "not_found",
    "unavailable",
    "timeout",
    "outcome_unknown",
    "bad_result",
    "cancelled",
    "waiting",
]

STATUS_OF_KIND: Mapping[str, Status] = {
    "ToolError": "tool_error",
    "ToolRefusedError": "refused",
    "ToolArgumentsError": "bad_arguments",
    "ToolDescriptionRequired": "not_described",
    "ToolNotFoundError": "not_found",
    "ToolUnavailableError": "unavailable",
    "ToolTimeoutError": "timeout",
    "ToolOutcomeUnknown": "outcome_unknown",
    "ToolResultError": "bad_result",
}
"""The exception of a script for each way in which a call fails, and the word for it in the record."""


@dataclass(slots=True, kw_only=True)
class CallRecord:
    """One attempt of a script to call a tool.

    Attributes:
        server: The server's name in the config; what the script wrote if there is no such server.
        tool: The tool's own name; what the script wrote if there is no such tool.
        decision: `undecided` when the call ended before it came to a decision.
        status: How it ended.
        duration_ms: From the script's call to its answer, questions included.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    server: str
    tool: str
    decision: DecisionName = "undecided"
    status: Status = "cancelled"
    duration_ms: float = 0.0


@dataclass(slots=True)
class Attempt:
    """A call that is being answered.

    Attributes:
        call: What is asked for.
        record: Its record in the envelope.
        audit: Where it is recorded; None if nowhere.
        decision: What was decided about it; None until then.
    """

    call: PendingCall
    record: CallRecord
    audit: AuditLog | None = None
    decision: Allow | Deny | None = None
    _number: int | None = None
    _began: float = field(default_factory=time.monotonic)

    @property
    def _basis(self) -> Basis | None:
        return None if self.decision is None else self.decision.basis

    def decided(self, decision: Allow | Deny) -> None:
        """Note what was decided."""
        self.decision = decision
        self.record.decision = "denied" if isinstance(decision, Deny) else "allowed"

    def write_down(self) -> bool:
        """Record that it is about to be sent; return whether that worked."""
        if self.audit is None:
            return True
        try:
            self._number = self.audit.attempt(self.call, decision="allowed", basis=self._basis)
        except StoreError as error:
            logger().error("the audit cannot be written", problem=str(error))
            self.record.decision = "denied"
            return False
        return True

    def not_written(self) -> None:
        """Undo `write_down`, because what had to be written together with it could not be."""
        self._number = None
        self.record.decision = "undecided"

    def end(self, completion: Completion | None, journal: CallJournal) -> None:
        """Note how it ended (None if it was cut off), to be recorded with the next line of the journal."""
        record = self.record
        if completion is not None:
            record.status = _status(completion)
        record.duration_ms = round((time.monotonic() - self._began) * 1_000, 3)
        if self.audit is None:
            return
        if self._number is None:
            attempt = partial(self.audit.attempt, decision=record.decision, basis=self._basis, status=record.status)
            journal.with_next(partial(attempt, self.call))
        else:
            result = partial(self.audit.result, status=record.status, duration_ms=record.duration_ms)
            journal.with_next(partial(result, self.call, self._number, result_bytes=_size(completion)))


def _status(completion: Completion) -> Status:
    if isinstance(completion, Returned):
        return "ok"
    return STATUS_OF_KIND.get(completion.kind, "tool_error")


def _size(completion: Completion | None) -> int:
    if completion is None:
        return 0
    given = completion.message if isinstance(completion, Failed) else completion.value
    return len(json.dumps(given))
