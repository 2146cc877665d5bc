"""One script to its result: what it names, what of that is described, the check, the run, the envelope.

Above: sessions.py. Below: the sandbox, and tool_calls.py for its calls. The host never parses a script; what
it names is found inside a guest.
"""

from __future__ import annotations

import secrets
import time
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import anyio
from pydantic import BaseModel, ConfigDict, Field

from broker.attempts import CallRecord
from broker.content_blocks import ContentBlocks
from broker.errors import RecordingError
from broker.logging import logger
from broker.manifest import manifest_of
from broker.recordings.resuming import UnknownCalls, check_resumable, give_back
from broker.recordings.run_journal import RunJournal
from broker.script_check import CheckedScript, diagnostics_of, not_started, stops, unreadable, warning
from broker.script_functions import ScriptFunctions
from broker.tool_calls import ToolCalls, fetch_request
from codegen import CheckerError
from sandbox import Completed, Parked, Raised, RunResult, Stopped, Stopwatch, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker.authorization.desk import ConsentDesk
    from broker.catalog import Catalog, CatalogEntry
    from broker.disclosure import Disclosure
    from broker.recordings.recorder import RecordedRun, Recorder
    from broker.recordings.resuming import UnknownAnswerer, UnknownOutcome
    from broker.redaction import Redactor
    from broker.script_check import CheckMode
    from broker.script_functions import Extractor
    from broker.upstream import Upstream
    from codegen import Diagnostic
    from sandbox import Call, Completion, Limits, Outcome, Reference, Sandbox

__all__ = ["CallRecord", "Execution", "ExecutionError", "ExecutionResult", "StoppedBy"]

_WHOLE_SERVER = {None, "*"}


class ExecutionError(BaseModel):
    """What ended a script that raised; the texts are the guest's, or ours where the script was not started."""

    model_config = ConfigDict(extra="forbid")

    type: str
    message: str
    traceback: str


class StoppedBy(BaseModel):
    """The limit that ended a script, and what was allowed, in the limit's unit.

    `shutdown` is the host's own end, with the seconds that the script had run.
    """

    model_config = ConfigDict(extra="forbid")

    limit: str
    amount: float
    line: int | None = None


class WaitsFor(BaseModel):
    """What a parked run waits for: the question's id, its text for a person, and how many calls are in it."""

    model_config = ConfigDict(extra="forbid")

    question: str
    text: str
    calls: int


class ExecutionResult(BaseModel):
    """The envelope: everything about one run, as `codemode run --json` prints it.

    `parked` means that the run waits for an answer and can go on; without an answerer a call is refused
    instead, and a script that does not catch that has `raised` a `ToolRefusedError`.

    Attributes:
        displayed: Content blocks of MCP that the script displayed; not in the JSON.
        not_displayed: How many more it displayed than there is room for; not in the JSON.
        waits_for: What a run waits for that `Session.resume` goes on with; not in the JSON.
    """

    model_config = ConfigDict(extra="forbid")

    outcome: Literal["completed", "raised", "stopped", "parked"]
    value: Any = None
    stdout: str = ""
    stderr: str = ""
    error: ExecutionError | None = None
    stopped: StoppedBy | None = None
    calls: list[CallRecord]
    usage: dict[str, float]
    run_id: str
    duration_ms: float
    displayed: list[dict[str, Any]] = Field(default=[], exclude=True, repr=False)
    not_displayed: int = Field(default=0, exclude=True)
    waits_for: WaitsFor | None = Field(default=None, exclude=True)

    @property
    def is_refused(self) -> bool:
        """Whether the script ended because a call of it was refused, also inside an exception group."""
        if self.error is None or not any(call.status == "refused" for call in self.calls):
            return False
        grouped = self.error.type.endswith("ExceptionGroup") and "ToolRefusedError" in self.error.traceback
        return self.error.type == "ToolRefusedError" or grouped


@dataclass(frozen=True)
class Watching:
    """Who is told of a run as it goes on, and may stop it or answer its calls; as of `Session.execute_code`."""

    on_output: Callable[[str, str], None] | None = None
    on_call: Callable[[CallRecord, int, int], None] | None = None
    stop: anyio.CancelScope | None = None
    known_answers: Callable[[Call], Completion | None] | None = None
    extractor: Extractor | None = None


