"""The one path from a stub in a script to `tools/call` at a server.

Above: execution.py hands `ToolCalls.answer` to the sandbox. Below: catalog, consent, upstreams. In this order,
and a call that fails a step goes no further: resolve the name, check that the tool is described, check the
arguments, decide, send once, convert the result. Every attempt leaves a record, the cancelled ones too.
Nothing else in the code base calls `Upstream.call_tool`.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Literal, assert_never

from pydantic import BaseModel, ConfigDict

from broker.authorization.calls import PendingCall, ToolFacts
from broker.authorization.decision import Allow, Ask, Deny
from broker.errors import (
    CallTimeoutError,
    OutcomeUnknownError,
    ReplyError,
    ToolRejectedError,
    UnavailableError,
    UpstreamError,
)
from broker.host_paths import hide_host_paths, hide_in_details
from broker.json_schema import first_fault
from broker.recordings.run_journal import NoCallJournal
from broker.tool_changes import what_changed
from broker.tool_results import completion_of, failure, quoted
from sandbox import Completion, Failed, Returned

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.authorization.desk import RunDesk
    from broker.catalog import Catalog, CatalogEntry
    from broker.content_blocks import ContentBlocks
    from broker.disclosure import Disclosure
    from broker.recordings.run_journal import CallJournal
    from broker.upstream import Upstream
    from sandbox import Call, Stopwatch

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
]

# The exception of a script for each way in which a call fails, and the word for it in the record.
_STATUS_OF_KIND: Mapping[str, Status] = {
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
_KIND_OF_ERROR: Mapping[type[UpstreamError], str] = {
    UnavailableError: "ToolUnavailableError",
    CallTimeoutError: "ToolTimeoutError",
    OutcomeUnknownError: "ToolOutcomeUnknown",
    ReplyError: "ToolResultError",
}


class CallRecord(BaseModel):
    """One attempt of a script to call a tool.

    Attributes:
        server: The server's name in the config; the script's own word where there is no such server.
        tool: The tool's original name; the script's own word where there is no such tool.
        decision: `undecided` when the call ended before it came to a decision.
        status: How it ended.
        duration_ms: From the script's call to its answer, questions included.
    """

    model_config = ConfigDict(extra="forbid")

    server: str
    tool: str
    decision: DecisionName = "undecided"
    status: Status = "cancelled"
    duration_ms: float = 0.0


class ToolCalls:
    """Answers the calls of one run and keeps their records."""

    def __init__(
        self,
        *,
        catalog: Catalog,
        upstreams: Mapping[str, Upstream],
        desk: RunDesk,
        disclosure: Disclosure,
        stopwatch: Stopwatch,
        redact: Callable[[str], str] = str,
        on_call: Callable[[CallRecord, int, int], None] | None = None,
        blocks: ContentBlocks | None = None,
        journal: CallJournal | None = None,
    ) -> None:
        """Take what decides about calls; `stopwatch` stands still while a person is asked.

        `on_call` is told of each call that has ended, with the numbers of calls ended and made; it must not raise.
        `blocks` keeps images and the like for the script to display.
        """
        self._records: dict[int, CallRecord] = {}
        self._catalog = catalog
        self._upstreams = upstreams
        self._desk = desk
        self._disclosure = disclosure
        self._stopwatch = stopwatch
        self._redact = redact
        self._journal = journal or NoCallJournal()
        self._on_call = on_call
        self._blocks = blocks
        self._ended = 0

    @property
    def records(self) -> list[CallRecord]:
        """The calls in the order in which the script made them."""
        return [self._records[number] for number in sorted(self._records)]

    async def answer(self, call: Call) -> Completion:
        """Answer one call of the script. Never raises for what a script or a server can cause."""
        entry = self._catalog.by_python_name(call.function)
        namespace, _, function = call.function.partition(".")
        if entry is not None:
            record = CallRecord(server=entry.spec.server, tool=entry.spec.name)
        else:
            record = CallRecord(server=self._catalog.server_of(namespace) or namespace, tool=function)
        # Before anything is sent, so that a call that is cut off is on record.
        self._records[call.id] = record
        began = time.monotonic()
        try:
            completion = await self._answer(call, entry, record)
            if isinstance(completion, Failed):
                completion = Failed(
                    completion.kind,
                    self._redact(hide_host_paths(completion.message, call.arguments)),
                    hide_in_details(completion.details, call.arguments),
                )
            record.status = _status(completion)
        finally:
            record.duration_ms = round((time.monotonic() - began) * 1_000, 3)
            self._ended += 1
            if self._on_call is not None:
                self._on_call(record, self._ended, len(self._records))
        return completion

    async def _answer(self, call: Call, entry: CatalogEntry | None, record: CallRecord) -> Completion:
        if entry is None:
            return self._not_found(call, record)
        if not self._disclosure.is_described(entry):
            return _needs_description(entry, self._disclosure.changed(entry))
        fault = first_fault(call.arguments, entry.spec.input_schema)
        if fault is not None:
            return failure("ToolArgumentsError", f"{entry.python_name}() was not called: {fault}", entry)
        spec = entry.spec
        pending = self._pending(call, entry)
        refusal = await self._refusal(call, pending, entry, record)
        if refusal is not None:
            return refusal
        # A person may have taken their time, and the server may have changed the tool meanwhile.
        now = self._catalog.by_python_name(call.function)
        if now is None or now.spec.digest != spec.digest:
            return _needs_description(entry, what_changed(spec, now.spec if now is not None else None))
        return await self._send(call, pending, entry)

    def _pending(self, call: Call, entry: CatalogEntry) -> PendingCall:
        spec = entry.spec
        settings = self._upstreams[spec.server].settings
        labels = self._desk.labels_of(settings.labels)
        facts = ToolFacts.of(spec, trust_annotations=settings.trust_annotations, labels=labels)
        return PendingCall(spec.server, spec.name, spec.digest, call.arguments, facts, self._desk.caller)

    async def _refusal(
        self, call: Call, pending: PendingCall, entry: CatalogEntry, record: CallRecord
    ) -> Failed | None:
        decision = self._desk.decide_now(pending)
        if isinstance(decision, Ask):
            self._journal.asked(call.id)
            with self._stopwatch.paused():
                decision = await self._desk.decide(pending, order=call.id)
        match decision:
            case Allow():
                record.decision = "allowed"
                return None
            case Deny(reason):
                record.decision = "denied"
                self._journal.denied(call.id, reason)
                return failure("ToolRefusedError", reason, entry)
        assert_never(decision)

    async def _send(self, call: Call, pending: PendingCall, entry: CatalogEntry) -> Completion:
        spec = entry.spec
        try:
            async with self._desk.turn(pending):
                self._journal.sent(call.id, server=spec.server, tool=spec.name, digest=spec.digest, by="")
                raw = await self._upstreams[spec.server].call_tool(spec.name, call.arguments)
        except ToolRejectedError as error:
            said = quoted(spec.server, error.server_text)
            completion: Completion = failure("ToolError", f"{error} {said}", entry)
        except UpstreamError as error:
            return failure(_KIND_OF_ERROR[type(error)], str(error), entry)
        else:
            completion = completion_of(raw, entry, blocks=self._blocks)
        self._desk.receive(pending, _received(completion))
        return completion

    def _not_found(self, call: Call, record: CallRecord) -> Failed:
        """The guest knows only listed tools, so this is a server that is down or a tool that has gone."""
        details = {"server": record.server, "tool": record.tool}
        upstream = self._upstreams.get(record.server)
        if upstream is not None and (problem := upstream.status.problem) is not None:
            message = f"{record.server} is not available: {problem}. Nothing was sent."
            return Failed("ToolUnavailableError", message, details)
        near = self._catalog.suggest(call.function)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        return Failed("ToolNotFoundError", f"There is no tool {call.function}.{hint}", details)


def fetch_request(names: list[str]) -> str:
    """Return the literal request that describes these tools."""
    return f"get_tool_details({json.dumps(names)})"


def _needs_description(entry: CatalogEntry, changed: str) -> Failed:
    since = f" Since it was described, {changed}." if changed else ""
    return failure(
        "ToolDescriptionRequired",
        f"{entry.python_name} was not called: its present description has not been fetched.{since} Fetch it with "
        f"{fetch_request([entry.qualified_name])} and run the script again.",
        entry,
    )


def _received(completion: Completion) -> Any:
    """Return what a script is given of a server."""
    if isinstance(completion, Returned):
        return completion.value
    return [completion.message, completion.details]


def _status(completion: Completion) -> Status:
    if isinstance(completion, Returned):
        return "ok"
    return _STATUS_OF_KIND.get(completion.kind, "tool_error")
