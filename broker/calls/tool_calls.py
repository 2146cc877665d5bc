"""The one path from a call in a script to its effect: `tools/call` at a server, or a question to a model.

Above: run_calls.py for scripts, direct_calls.py. Below: callees.py and extraction.py for what a call reaches,
run_desk.py. The steps, in this order: resolve the name, check that the tool is described, check the arguments, decide,
send once, convert the result. A call that fails a step goes no further. Every attempt leaves a record, a cancelled one
too. Nothing else sends a call to a callee.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, assert_never

from broker.authorization.decision import Allow, Ask, Deny
from broker.authorization.forms import Person
from broker.authorization.model_calls import TOOL, model_call
from broker.calls.attempts import Attempt, CallRecord
from broker.calls.callees import MissingTool, ServerTools
from broker.calls.extraction import CalledModel, no_model
from broker.calls.host_paths import HostPaths
from broker.calls.tool_results import completion_of
from broker.texts import call_texts
from broker.tracing import call_span, is_traced
from sandbox import Call, Completion, Failed, Returned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mcp.shared.dispatcher import ProgressFnT

    from broker.authorization.calls import PendingCall
    from broker.authorization.forms import Form, FormReply
    from broker.authorization.run_desk import RunDesk
    from broker.calls.callees import Callee
    from broker.calls.content_blocks import ContentBlocks
    from broker.calls.extraction import Extractor
    from broker.disclosure.disclosure import Disclosure
    from broker.redaction import Redactor
    from broker.tools.catalog import CatalogEntry
    from sandbox import Stopwatch


_NO_SPAN = nullcontext()


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
        convert: Callable[[dict[str, Any], CatalogEntry, HostPaths], Completion] | None = None,
        extractor: Extractor | None = None,
    ) -> None:
        """Take what decides about calls.

        Args:
            disclosure: The tools that are described.
            desk: Decides about each call.
            stopwatch: Stands still while a person is asked.
            redact: Takes secrets out of answers.
            on_call: Receives each call that has ended, with the numbers of calls ended and made, earlier ones included;
                what it raises ends the run.
            blocks: Keeps images and the like for the script to display.
            on_progress: Receives what a server reports of its progress.
            convert: Makes the answer from a server's result; that of a script if None. Must not raise.
            extractor: The model behind `extract`, if there is one.
        """
        self._records: dict[int, CallRecord] = {}
        convert = convert or partial(completion_of, blocks=blocks, redact=redact)
        self._tools = ServerTools(disclosure, desk.policy, desk.caller, convert, on_progress)
        self._extractor = extractor
        self._desk = desk
        self._stopwatch = stopwatch
        self._redact = redact
        self._journal = desk.journal
        self._on_call = on_call
        self._blocks = blocks
        self._is_traced = is_traced()
        self._open: set[int] = set()
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

    def restore(self, earlier: Mapping[int, CallRecord], unknown: Iterable[int]) -> None:
        """Put on record the calls that a run had made before it was resumed; those of `unknown` outcome are open."""
        self._records.update(earlier)
        self._open.update(unknown)

    def give_up(self, call: Call) -> None:
        """Count a call of unknown outcome as ended, because it is not sent again."""
        record = self._records.get(call.id)
        if record is not None:
            self._end(call, record)

    def note_known(self, call: Call, completion: Completion) -> None:
        """Count an answer that did not come from a call as data received from its server, for flow rules."""
        known = self._model(call) if call.function == TOOL else self._tools.received_from(call)
        self._desk.receive(known, _received(completion))

    async def answer(self, call: Call) -> Completion | None:
        """Answer one call of a tool or of `extract`; None if it has to wait for a person who is not there.

        Never raises for what a script or a server can cause.
        """
        self._compare(call)
        callee = self._callee(call)
        pending = callee.pending
        record = CallRecord(server=pending.server, tool=pending.tool)
        attempt = Attempt(pending, record, self._desk.audit)
        # Before anything is sent, so that a call that is cut off is on record.
        self._records[call.id] = record
        self._open.add(call.id)
        completion: Completion | None = None
        exists = not isinstance(callee, MissingTool)
        with call_span(record, exists=exists) if self._is_traced else _NO_SPAN:
            try:
                completion = self._cleaned(await self._answer(call, callee, attempt), call)
            except _NobodyThereError:
                record.status = "waiting"
            finally:
                attempt.end(completion, self._journal)
                if record.status != "waiting":
                    self._end(call, record)
        return completion

    def _end(self, call: Call, record: CallRecord) -> None:
        self._open.discard(call.id)
        if self._on_call is not None:
            made = len(self._records)
            self._on_call(record, made - len(self._open), made)

    def _compare(self, call: Call) -> None:
        last, self._last = self._last, call
        is_same = last is not None and (last.function, last.arguments) == (call.function, call.arguments)
        self._alike = self._alike + 1 if is_same else 1

    def _callee(self, call: Call) -> Callee | MissingTool:
        if call.function != TOOL:
            return self._tools.called(call)
        pending = self._model(call)
        if self._extractor is None:
            return MissingTool(pending, no_model())
        return CalledModel(pending, self._extractor)

    def _model(self, call: Call) -> PendingCall:
        return model_call(call.arguments, self._desk.policy, self._desk.caller)

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

    async def _answer(self, call: Call, callee: Callee | MissingTool, attempt: Attempt) -> Completion:
        if isinstance(callee, MissingTool):
            return callee.failed
        failed = callee.fault()
        if failed is not None:
            return failed
        decided = await self._decided(call, callee, attempt)
        return await self._send(call, callee, attempt, decided) if isinstance(decided, Allow) else decided

    async def _decided(self, call: Call, callee: Callee, attempt: Attempt) -> Allow | Failed:
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
                return decision
            case Deny(reason):
                self._journal.denied(call.id, reason)
                return callee.refused(reason)
        assert_never(decision)

    async def _send(self, call: Call, callee: Callee, attempt: Attempt, allowed: Allow) -> Completion:
        pending = attempt.call
        async with self._desk.turn(pending):
            # First, because a server that comes back may have another tool of that name.
            completion: Completion | None = await callee.reach()
            if completion is None:
                overtaken = self._overtaken(call, callee, attempt, allowed)
                failed = overtaken or self._unwritten(call, callee, attempt, allowed)
                if failed is not None:
                    return failed
                completion = await callee.send(self._person(pending.tool))
        if self._blocks is not None and (kept := self._blocks.take_new()):
            self._journal.kept(call.id, kept)
        self._desk.receive(pending, _received(completion))
        return completion

    def _overtaken(self, call: Call, callee: Callee, attempt: Attempt, allowed: Allow) -> Failed | None:
        """Refuse a call whose tool or permission has changed since it was allowed, while it waited for its turn."""
        failed = callee.overtaken()
        if failed is not None or self._desk.still_allows(attempt.call, allowed):
            return failed
        attempt.record.decision = "denied"
        reason = call_texts.taken_back(attempt.call.qualified_name)
        self._journal.denied(call.id, reason)
        return callee.refused(reason)

    def _unwritten(self, call: Call, callee: Callee, attempt: Attempt, allowed: Allow) -> Failed | None:
        """Record that a call is sent, before it is; a call that cannot be recorded is refused."""
        try:
            with self._journal.together():
                if not attempt.write_down():
                    return callee.refused(call_texts.not_written_down(attempt.call.qualified_name))
                self._journal.sent(call.id, attempt.call, allowed)
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


def _received(completion: Completion) -> Any:
    """Return the data of a completion that reaches the script, for flow rules."""
    if isinstance(completion, Returned):
        return completion.value
    return [completion.message, completion.details]