@dataclass(frozen=True, kw_only=True)
class Execution:
    """What a run of one session works with."""

    sandbox: Sandbox
    catalog: Catalog
    upstreams: Mapping[str, Upstream]
    desk: ConsentDesk
    disclosure: Disclosure
    redact: Redactor
    recorder: Recorder
    extractor: Extractor | None = None

    async def run(
        self,
        script: str,
        *,
        limits: Limits | None,
        filename: str,
        watching: Watching,
        describe_references: bool,
        check_mode: CheckMode,
    ) -> ExecutionResult:
        """Run a script; whatever it does is in the result."""
        began = time.monotonic()
        run_id = f"run_{secrets.token_hex(8)}"
        found = await self._read(script, filename, describe_references=describe_references)
        if isinstance(found, Raised | Stopped):
            return _envelope(found, run_id, began)
        manifest = await self._manifest(script, found)
        mistakes = await self._mistakes(script, found, manifest) if check_mode != "off" else ()
        if check_mode == "error" and mistakes:
            return _envelope(not_started(mistakes), run_id, began)
        warned = warning(mistakes) if mistakes else ""
        if warned and watching.on_output is not None:
            watching.on_output("stderr", warned)
        recorded = self.recorder.begin(
            run_id,
            script,
            filename=filename,
            manifest=manifest,
            limits=limits or self.sandbox.limits,
            image=self.sandbox.image_digest,
            described=[self._known(entry) for entry in self._named(found) if self.disclosure.is_described(entry)],
            desk=self.desk,
        )
        with recorded:
            return await self._carry_out(
                script,
                recorded,
                manifest=manifest,
                filename=filename,
                limits=limits,
                watching=watching,
                warned=warned,
            )

    async def resume(
        self, name: str, *, watching: Watching, policy: UnknownOutcome, ask: UnknownAnswerer | None
    ) -> ExecutionResult:
        """Go on with a run that was interrupted or is parked.

        Raises:
            RecordingError: It cannot go on here; the text says why.
        """
        _, found = self.recorder.find(name)
        check_resumable(found, self.sandbox.image_digest)
        await self._need({tool.server for tool in found.begun.tools})
        entries = [self.catalog.by_python_name(tool.function) for tool in found.begun.tools]
        await self.disclosure.describe([entry for entry in entries if entry is not None])
        with self.recorder.resume(name, image=self.sandbox.image_digest, desk=self.desk) as recorded:
            if recorded.before is None:
                raise RecordingError(f"{name} has no past")
            return await self._carry_out(
                recorded.before.script,
                recorded,
                manifest=recorded.before.load(recorded.before.begun.manifest),
                filename=recorded.before.begun.filename,
                limits=recorded.before.limits,
                watching=watching,
                unknown=UnknownCalls(recorded.before, policy, ask, self.desk.parks),
            )

    async def _carry_out(
        self,
        script: str,
        recorded: RecordedRun,
        *,
        manifest: Mapping[str, Any],
        filename: str,
        limits: Limits | None,
        watching: Watching,
        warned: str = "",
        unknown: UnknownCalls | None = None,
    ) -> ExecutionResult:
        """Run a script that may start, or go on with one from where its past ends."""
        began = time.monotonic()
        stopwatch, blocks = Stopwatch(recorded.past.elapsed_seconds), ContentBlocks()
        desk = self.desk.for_run(recorded.run_id, script, journal=recorded.journal)
        calls = ToolCalls(
            catalog=self.catalog,
            upstreams=self.upstreams,
            desk=desk,
            disclosure=self.disclosure,
            stopwatch=stopwatch,
            redact=self.redact,
            on_call=watching.on_call,
            blocks=blocks,
            journal=recorded.journal,
        )
        functions = ScriptFunctions(blocks, watching.extractor or self.extractor)
        if recorded.before is not None and isinstance(recorded.journal, RunJournal):
            give_back(recorded.before, desk, recorded.journal)
            calls.restore(recorded.before)
            functions.restore(recorded.before)

        async def answer(call: Call) -> Completion | None:
            known = None if watching.known_answers is None else watching.known_answers(call)
            if known is not None:
                return known
            # A tool is called by namespace and name; what has no namespace is asked of us.
            return await (calls.answer if "." in call.function else functions.answer)(call)

        heard = _Heard(watching.on_output, self.redact)
        with closing(desk), watching.stop or anyio.CancelScope() as scope:
            ended = await self.sandbox.run(
                script,
                answer=answer if unknown is None else unknown.around(answer),
                manifest=manifest,
                filename=filename,
                limits=limits,
                on_output=heard.add,
                stopwatch=stopwatch,
                seed=recorded.seed,
                wall_ns=recorded.wall_ns,
                journal=recorded.journal,
                past=recorded.past,
            )
        heard.end()
        if scope.cancelled_caught:
            ended = heard.result(stopwatch.elapsed, len(calls.records))
        return _envelope(
            _redacted(ended.outcome, self.redact),
            recorded.run_id,
            began,
            calls=calls.records,
            stdout=self.redact(ended.stdout),
            stderr=warned + self.redact(ended.stderr),
            usage=ended.usage,
            blocks=blocks,
        )

    def _known(self, entry: CatalogEntry) -> tuple[CatalogEntry, bool, frozenset[str]]:
        """Return a tool with what the operator says of its server."""
        settings = self.upstreams[entry.spec.server].settings
        return entry, settings.trust_annotations, self.desk.policy.labels_of(settings.labels)

    async def check(self, script: str, *, describe_references: bool) -> CheckedScript:
        """Check a script without running it.

        Raises:
            CheckerError: The type checker cannot be run.
        """
        found = await self.sandbox.references(script)
        if isinstance(found, Raised | Stopped):
            return CheckedScript((unreadable(found, script),))
        await self._settle(found)
        if describe_references:
            await self.disclosure.describe(self._named(found))
        manifest = await self._manifest(script, found)
        diagnostics = await self._diagnostics(script, found, manifest)
        servers = {self.catalog.server_of(reference.namespace) or "" for reference in found}
        down = [name for name in sorted(servers & self.upstreams.keys()) if self.upstreams[name].status.problem]
        return CheckedScript(diagnostics, tuple(down))

    async def _read(
        self, script: str, filename: str, *, describe_references: bool
    ) -> Sequence[Reference] | Raised | Stopped:
        """Return what a script names when all of that is described, else why it cannot start."""
        # What is not there in the text cannot be named; a name that is made up at run time is found by no reading.
        if "tools" not in script:
            return ()
        found = await self.sandbox.references(script)
        if isinstance(found, Raised | Stopped):
            return _with_filename(found, filename)
        await self._settle(found)
        undescribed = [entry for entry in self._named(found) if not self.disclosure.is_described(entry)]
        if undescribed and not describe_references:
            changed = [text for entry in undescribed if (text := self._change_of(entry))]
            return _description_required(undescribed, found, changed)
        await self.disclosure.describe(undescribed)
        return found

    async def _manifest(self, script: str, found: Sequence[Reference]) -> dict[str, Any]:
        # In a thread: a stub that was never made before takes milliseconds.
        return await anyio.to_thread.run_sync(manifest_of, script, found, self.catalog, self.upstreams, self.disclosure)

    async def _mistakes(
        self, script: str, found: Sequence[Reference], manifest: Mapping[str, Any]
    ) -> Sequence[Diagnostic]:
        """Return what is wrong with a script, for a run: a check that cannot be made does not keep it from running."""
        if not found:
            return ()
        try:
            diagnostics = await self._diagnostics(script, found, manifest)
        except CheckerError as error:
            logger().warning("the script was not checked", reason=str(error))
            return ()
        return diagnostics if stops(diagnostics) else ()

    async def _diagnostics(
        self, script: str, found: Sequence[Reference], manifest: Mapping[str, Any]
    ) -> tuple[Diagnostic, ...]:
        """Check a script against the described tools of the servers that it names; others exist by name only."""
        servers = {self.catalog.server_of(reference.namespace) or "" for reference in found}
        entries = [entry for server in sorted(servers) for entry in self.catalog.of_server(server)]
        described = [entry for entry in entries if self.disclosure.is_described(entry)]
        listed = {namespace: tuple(entry["functions"]) for namespace, entry in manifest.items()}
        return await diagnostics_of(script, described, listed)

    async def _settle(self, found: Sequence[Reference]) -> None:
        """Wait for the servers that the script names, and for no other."""
        await self._need({self.catalog.server_of(reference.namespace) or "" for reference in found})

    async def _need(self, servers: set[str]) -> None:
        async with anyio.create_task_group() as tasks:
            for server in servers & self.upstreams.keys():
                tasks.start_soon(self.upstreams[server].needed)

    def _change_of(self, entry: CatalogEntry) -> str:
        text = self.disclosure.changed(entry)
        return f"{entry.python_name} {text}" if text else ""

    def _named(self, found: Sequence[Reference]) -> list[CatalogEntry]:
        """The tools a script names; all of a server when it names the server and none of its tools."""
        precise = {reference.namespace for reference in found if reference.function not in _WHOLE_SERVER}
        entries: dict[str, CatalogEntry] = {}
        for reference in found:
            if reference.function not in _WHOLE_SERVER:
                entry = self.catalog.by_python_name(f"{reference.namespace}.{reference.function}")
                found_entries = [entry] if entry is not None else []
            elif reference.namespace in precise and reference.function is None:
                found_entries = []
            else:
                server = self.catalog.server_of(reference.namespace)
                found_entries = list(self.catalog.of_server(server)) if server is not None else []
            entries |= {one.python_name: one for one in found_entries}
        return list(entries.values())


