"""One run of a script: prepared, checked, begun or resumed, carried out, and put in its envelope.

Above: sessions.py, and parking.py, which resumes. Below: preparation.py, the sandbox, run_calls.py for its calls,
envelope.py.
"""

from __future__ import annotations

import secrets
import time
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from broker.calls.content_blocks import ContentBlocks
from broker.calls.script_functions import ScriptFunctions
from broker.calls.tool_calls import ToolCalls
from broker.recordings.journal.beginning import recorded_tool
from broker.recordings.journal.recorded_run import ResumedRun
from broker.recordings.journal.resuming import UnknownCalls, give_back
from broker.runs.envelope import envelope_of, redacted_outcome
from broker.runs.hints import with_hint
from broker.runs.large_values import worked_on
from broker.runs.needed_servers import check_servers
from broker.runs.not_described import NotDescribed
from broker.runs.run_calls import RunCalls
from broker.runs.run_output import RunOutput
from broker.runs.script_check import not_started, warning
from broker.tracing import traced_run
from sandbox import Parked, Raised, Stopped, Stopwatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import ExitStack

    from broker.authorization.desk import ConsentDesk
    from broker.authorization.questions import GivenAnswers
    from broker.authorization.run_desk import RunDesk
    from broker.calls.extraction import Extractor
    from broker.recordings.journal.recorded_run import RecordedRun
    from broker.recordings.journal.recorder import Recorder
    from broker.recordings.journal.resuming import UnknownAnswerer
    from broker.recordings.parts import RecordedTool
    from broker.recordings.settings import UnknownOutcome
    from broker.redaction import Redactor
    from broker.runs.envelope import ExecutionResult
    from broker.runs.preparation import Preparation
    from broker.runs.script_check import CheckMode
    from broker.runs.watching import Watching
    from broker.tools.catalog import CatalogEntry
    from sandbox import Limits, Reference, Sandbox


@dataclass(frozen=True, kw_only=True)
class _Conditions:
    """What a run needs beyond its recording.

    Attributes:
        limits: Its limits; the sandbox's if None.
        warned: The mistakes that the check found, to be put first on its stderr.
        unknown: In a resumed run, decides about calls of unknown outcome.
        given: The answers to the question with which it was parked.
    """

    script: str
    filename: str
    manifest: Mapping[str, Any]
    limits: Limits | None
    warned: str = ""
    unknown: UnknownCalls | None = None
    given: GivenAnswers | None = None


