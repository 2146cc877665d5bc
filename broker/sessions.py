"""One client's session: which tools were described to it, what it may call, and its runs.

Above: `Broker.session`. Below: disclosure.py and execution.py.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from broker.api_arguments import (
    check_arguments,
    check_asked,
    check_kind,
    check_stop,
    check_texts,
    check_told,
    names_of,
)
from broker.authorization.question_box import QuestionBox
from broker.calls.direct_calls import DirectCalls, DirectResult
from broker.disclosure.disclosure import Disclosure, not_fetched
from broker.errors import SearchError
from broker.recordings.settings import UNKNOWN_OUTCOMES
from broker.runs.execution import Execution
from broker.runs.parking import Parking
from broker.runs.preparation import Preparation
from broker.runs.script_check import CHECK_MODES
from broker.runs.watching import Watching
from broker.search import SearchPage, SearchRequest
from broker.surface import Surface
from broker.texts import description_texts
from broker.tiers import HeldStubs
from broker.tools.catalog import CatalogEntry
from sandbox.limits import check_limits
from sandbox.perform import check_script

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from anyio.abc import TaskGroup
    from mcp.shared.dispatcher import ProgressFnT

    from broker.authorization.desk import ConsentDesk
    from broker.authorization.grants import Grant
    from broker.authorization.outlook import Outlook
    from broker.calls.attempts import CallRecord
    from broker.calls.extraction import Extractor
    from broker.disclosure.tool_details import ToolDetails
    from broker.recordings.journal.recorder import Recorder
    from broker.recordings.journal.resuming import UnknownAnswerer
    from broker.recordings.settings import UnknownOutcome
    from broker.redaction import Redactor
    from broker.runs.envelope import ExecutionResult
    from broker.runs.script_check import CheckedScript, CheckMode
    from broker.runs.shared_sandbox import SharedSandbox
    from broker.surface import Reply
    from broker.tiers import TierPage
    from broker.tools.tool_shelf import ToolShelf
    from broker.upstreams.upstream import Upstream
    from codegen import TypeChecker
    from sandbox import Call, Completion, Limits


class Session:
    """The descriptions, grants and runs of one client. Made by `Broker.session`; needs no closing.

    Attributes:
        limits: Bounds of runs that are given none.
        surface: The three tools over this session, as `dispatch` uses them.
        tiers: The tools in four levels of detail.
    """

    def __init__(
        self,
        *,
        shelf: ToolShelf,
        upstreams: Mapping[str, Upstream],
        sandbox: SharedSandbox,
        checker: TypeChecker,
        desk: ConsentDesk,
        tasks: Callable[[], TaskGroup],
        redact: Redactor,
        extractor: Extractor | None,
        recorder: Recorder,
    ) -> None:
        """Start with nothing described; `desk` decides what may be called, `extractor` answers `extract` in scripts."""
        self._check_open = tasks
        self._catalog = shelf.catalog
        self._fetch_rates = shelf.fetch_rates
        self.limits = sandbox.limits
        self._desk = desk
        self._finder = shelf.finder
        self._recorder = recorder
        self.tiers = shelf.tiers
        self._disclosure = Disclosure(
            shelf.catalog,
            upstreams,
            on_described=desk.see,
            fetches_per_minute=shelf.fetches_per_minute,
            from_the_start=shelf.from_the_start,
            redact=redact,
        )
        self._direct_calls = DirectCalls(disclosure=self._disclosure, desk=desk, redact=redact)
        self._preparation = Preparation(sandbox=sandbox, disclosure=self._disclosure, checker=checker)
        self._execution = Execution(
            preparation=self._preparation, desk=desk, redact=redact, recorder=recorder, extractor=extractor
        )
        box = desk.answerer
        self._parking = Parking(box, tasks, self._execution) if isinstance(box, QuestionBox) else None
        self.surface = Surface(session=self)

    @property
    def grants(self) -> dict[str, Grant]:
        """What may be called now, including what people have allowed, by the ids that `revoke` takes."""
        return {held.id: held.grant for held in self._desk.book.held}

    @property
    def open_runs(self) -> set[str]:
        """The recorded runs that began or went on here and were interrupted or are parked; `resume` continues them."""
        return self._desk.interrupted

    def is_described(self, entry: CatalogEntry) -> bool:
        """Tell whether the current definition of a tool was described to this session.

        Raises:
            TypeError: It is no entry of the catalog.
        """
        check_kind(entry, CatalogEntry, "a tool is an entry of the catalog, as broker.catalog.lookup('git.git_log')")
        return self._disclosure.is_described(entry)

    @property
    def describes_all(self) -> bool:
        """Whether all tools are described from the start now: the config says `auto`, and they fit."""
        return self._disclosure.describes_all

    def count_fetches_of(self, caller: str) -> None:
        """Count fetches of descriptions from now on with those of every session of one caller of the broker's servers.

        A server does so: a caller that begins another session may fetch no more by that.

        Raises:
            TypeError: The name is no text.
        """
        check_texts(caller=caller)
        self._disclosure.count_fetches_with(partial(self._fetch_rates.take, caller))

    @property
    def undescribed(self) -> list[str]:
        """What has to be fetched before a call: servers, where no tool of theirs is described, or else tools."""
        return self._disclosure.undescribed()

    @property
    def lapsed(self) -> dict[str, str]:
        """What changed in each tool that has to be fetched again, because it changed since it was described."""
        return self._disclosure.lapsed

    async def get_tool_details(
        self,
        names: Sequence[str] | str,
        *,
        with_definitions: bool = False,
        exactly: bool = False,
        within_a_page: bool = False,
    ) -> ToolDetails:
        """Describe tools by their qualified names or their names in scripts; from then on they can be called.

        The answer also says which names no tool has.

        Args:
            names: The names of tools, or one name.
            with_definitions: Return their JSON definitions as well.
            exactly: Accept exact names only: no other program's spelling, as `mcp__git__git_log`, and no server name
                for all its tools.
            within_a_page: Describe only as many of the first as fit into 12,000 tokens as stubs, or as definitions if
                those are wanted, and one at least; the others are named in `left`.

        Raises:
            TypeError: A name is no text.
            RuntimeError: The broker is not open, or is open on another event loop.
        """
        self._check_open()
        details = await self._disclosure.deliver(
            names_of(names),
            with_definitions=with_definitions,
            exactly=exactly,
            first=partial(self.tiers.first, as_definitions=with_definitions) if within_a_page else None,
        )
        return self._with_outlooks(details)

    def _with_outlooks(self, details: ToolDetails) -> ToolDetails:
        outlooks = {name: said for name in details.described if (said := self._outlook(name)) is not None}
        return replace(details, outlooks=outlooks)

    def _outlook(self, name: str) -> Outlook | None:
        entry = self._catalog.find(name)
        if entry is None:
            return None
        return self._desk.outlook(entry.spec, self._disclosure.upstreams[entry.spec.server].settings)

    async def read_in_full(self, names: Sequence[str] | str, cursor: str | None = None) -> TierPage:
        """Return the full definitions of tools, as many as fit on a page, and describe those tools.

        A page is one fetch. A tool that its server does not describe now, or whose definition is larger than a page, is
        an item without `inputSchema` whose `note` says so, and is not described.

        Raises:
            UnknownToolError: No tool has one of these names.
            SearchError: The cursor cannot be used, or the session fetches too often; the text says when it may again.
            TypeError: A name or the cursor is no text.
            RuntimeError: As of `get_tool_details`.
        """
        self._check_open()
        names = names_of(names)
        if cursor is not None:
            check_texts(cursor=cursor)
        wait = self._disclosure.take_fetch()
        if wait > 0:
            raise SearchError(description_texts.too_many_fetches(wait))
        await self._disclosure.settle(names)
        entries = await self._disclosure.completed([self._catalog.lookup(name) for name in names])
        page = self.tiers.full(entries, cursor)
        whole = {item["name"] for item in page.items if "inputSchema" in item}
        await self._disclosure.describe(entry for entry in entries if entry.qualified_name in whole)
        return page

    async def describe_a_page(self, names: Sequence[str] | str) -> tuple[HeldStubs, ToolDetails]:
        """Describe the first of some tools, as many as fit on a page as stubs; a page is one fetch.

        Returns which fit, and their descriptions. If the session fetches too often, no server is asked, none fit, and
        each name is among the `unavailable`.

        Raises:
            UnknownToolError: No tool has one of these names.
            TypeError: A name is no text.
            RuntimeError: As of `get_tool_details`.
        """
        self._check_open()
        asked = [self._catalog.lookup(name) for name in names_of(names)]
        if (wait := self._disclosure.take_fetch()) > 0:
            return HeldStubs((), ()), not_fetched((entry.qualified_name for entry in asked), wait)
        held = await anyio.to_thread.run_sync(self.tiers.stubs, await self._disclosure.completed(asked))
        return held, self._with_outlooks(await self._disclosure.deliver(held.names, is_counted=True))

    async def search(self, request: SearchRequest | str) -> SearchPage:
        """Find tools of all servers, or of those that the request names; connects lazy servers that may have some.

        A text is a `broker.SearchRequest(query=text)`. A search describes nothing: for a page at detail `full`,
        pass its `to_describe` to `get_tool_details`.

        Raises:
            SearchError: The search cannot be done as asked; the text says what to change.
            TypeError: `request` is something else.
            RuntimeError: As of `get_tool_details`.
        """
        self._check_open()
        if isinstance(request, str):
            request = SearchRequest(query=request)
        elif not isinstance(request, SearchRequest):
            raise TypeError(f"a search is words, or a broker.SearchRequest, not a {type(request).__name__}")
        return await self._finder.search(request)

    def found(self, page: SearchPage) -> list[CatalogEntry]:
        """Return the tools of the catalog that a search found, for the pages of `tiers`.

        Raises:
            TypeError: It is no page of a search.
        """
        check_kind(page, SearchPage, "a page is what `await session.search(...)` returns")
        return [self._catalog.lookup(spec.qualified_name) for spec in page.tools]

    async def call_directly(
        self, name: str, arguments: dict[str, Any], *, on_progress: ProgressFnT | None = None
    ) -> DirectResult:
        """Call one tool without a script, by its qualified name or its name in scripts.

        The same checks apply as in a script: the tool must be described, the arguments must fit, and the call must be
        allowed. `on_progress` receives what the server reports of its progress.

        Raises:
            UnknownToolError: There is no such tool; nothing was sent.
            UnavailableError: Its server cannot be used, and no tool of it is known; nothing was sent.
            ValueError: The arguments cannot be written as JSON; nothing was sent.
            TypeError: `name` is no text, `arguments` no dict, or `on_progress` no function.
            RuntimeError: As of `get_tool_details`.
        """
        self._check_open()
        check_texts(name=name)
        check_arguments(arguments)
        check_asked(on_progress=on_progress)
        return await self._direct_calls.call(name, arguments, on_progress)

    async def execute_code(  # noqa: PLR0913  # a run's conditions; all but the script have defaults
        self,
        script: str,
        *,
        limits: Limits | None = None,
        filename: str = "script.py",
        on_output: Callable[[str, str], None] | None = None,
        on_call: Callable[[CallRecord, int, int], None] | None = None,
        describe_references: bool = False,
        check: CheckMode = "error",
        stop: anyio.CancelScope | None = None,
        park: bool = False,
        extractor: Extractor | None = None,
        known_answers: Callable[[Call], Completion | None] | None = None,
    ) -> ExecutionResult:
        """Run a script; whatever happens in it is in the result.

        A script that names tools is first checked against their stubs, which takes some milliseconds.

        Args:
            script: Python source; tools are in the module `tools`.
            limits: Limits of this run.
            filename: How tracebacks call the script.
            on_output: Receives ("stdout" or "stderr", text) while the script prints, on the event loop's thread: be
                quick. What it raises ends the run, and is raised here.
            on_call: Receives each call when it has ended, with the numbers of calls ended and made so far. One that
                waits in a parked run has not ended. The rules for `on_output` apply.
            describe_references: Describe the tools that the script names instead of refusing to start it.
            check: With "error" a script with mistakes is not started, and the result's error is a `ScriptCheckError`
                that lists them; with "warn" they come first on its stderr; with "off" nothing is checked.
            stop: Cancelling it stops the script; the result then says so, with what was printed and called. A new scope
                for each run, which the run enters: do not enter it. It stops no recorded run that has been parked.
            park: Return as soon as there is a question, with outcome `parked`; `wait_for` has what follows. The
                session's answerer must be a `QuestionBox`. To withdraw a recorded run then, remove its recording: an
                answer sends nothing any more. One that is not recorded is stopped by `stop`.
            extractor: The model that this run asks instead of the session's.
            known_answers: Asked first about every call. A call that it answers is neither authorized nor sent, and the
                answer counts as received for flow rules. If it returns None, the call goes the usual way.

        Raises:
            ValueError: The script is too long, `check` is not one of the modes, or `park` is set and the session has no
                `QuestionBox`.
            TypeError: The script or `filename` is no text, `limits` is not a `Limits`, `on_output`, `on_call` or
                `known_answers` is no plain function, `stop` no cancel scope, or `extractor` no function.
            StoreError: The run cannot be recorded, and was not started.
            RunInterruptedError: The store or the sandbox failed during the run; says what was executed.
            SandboxError: The sandbox cannot be opened, or fails where nothing is recorded, as when it is closed.
            RuntimeError: The broker is not open, or is open on another event loop; or `stop` was entered before, by you
                or for another run, and the script was not started.
        """
        self._check_open()
        check_script(script)
        check_limits(limits)
        check_texts(filename=filename)
        check_asked(extractor=extractor)
        check_told(on_output=on_output, on_call=on_call, known_answers=known_answers)
        check_stop(stop)
        if check not in CHECK_MODES:
            raise ValueError(f"check is one of {', '.join(map(repr, CHECK_MODES))}, not {check!r}")
        parking = self._parking if park else None
        if park and parking is None:
            raise ValueError("a run can be parked only where the session's answerer is a QuestionBox")
        watching = Watching(on_output, on_call, stop, known_answers, extractor)
        work = partial(
            self._execution.run,
            script,
            limits=limits,
            filename=filename,
            describe_references=describe_references,
            check_mode=check,
        )
        return await (work(watching) if parking is None else parking.run(work, watching))

    async def resume(
        self,
        run: str,
        *,
        any_principal: bool = False,
        on_output: Callable[[str, str], None] | None = None,
        on_call: Callable[[CallRecord, int, int], None] | None = None,
        unknown: UnknownOutcome | None = None,
        ask_unknown: UnknownAnswerer | None = None,
        stop: anyio.CancelScope | None = None,
        extractor: Extractor | None = None,
    ) -> ExecutionResult:
        """Continue a recorded run that was interrupted or is parked; what it was allowed before still holds.

        Calls that were answered are not repeated. If a run waits in the session's `QuestionBox`, answer its question
        there, and `wait_for` it. Lazy servers whose tools its script was given are connected first.

        Args:
            run: Its id, or the beginning of it.
            any_principal: Resume a run of any principal, or an imported one; for the person at the machine. Otherwise
                the run must be of the session's principal.
            on_output: As in `execute_code`; receives what was not printed before.
            on_call: As in `execute_code`; the numbers include the calls of before.
            unknown: What to do about a call that was sent and whose answer is not known: `fail` it in the script, `ask`
                a person whether to send it again, or `repeat` it if a trusted server marks the tool idempotent or
                read-only. Left out, the config decides.
            ask_unknown: Who is asked. Only True sends the call again; any other answer, and an error, fails it in the
                script. Without one, such a call fails, or waits if the session parks.
            stop: As in `execute_code`.
            extractor: As in `execute_code`.

        Raises:
            RecordingError: There is no such run, it has ended, or it cannot be resumed here; the text says why.
            UnavailableError: A server whose tools its script was given is down, disabled or not in the config. The run
                stays as it is, because the error that the script would get may end it for good; the text names each
                such server, and what to do about it.
            ValueError: `unknown` is not one of these.
            TypeError: As of `execute_code`; also where `run` is no text, or `ask_unknown` no function.
            StoreError: The run cannot be recorded, and stays as it is.
            RunInterruptedError: The store or the sandbox failed during the run; says what was executed.
            SandboxError: The sandbox cannot be opened.
            RuntimeError: As of `execute_code`; the run stays as it is.
        """
        self._check_open()
        check_texts(run=run)
        check_asked(ask_unknown=ask_unknown, extractor=extractor)
        check_told(on_output=on_output, on_call=on_call)
        check_stop(stop)
        if unknown is not None and unknown not in UNKNOWN_OUTCOMES:
            raise ValueError(f"unknown is one of {', '.join(map(repr, UNKNOWN_OUTCOMES))}, not {unknown!r}")
        principal = self._desk.principal
        run_id = self._recorder.unfinished.id_of(run, None if any_principal else principal)
        watching = Watching(on_output, on_call, stop, extractor=extractor)
        policy = unknown or self._recorder.unknown_outcome
        work = partial(self._execution.resume, run_id, watching, policy=policy, ask=ask_unknown)
        return await self._recorder.resumptions.perform(run_id, principal, work)

    async def repeated(self, run_id: str) -> ExecutionResult | None:
        """Wait for a run that this process has already resumed for the session's principal; return its result, once.

        For a client that repeats its request. None if there is no such run, or if it is parked again: then `resume`
        continues it.

        Raises:
            TypeError: `run_id` is no text.
            RuntimeError: As of `get_tool_details`.
        """
        self._check_open()
        check_texts(run_id=run_id)
        return await self._recorder.resumptions.result(run_id, self._desk.principal)

    async def wait_for(self, run_id: str) -> ExecutionResult:
        """Wait until a parked run ends or has its next question; resumes it first if this process has not begun it.

        Raises:
            KeyError: No such run of the session's principal is parked here, or its result was fetched.
            TypeError: `run_id` is no text.
            RecordingError: The recorded run cannot be resumed here; the text says why.
            UnavailableError: It had to be resumed; as of `resume`.
            StoreError: The run cannot be recorded, and stays as it is.
            RunInterruptedError: The store or the sandbox failed during the run; says what was executed.
            SandboxError: The sandbox cannot be opened.
            RuntimeError: As of `get_tool_details`.
        """
        self._check_open()
        check_texts(run_id=run_id)
        if self._parking is None:
            raise KeyError(f"{run_id} is not parked here: the session's answerer is no QuestionBox")
        return await self._parking.wait_for(run_id)

    def resume_parked(self) -> list[str]:
        """Resume the principal's parked runs, as after a restart; return their ids. Their questions come into the box.

        They wait in the background: each continues when its question is answered, and `wait_for` waits for it. A
        server of theirs may be down: calls of it then fail in the script. Runs that waited when their process died are
        among them; one that was cancelled or stopped while it waited is not, and `resume` continues that.

        Raises:
            ValueError: The session has no `QuestionBox`.
            RuntimeError: As of `get_tool_details`.
        """
        self._check_open()
        if self._parking is None:
            raise ValueError("runs can be resumed in the background only where the session's answerer is a QuestionBox")
        return self._parking.resume_waiting()

    def forget_request(self, run_id: str) -> None:
        """Let a request that is repeated begin a new run: the client knows how this one ended."""
        self._recorder.unfinished.forget_request(run_id)

    def revoke(self, grant_id: str) -> bool:
        """Revoke a grant by its id in `grants`, in parked runs of the session too. Return whether the session held it.

        The next call is decided without it. A permanent one is removed from the store.

        Raises:
            StoreError: A permanent grant cannot be removed, and still holds; or the grant is revoked, and a run cannot
                be told of it.
            TypeError: `grant_id` is no text.
        """
        check_texts(grant_id=grant_id)
        held = self._desk.revoke(grant_id)
        if held is not None:
            self._recorder.unfinished.take_back(self._desk.interrupted, held)
        return held is not None

    async def dispatch(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None,
        *,
        on_output: Callable[[str, str], None] | None = None,
        on_call: Callable[[CallRecord, int, int], None] | None = None,
    ) -> Reply:
        """Answer a model's call of one of the three tools that `tool_definitions` describes.

        Args:
            name: `search_tools`, `get_tool_details` or `execute_code`.
            arguments: As the model wrote them, JSON text included; wrong ones get a reply that explains them.
            on_output: As in `execute_code`.
            on_call: As in `execute_code`.

        Raises:
            TypeError: As of `execute_code`; also where `name` is no text.
            RuntimeError: As of `get_tool_details`.
        """
        self._check_open()
        check_texts(name=name)
        check_told(on_output=on_output, on_call=on_call)
        return await self.surface.dispatch(name, arguments, Watching(on_output, on_call))

    async def check_code(self, script: str, *, describe_references: bool = False) -> CheckedScript:
        """Check a script against the stubs of the tools that it names, and do not run it.

        Args:
            script: Python source.
            describe_references: Describe the tools that the script names; those that are not described are
                not checked.

        Raises:
            CheckerError: The type checker cannot be run; the script may still be correct.
            SandboxError: The sandbox cannot be opened.
            TypeError: The script is no text.
            ValueError: It is too long.
            RuntimeError: As of `get_tool_details`.
        """
        self._check_open()
        check_script(script)
        return await self._preparation.check(script, describe_references=describe_references)
