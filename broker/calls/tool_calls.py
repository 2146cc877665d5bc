"""The one path from a stub in a script to `tools/call` at a server.

Above: run_calls.py for scripts, direct_calls.py. Below: catalog, run_desk.py, upstreams. The steps, in this order:
resolve the name, check that the tool is described, check the arguments, decide, send once, convert the result. A call
that fails a step goes no further. Every attempt leaves a record, a cancelled one too. Nothing else calls
`Upstream.call_tool`.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, assert_never

from broker.authorization.calls import PendingCall, ToolFacts
from broker.authorization.decision import Allow, Ask, Deny
from broker.authorization.forms import Person
from broker.calls.argument_faults import fault_of
from broker.calls.attempts import Attempt, CallRecord
from broker.calls.call_failures import failed_at_server, needs_description, refused
from broker.calls.host_paths import HostPaths
from broker.calls.tool_results import completion_of
from broker.errors import UpstreamError
from broker.texts import call_texts
from broker.tools.near_names import MOST_NAMES
from broker.tools.tool_changes import what_changed
from broker.tracing import call_span, is_traced
from sandbox import Call, Completion, Failed, Returned

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp.shared.dispatcher import ProgressFnT

    from broker.authorization.forms import Form, FormReply
    from broker.authorization.run_desk import RunDesk
    from broker.calls.content_blocks import ContentBlocks
    from broker.disclosure.disclosure import Disclosure
    from broker.redaction import Redactor
    from broker.tools.catalog import CatalogEntry
    from sandbox import Stopwatch


class _NobodyThereError(Exception):
    """A call needs an answer from a person who is not there."""


class ToolCalls:
    """Answers the calls of one run and keeps their records."""

    def __init__(
        self,
        *,
        disclosure: Disclosure,
        desk: RunDesk,
        stopwatch: Stopwatch,
        redact: Redactor,
        on_call: Callable[[CallRecord, int, int], None] | None = None,
        blocks: ContentBlocks | None = None,
        on_progress: ProgressFnT | None = None,
        convert: Callable[[dict[str, Any], CatalogEntry], Completion] | None = None,
    ) -> None:
        """Take what decides about calls.

        Args:
            disclosure: The tools that are described.
            desk: Decides about each call.
            stopwatch: Stands still while a person is asked.
            redact: Takes secrets out of answers.
            on_call: Receives each call that has ended, with the numbers of calls ended and made; must not raise.
            blocks: Keeps images and the like for the script to display.
            on_progress: Receives what a server reports of its progress.
            convert: Makes the answer from a server's result; that of a script if None. Must not raise.
        """
        self._records: dict[int, CallRecord] = {}
        # By the digest of a definition, which its server is part of; what the operator says of servers stays.
        self._facts: dict[str, ToolFacts] = {}
        self._disclosure = disclosure
        self._catalog = disclosure.catalog
        self._upstreams = disclosure.upstreams
        self._desk = desk
        self._stopwatch = stopwatch
        self._redact = redact
        self._journal = desk.journal
        self._on_call = on_call
        self._blocks = blocks
        self._on_progress = on_progress
        self._convert = convert or partial(completion_of, blocks=blocks, redact=redact)
        self._is_traced = is_traced()
        self._ended = self._unknown = 0
        self._last: Call | None = None
        self._alike = 0

    @property
    def alike(self) -> int:
        """How many of the last calls were the same, arguments included."""
        return self._alike

    @property
    def records(self) -> list[CallRecord]:
        """The calls in the order in which the script made them."""
        return [self._records[number] for number in sorted(self._records)]

    def restore(self, earlier: Mapping[int, CallRecord]) -> None:
        """Put on record the calls that a run had made before it was resumed."""
        self._records.update(earlier)

    def note_known(self, call: Call, completion: Completion) -> None:
        """Count an answer that did not come from a call as data received from its server, for flow rules."""
        server, tool = self._named(call, self._catalog.by_python_name(call.function))
        upstream = self._upstreams.get(server)
        facts = ToolFacts(labels=self._desk.policy.labels_of(None if upstream is None else upstream.settings.labels))
        made = PendingCall(server, tool, "", call.arguments, facts, self._desk.caller)
        self._desk.receive(made, _received(completion))

    async def answer(self, call: Call) -> Completion | None:
        """Answer one call of the script; None if it has to wait for a person who is not there.

        Never raises for what a script or a server can cause.
        """
        self._compare(call)
        entry = self._catalog.by_python_name(call.function)
        server, tool = self._named(call, entry)
        record = CallRecord(server=server, tool=tool)
        pending = self._pending(call, entry, record)
        attempt = Attempt(pending, record, self._desk.audit)
        # Before anything is sent, so that a call that is cut off is on record.
        self._records[call.id] = record
        completion: Completion | None = None
        with call_span(record, exists=entry is not None) if self._is_traced else nullcontext():
            try:
                completion = self._cleaned(await self._answer(call, entry, attempt), call)
            except _NobodyThereError:
                record.status = "waiting"
            finally:
                attempt.end(completion, self._journal)
                self._ended += 1
                if self._on_call is not None:
                    self._on_call(record, self._ended, len(self._records))
        return completion

    def _compare(self, call: Call) -> None:
        last, self._last = self._last, call
        is_same = last is not None and (last.function, last.arguments) == (call.function, call.arguments)
        self._alike = self._alike + 1 if is_same else 1

    def _named(self, call: Call, entry: CatalogEntry | None) -> tuple[str, str]:
        """Return the names of server and tool; for an unknown tool, as the script wrote them."""
        if entry is not None:
            return entry.spec.server, entry.spec.name
        namespace, _, function = call.function.partition(".")
        return self._catalog.server_of(namespace) or namespace, function

    def _cleaned(self, completion: Completion, call: Call) -> Completion:
        """Return a completion without secrets; in a failure, without host paths that the script did not name."""
        if isinstance(completion, Returned):
            return Returned(self._redact.value(completion.value))
        paths = HostPaths(call.arguments)
        return Failed(
            completion.kind,
            self._redact(paths.hidden(completion.message)),
            self._redact.value(paths.hidden_in(completion.details)),
        )

    async def _answer(self, call: Call, entry: CatalogEntry | None, attempt: Attempt) -> Completion:
        if entry is None:
            return self._not_found(call, attempt.record)
        if not self._disclosure.is_described(entry):
            return needs_description(entry, self._disclosure.changed(entry))
        failed = fault_of(call.arguments, entry)
        if failed is None:
            failed = await self._refusal(call, entry, attempt)
        return await self._send(call, entry, attempt) if failed is None else failed

    def _pending(self, call: Call, entry: CatalogEntry | None, record: CallRecord) -> PendingCall:
        if entry is None:
            return PendingCall(record.server, record.tool, "", call.arguments, caller=self._desk.caller)
        spec = entry.spec
        facts = self._facts.get(spec.digest)
        if facts is None:
            facts = self._facts[spec.digest] = self._desk.policy.facts_of(spec, self._upstreams[spec.server].settings)
        return PendingCall(spec.server, spec.name, spec.digest, call.arguments, facts, self._desk.caller)

    async def _refusal(self, call: Call, entry: CatalogEntry, attempt: Attempt) -> Failed | None:
        decision = self._desk.decide_now(attempt.call, order=call.id)
        if isinstance(decision, Ask):
            self._journal.asked(call.id)
            if self._desk.leave(attempt.call, decision, order=call.id):
                raise _NobodyThereError
            with self._stopwatch.paused():
                said = await self._desk.decide(attempt.call, order=call.id)
            if said is None:
                raise _NobodyThereError
            decision = said
        attempt.decided(decision)
        match decision:
            case Allow():
                return None
            case Deny(reason):
                self._journal.denied(call.id, reason)
                return refused(entry, reason)
        assert_never(decision)

    async def _send(self, call: Call, entry: CatalogEntry, attempt: Attempt) -> Completion:
        pending, upstream = attempt.call, self._upstreams[entry.spec.server]
        try:
            async with self._desk.turn(pending):
                # First, because a server that comes back may have another tool of that name.
                await upstream.connected()
                failed = self._overtaken(call, entry, attempt) or self._unwritten(call, entry, attempt)
                if failed is not None:
                    return failed
                raw = await upstream.call_tool(
                    pending.tool,
                    pending.arguments,
                    on_progress=self._on_progress,
                    run=pending.caller.run,
                    person=self._person(pending.tool),
                )
        except UpstreamError as error:
            completion: Completion = failed_at_server(entry, error)
        else:
            completion = self._convert(raw, entry)
        if self._blocks is not None and (kept := self._blocks.take_new()):
            self._journal.kept(call.id, kept)
        self._desk.receive(pending, _received(completion))
        return completion

    def _overtaken(self, call: Call, entry: CatalogEntry, attempt: Attempt) -> Failed | None:
        """Refuse a call whose tool or permission has changed since it was allowed, while it waited for its turn."""
        now = self._catalog.by_python_name(call.function)
        if now is None or now.spec.digest != entry.spec.digest:
            return needs_description(entry, what_changed(entry.spec, now.spec if now is not None else None))
        if attempt.allowance is None or self._desk.still_allows(attempt.call, attempt.allowance):
            return None
        attempt.record.decision = "denied"
        reason = call_texts.taken_back(entry.qualified_name)
        self._journal.denied(call.id, reason)
        return refused(entry, reason)

    def _unwritten(self, call: Call, entry: CatalogEntry, attempt: Attempt) -> Failed | None:
        """Record that a call is sent, before it is; a call that cannot be recorded is refused."""
        pending = attempt.call
        try:
            with self._journal.together():
                if not attempt.allow():
                    return refused(entry, call_texts.not_written_down(entry.qualified_name))
                self._journal.sent(
                    call.id,
                    server=pending.server,
                    tool=pending.tool,
                    digest=pending.digest,
                    by=attempt.by,
                    grant_id=attempt.grant_id,
                )
        except BaseException:
            attempt.not_written()
            raise
        return None

    def _person(self, tool: str) -> Person | None:
        """Return who can be asked what the server wants to know during a call."""
        answerer = self._desk.answerer
        return Person(tool, answerer.timeout_seconds, self._fill) if answerer.shows_forms else None

    async def _fill(self, form: Form) -> FormReply:
        with self._stopwatch.paused():
            return await self._desk.answerer.fill(form)

    def _not_found(self, call: Call, record: CallRecord) -> Failed:
        """Say why a tool is missing. The guest knows listed tools only, so its server is down, or it has gone."""
        details = {"server": record.server, "tool": record.tool}
        upstream = self._upstreams.get(record.server)
        if upstream is not None and (problem := upstream.status.problem) is not None:
            return Failed("ToolUnavailableError", call_texts.unavailable(record.server, problem), details)
        self._unknown += 1
        near = self._catalog.suggest(call.function) if self._unknown <= MOST_NAMES else ()
        said = call_texts.not_found(call.function, near, is_withdrawn=self._catalog.has_withdrawn(call.function))
        return Failed("ToolNotFoundError", said, details)


def _received(completion: Completion) -> Any:
    """Return the data of a completion that reaches the script, for flow rules."""
    if isinstance(completion, Returned):
        return completion.value
    return [completion.message, completion.details]