@dataclass(frozen=True, kw_only=True)
class Execution:
    """Runs the scripts of one session."""

    preparation: Preparation
    desk: ConsentDesk
    redact: Redactor
    recorder: Recorder
    extractor: Extractor | None = None

    @traced_run
    async def run(
        self,
        script: str,
        watching: Watching,
        *,
        limits: Limits | None,
        filename: str,
        describe_references: bool,
        check_mode: CheckMode,
    ) -> ExecutionResult:
        """Run a script; whatever it does is in the result.

        Raises:
            StoreError: The run cannot be recorded, and was not started.
            RunInterruptedError: The store or the sandbox failed while it ran.
            SandboxError: The sandbox cannot be opened.
            RuntimeError: As of `Watching.enter_stop`; the run was not started.
        """
        sandbox = await self.preparation.sandbox.opened()
        began = time.monotonic()
        run_id = f"run_{secrets.token_hex(8)}"
        found = await self.preparation.read(script, filename, describe_references=describe_references, limits=limits)
        if isinstance(found, NotDescribed):
            return envelope_of(found.outcome, run_id, began, not_described=found)
        if isinstance(found, Raised | Stopped):
            return envelope_of(with_hint(found, script, self.preparation.catalog, has_called=False), run_id, began)
        manifest = await self.preparation.manifest(script, found)
        mistakes = await self.preparation.mistakes(script, found, manifest) if check_mode != "off" else ()
        if check_mode == "error" and mistakes:
            return envelope_of(not_started(mistakes), run_id, began)
        warned = warning(mistakes) if mistakes else ""
        if warned and watching.on_output is not None:
            watching.on_output("stderr", warned)
        with (
            watching.enter_stop() as stopping,
            self.recorder.begin(
                run_id,
                script,
                filename=filename,
                manifest=manifest,
                limits=limits or sandbox.limits,
                image=sandbox.image_digest,
                tools=self._recorded_tools(found),
                desk=self.desk,
            ) as recorded,
        ):
            conditions = _Conditions(script=script, filename=filename, manifest=manifest, limits=limits, warned=warned)
            return await self._carry_out(sandbox, recorded, conditions, watching, stopping=stopping, began=began)

    @traced_run
    async def resume(
        self,
        run_id: str,
        watching: Watching,
        *,
        policy: UnknownOutcome = "fail",
        ask: UnknownAnswerer | None = None,
        given: GivenAnswers | None = None,
        needs_servers: bool = True,
    ) -> ExecutionResult:
        """Continue a run that was interrupted or is parked; `given` answers the question that it waits for.

        `policy` and `ask` decide about calls of unknown outcome. With `needs_servers`, the run is left as it is while a
        server that its script may call is not there or down.

        Raises:
            RecordingError: It cannot go on here; the text says why.
            UnavailableError: A server that it needs cannot be used; the text says which, and what to do.
            StoreError: The run cannot be recorded, and stays as it is.
            RunInterruptedError: The store or the sandbox failed while it ran.
            SandboxError: The sandbox cannot be opened.
            RuntimeError: As of `Watching.enter_stop`; the run stays as it is.
        """
        sandbox = await self.preparation.sandbox.opened()
        began = time.monotonic()
        found = self.recorder.resumable(run_id, sandbox.image_digest)
        await self.preparation.disclosure.need(found.begun.servers)
        if needs_servers:
            check_servers(run_id, found.begun.servers, self.preparation.disclosure.upstreams)
        entries = [self.preparation.catalog.by_python_name(tool.function) for tool in found.begun.tools]
        await self.preparation.disclosure.describe([entry for entry in entries if entry is not None])
        with (
            watching.enter_stop() as stopping,
            self.recorder.resume(found, image=sandbox.image_digest, desk=self.desk) as recorded,
        ):
            conditions = _Conditions(
                script=recorded.before.script,
                filename=recorded.before.begun.filename,
                manifest=recorded.before.manifest,
                limits=recorded.before.limits,
                unknown=UnknownCalls(recorded.before, policy, ask, self.desk.parks),
                given=given,
            )
            return await self._carry_out(sandbox, recorded, conditions, watching, stopping=stopping, began=began)

    async def _carry_out(
        self,
        sandbox: Sandbox,
        recorded: RecordedRun,
        conditions: _Conditions,
        watching: Watching,
        *,
        stopping: ExitStack,
        began: float,
    ) -> ExecutionResult:
        """Run a script that may start, from its beginning or from where its past ends.

        What stops it is in `stopping`, and left here: a run that was stopped has its recording closed like any other.
        """
        stopwatch = Stopwatch(recorded.past.elapsed_seconds)
        desk = self.desk.for_run(recorded.run_id, conditions.script, journal=recorded.journal)
        printed = RunOutput(watching.on_output, self.redact)
        if isinstance(recorded, ResumedRun):
            printed.restore(recorded.before)
        with closing(desk), stopping.pop_all():
            calls = self._calls(recorded, desk, stopwatch, watching)
            if conditions.given is not None:
                desk.take(conditions.given.question, conditions.given.answers, conditions.given.by)
            unknown = conditions.unknown
            ended = await sandbox.run(
                conditions.script,
                answer=calls.answer if unknown is None else unknown.around(calls.answer, calls.tools.give_up),
                manifest=conditions.manifest,
                filename=conditions.filename,
                limits=conditions.limits,
                on_output=printed.add,
                stopwatch=stopwatch,
                seed=recorded.seed,
                wall_ns=recorded.wall_ns,
                journal=recorded.journal,
                past=recorded.past,
            )
        printed.end()
        records = calls.tools.records
        if watching.stop is not None and watching.stop.cancelled_caught:
            ended = printed.result(stopwatch.elapsed, len(records))
        elif not isinstance(ended.outcome, Parked):
            self.desk.unfinished.discard(recorded.run_id)
        outcome = with_hint(ended.outcome, conditions.script, self.preparation.catalog, has_called=bool(records))
        return envelope_of(
            await worked_on(getattr(outcome, "value", None), partial(redacted_outcome, outcome, self.redact)),
            recorded.run_id,
            began,
            calls=records,
            stdout=self.redact(ended.stdout),
            stderr=conditions.warned + self.redact(ended.stderr),
            usage=ended.usage,
            blocks=calls.functions.blocks,
            question=desk.question if isinstance(ended.outcome, Parked) else None,
            alike_calls=calls.tools.alike,
        )

    def _calls(self, recorded: RecordedRun, desk: RunDesk, stopwatch: Stopwatch, watching: Watching) -> RunCalls:
        """Return what answers the calls of a run; for a resumed one, with its earlier calls."""
        disclosure, blocks = self.preparation.disclosure, ContentBlocks(self.redact)
        tools = ToolCalls(
            disclosure=disclosure,
            desk=desk,
            stopwatch=stopwatch,
            redact=self.redact,
            on_call=watching.on_call,
            blocks=blocks,
            extractor=watching.extractor or self.extractor,
        )
        calls = RunCalls(tools=tools, functions=ScriptFunctions(blocks), known=watching.known_answers)
        if isinstance(recorded, ResumedRun):
            give_back(recorded.before, desk, recorded.journal)
            calls.restore(recorded.before, desk, disclosure.upstreams)
        return calls

    def _recorded_tools(self, found: Sequence[Reference]) -> Iterator[RecordedTool]:
        """Yield the described tools that a script names, as they are recorded."""
        for entry in self.preparation.named(found):
            if self.preparation.disclosure.is_described(entry):
                yield self._recorded_tool(entry)

    def _recorded_tool(self, entry: CatalogEntry) -> RecordedTool:
        settings = self.preparation.disclosure.upstreams[entry.spec.server].settings
        labels = self.desk.policy.labels_of(settings.labels)
        return recorded_tool(entry, is_trusted=settings.trust_annotations, labels=labels)