class _Heard:
    """What a run has printed so far, for whoever listens and for a run that is stopped from outside."""

    def __init__(self, on_output: Callable[[str, str], None] | None, redact: Redactor) -> None:
        self._on_output = on_output
        self._redacted = {"stdout": redact.stream(), "stderr": redact.stream()}
        self._pieces: dict[str, list[str]] = {"stdout": [], "stderr": []}

    def add(self, stream: str, text: str) -> None:
        self._pieces[stream].append(text)
        if self._on_output is not None and (clean := self._redacted[stream].add(text)):
            self._on_output(stream, clean)

    def end(self) -> None:
        """Hand on what was held back."""
        for stream, redacted in self._redacted.items():
            if self._on_output is not None and (rest := redacted.end()):
                self._on_output(stream, rest)

    def result(self, seconds: float, calls: int) -> RunResult:
        """Return how a run ended that was stopped from outside."""
        stdout, stderr = ("".join(self._pieces[stream]) for stream in ("stdout", "stderr"))
        usage = Usage(seconds, 0.0, len(stdout.encode()) + len(stderr.encode()), calls, 0)
        return RunResult(Stopped("shutdown", round(seconds, 3)), stdout, stderr, usage)


def _redacted(outcome: Outcome, redact: Redactor) -> Outcome:
    """Take the secrets out of what a script returned or raised: it may have put together what came in parts."""
    match outcome:
        case Completed(value):
            return Completed(redact.value(value))
        case Raised(kind, message, traceback):
            return Raised(kind, redact(message), redact(traceback))
    return outcome


def _with_filename(outcome: Raised | Stopped, filename: str) -> Raised | Stopped:
    """References are parsed under the default name; tracebacks show the script's own."""
    if isinstance(outcome, Stopped):
        return outcome
    renamed = outcome.traceback.replace('File "script.py"', f'File "{filename}"')
    return Raised(outcome.type, outcome.message, renamed)


def _description_required(entries: list[CatalogEntry], found: Sequence[Reference], changed: Sequence[str]) -> Raised:
    names = [entry.qualified_name for entry in entries]
    lines = {f"{reference.namespace}.{reference.function}": reference.line for reference in reversed(found)}
    where = ", ".join(
        f"{entry.python_name} (line {lines[entry.python_name]})" if entry.python_name in lines else entry.python_name
        for entry in entries
    )
    since = f" Since they were described: {'; '.join(changed)}." if changed else ""
    message = (
        f"The script was not started: these tools have not been described yet: {where}.{since} "
        f"Fetch them with {fetch_request(names)} and run the script again."
    )
    return Raised("ToolDescriptionRequired", message, f"ToolDescriptionRequired: {message}\n")


def _envelope(
    outcome: Outcome,
    run_id: str,
    began: float,
    *,
    calls: Sequence[CallRecord] = (),
    stdout: str = "",
    stderr: str = "",
    usage: Usage | None = None,
    blocks: ContentBlocks | None = None,
) -> ExecutionResult:
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
            fields = {"outcome": "parked"}
    return ExecutionResult(
        **fields,
        stdout=stdout,
        stderr=stderr,
        calls=list(calls),
        usage=asdict(usage or Usage(0.0, 0.0, 0, 0, 0)),
        run_id=run_id,
        displayed=blocks.displayed if blocks is not None else [],
        not_displayed=blocks.left_out if blocks is not None else 0,
        duration_ms=round((time.monotonic() - began) * 1_000, 3),
    )
