"""A call of one of the three tools, answered in a session: the same for the MCP server and for embedding programs.

Above: the MCP server, `Session.dispatch`. Below: the session. Nothing that a caller can write makes `dispatch` raise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from broker.calls.json_schema import TOO_LARGE, first_fault
from broker.errors import (
    RecordingError,
    RunInterruptedError,
    SearchError,
    StoreError,
    UnavailableError,
    UnknownToolError,
)
from broker.logging import logger
from broker.runs.envelope import ExecutionError, ExecutionResult
from broker.runs.script_check import stops
from broker.runs.watching import Watching
from broker.search import Detail, Filters, Mode, SearchRequest
from broker.search.pages import MAX_LIMIT
from broker.surface.definitions import DETAILS, EXECUTE, INPUT_SCHEMAS, SEARCH
from broker.surface.outputs import OUTPUT_TOKENS, KeptOutputs
from broker.surface.replies import Draft, Reply
from broker.surface.sent_arguments import plain_arguments
from broker.surface.sent_code import plain_code
from broker.texts import run_texts, tool_texts
from broker.texts.run_texts import LONGEST_SECONDS
from broker.tiers.items import category_line, hot_line, summary_line
from broker.tiers.pages import compact
from broker.tiers.tiers import HOT_TOOLS
from codegen import CheckerError
from codegen.tool_spec import HINTS
from sandbox import SandboxError
from sandbox.perform import check_script

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker.disclosure.tool_details import ToolDetails
    from broker.runs.not_described import NotDescribed
    from broker.search import SearchPage
    from broker.sessions import Session
    from codegen import Diagnostic
    from sandbox import Limits, Raised

ALL = "*"
"""As the category of a search: all categories are listed, instead of tools."""

_MAX_TOOLS = 100
_OF_CATEGORIES = frozenset({"category", "cursor", "session"})


@dataclass(frozen=True, kw_only=True)
class Surface:
    """The three tools over one session.

    Attributes:
        session: Whose descriptions and grants count.
        owner: Who may read output that is kept.
        handle: What the caller is told to pass as `session`; None where it need not.
        outputs: Where output beyond the budget is kept.
        limits: Bounds of each run, the session's when None; `timeout` replaces the wall clock.
        output_tokens: How many tokens a reply to a script has at most; the rest of the output is kept.
        resumes: The recorded run that `execute_code` goes on with, for a request that is repeated.
        has_scripts: Whether the caller writes scripts: a search at detail `full` gives it stubs, else definitions.
    """

    session: Session
    owner: str = ""
    handle: str | None = None
    outputs: KeptOutputs = field(default_factory=KeptOutputs)
    limits: Limits | None = None
    output_tokens: int = OUTPUT_TOKENS
    resumes: str | None = None
    has_scripts: bool = True

    async def dispatch(
        self, name: str, arguments: Mapping[str, Any] | str | None, watching: Watching | None = None
    ) -> Reply:
        """Answer one call; `arguments` are a model's, JSON text included, and checked here.

        `watching` is told of a script and may stop it; answers known before are the session's.
        """
        schema = INPUT_SCHEMAS.get(name)
        if schema is None:
            return Reply(tool_texts.unknown_tool(name, list(INPUT_SCHEMAS)), is_error=True)
        given = plain_arguments(arguments, schema)
        if given is None:
            return Reply(tool_texts.wrong_arguments(name, tool_texts.NO_OBJECT), is_error=True)
        if (fault := first_fault(given, schema, unchecked=TOO_LARGE)) is not None:
            has_right_names = set(schema.get("required", ())) <= given.keys() <= schema["properties"].keys()
            takes = [] if has_right_names else list(schema["properties"])
            return Reply(tool_texts.wrong_arguments(name, fault, takes), is_error=True)
        if name == SEARCH:
            browsed = given.get("category") == ALL
            return self._categories(given) if browsed else await self._page(given)
        if name == DETAILS:
            return await self._details(given["tools"])
        return await self._execute(given, watching or Watching())

    async def _page(self, given: dict[str, Any]) -> Reply:
        if given.get("limit", MAX_LIMIT) <= MAX_LIMIT:
            return await self._search(given)
        reply = await self._search(given | {"limit": MAX_LIMIT})
        return replace(reply, text=f"{reply.text}\n{tool_texts.shorter_page(given, MAX_LIMIT)}")

    async def _search(self, given: dict[str, Any]) -> Reply:
        try:
            request = SearchRequest(
                query=given.get("query", ""),
                detail=Detail.parse(given.get("detail", "brief")),
                mode=Mode(given.get("mode", Mode.AUTO)),
                filters=Filters(
                    servers=None if "server" not in given else (given["server"],),
                    category=given.get("category"),
                    **_hints(given.get("annotations", {})),
                ),
                limit=given.get("limit", 20),
                cursor=given.get("cursor"),
            )
            is_hot = _is_hot(request, given)
            page = await self.session.search(replace(request, limit=HOT_TOOLS) if is_hot else request)
        except SearchError as error:
            return Reply(tool_texts.wrong_arguments(SEARCH, str(error).rstrip(".")), is_error=True)
        if page.to_describe:
            return await self._in_full(request, page)
        lines = self._lines(request, page, is_hot=is_hot)
        shown = len(lines)
        if not (lines or page.unknown):
            lines = [_nothing(given, page)]
        if page.tools and request.browses and request.cursor is None and self.session.describes_all:
            lines.append(tool_texts.described_now(self.session.undescribed))
        return self._reply("\n".join([*lines, *_below(request, page, shown)]))

    def _lines(self, request: SearchRequest, page: SearchPage, *, is_hot: bool) -> list[str]:
        """Return the first tools of a page, as many as the budget of its tier holds."""
        if not request.browses:
            return [": ".join(filter(None, entry.values())) for entry in page.entries()]
        tiers, found = self.session.tiers, self.session.found(page)
        if is_hot:
            return list(map(hot_line, tiers.hot_of(found).items))
        return list(map(summary_line, tiers.summaries_of(found, page_size=max(len(found), 1)).items))

    def _categories(self, given: dict[str, Any]) -> Reply:
        try:
            page = self.session.tiers.categories(given.get("cursor"))
        except SearchError as error:
            return Reply(tool_texts.wrong_arguments(SEARCH, str(error).rstrip(".")), is_error=True)
        more = [tool_texts.next_categories(page.next_cursor)] if page.next_cursor is not None else []
        unused = [name for name, value in given.items() if name not in _OF_CATEGORIES and str(value).strip()]
        below = f"\n{tool_texts.only_categories(given, unused)}" if unused else ""
        nothing = tool_texts.list_ended(given) if "cursor" in given else tool_texts.NO_CATEGORIES
        return self._reply(("\n".join([*map(category_line, page.items), *more]) or nothing) + below)

    async def _in_full(self, request: SearchRequest, page: SearchPage) -> Reply:
        """Describe the tools of a page, as many as its budget holds; one that is larger is named."""
        if not self.has_scripts:
            try:
                read = await self.session.read_in_full(page.to_describe)
            except (SearchError, UnknownToolError) as error:
                return Reply(str(error), is_error=True)
            return self._reply("\n".join([*map(compact, read.items), *_below(request, page, len(read.items))]))
        held, details = await self.session.describe_a_page(page.to_describe)
        if details.retry_after_seconds:
            return self._reply(_stubs(details), is_error=True)
        too_long = [tool_texts.too_long(held.too_long)] if held.too_long else []
        below = "\n".join([*too_long, *_below(request, page, len(held.names) + len(held.too_long))])
        return self._reply(
            "\n\n".join(filter(None, [_stubs(details), below])), is_error=not (details.described or held.too_long)
        )

    async def _details(self, names: list[str]) -> Reply:
        if not names:
            return Reply(tool_texts.wrong_arguments(DETAILS, tool_texts.NO_NAMES), is_error=True)
        asked = list(dict.fromkeys(names))
        details = await self.session.get_tool_details(asked[:_MAX_TOOLS], within_a_page=True)
        left = [*details.left, *asked[_MAX_TOOLS:]]
        parts = [_stubs(details), *([tool_texts.next_fetch(left)] if left and not details.retry_after_seconds else [])]
        return self._reply("\n\n".join(filter(None, parts)), is_error=not details.described)

    async def _execute(self, given: dict[str, Any], watching: Watching) -> Reply:
        code, seconds = plain_code(given["code"]), given.get("timeout")
        fault = _unusable(code, seconds)
        if fault is not None:
            return Reply(tool_texts.wrong_arguments(EXECUTE, fault), is_error=True)
        limits = self.limits or self.session.limits
        if seconds is not None:
            limits = replace(limits, wall_seconds=float(min(seconds, LONGEST_SECONDS)))
        reply = await self._run(code, limits, watching)
        is_cut = seconds is not None and seconds > LONGEST_SECONDS and self.resumes is None
        return replace(reply, text=f"{reply.text}\n{run_texts.shorter_timeout(LONGEST_SECONDS)}") if is_cut else reply

    async def _run(self, code: str, limits: Limits, watching: Watching) -> Reply:
        try:
            if self.resumes is not None:
                return await self._ran(await self._resume(self.resumes, watching))
            result = await self.session.execute_code(
                code,
                limits=limits,
                on_output=watching.on_output,
                on_call=watching.on_call,
                stop=watching.stop,
                extractor=watching.extractor,
            )
        except (RunInterruptedError, StoreError, SandboxError) as error:
            return _not_run(error)
        except RecordingError as error:
            if self.resumes is not None:
                self.session.forget_request(self.resumes)
            return Reply(run_texts.not_resumed(str(error)), is_error=True)
        except UnavailableError as error:  # of a request that is repeated; it is not forgotten, as the run can go on
            logger().warning("a run was not resumed", reason=str(error))
            return Reply(run_texts.left_until_back(error.server), is_error=True)
        lacking = result.not_described
        return await (self._with_stubs(code, result, lacking) if lacking is not None else self._ran(result))

    async def _with_stubs(self, code: str, result: ExecutionResult, lacking: NotDescribed) -> Reply:
        """Reply to a script that lacked descriptions with those: its author could do nothing else than fetch them.

        As many as a page of stubs holds; the others are named. What the script does not fit in them is said at once.
        """
        try:
            _, details = await self.session.describe_a_page(lacking.names[:_MAX_TOOLS])
        except UnknownToolError:  # its server has just withdrawn it
            return await self._ran(result)
        if not details.described:
            if details.unavailable:
                result = _ended_by(lacking.outcome_for_now(details.unavailable.values()), result)
            return await self._ran(result)
        is_whole = len(details.described) == len(lacking.names)
        raised = lacking.outcome_with_stubs(details.described, await self._mistakes(code) if is_whole else ())
        stubs = _stubs(details)
        reply = await self._ran(_ended_by(raised, result))
        # Some clients show their model the envelope alone.
        envelope = reply.structured or {}
        told = envelope["error"] | {"message": f"{envelope['error']['message']}\n\n{stubs}"}
        return replace(reply, text=f"{reply.text}\n\n{stubs}", structured=envelope | {"error": told})

    async def _mistakes(self, code: str) -> Sequence[Diagnostic]:
        try:
            diagnostics = (await self.session.check_code(code)).diagnostics
        except (CheckerError, SandboxError):  # the run that follows says so, if it still is so
            return ()
        return diagnostics if stops(diagnostics) else ()

    async def _resume(self, run: str, watching: Watching) -> ExecutionResult:
        """Go on with the run of a request that is repeated, or wait for it where it goes on already."""
        result = await self.session.repeated(run) or await self.session.resume(
            run,
            on_output=watching.on_output,
            on_call=watching.on_call,
            stop=watching.stop,
            extractor=watching.extractor,
        )
        if result.outcome != "parked":
            self.session.forget_request(run)
        return result

    async def _ran(self, result: ExecutionResult) -> Reply:
        draft = Draft.of(result, self.handle)
        if draft.is_short(self.output_tokens):
            return draft.whole()
        reply, kept = await anyio.to_thread.run_sync(draft.cut, self.output_tokens)
        if kept is not None:
            self.outputs.keep(result.run_id, kept, self.owner, self.output_tokens)
        return reply

    def _reply(self, text: str, *, is_error: bool = False) -> Reply:
        handle = f"\n{tool_texts.new_session(self.handle)}" if self.handle is not None else ""
        return Reply(text + handle, is_error=is_error)


def _is_hot(request: SearchRequest, given: Mapping[str, Any]) -> bool:
    """Tell whether a search asks for nothing but the best of all tools."""
    return request.browses and not request.filters.given and "limit" not in given


def _below(request: SearchRequest, page: SearchPage, shown: int) -> list[str]:
    """Return what is said below the first tools of a page: what went otherwise than asked, and where the next are."""
    cursor = page.next_cursor if shown == len(page.tools) else request.cursor_after(shown)
    return [*page.notes, *([tool_texts.next_page(cursor)] if cursor else [])]


def _nothing(given: dict[str, Any], page: SearchPage) -> str:
    if "cursor" in given:
        return tool_texts.list_ended(given)
    return tool_texts.nothing_found(given, page.excluded_by, says_why=bool(page.notes))


def _stubs(details: ToolDetails) -> str:
    """Return the stubs of a fetch, and why others are not among them."""
    parts = [tool_texts.imports(details.namespaces), details.source] if details.described else []
    refused, asked = ([name for name, one in details.outlooks.items() if one == said] for said in ("refused", "asked"))
    said = [*parts, tool_texts.outlook(refused, asked), tool_texts.not_described(details)]
    return "\n\n".join(part.rstrip() for part in said if part)


def _ended_by(raised: Raised, result: ExecutionResult) -> ExecutionResult:
    """Return the result of a run that was not started, with another error."""
    error = ExecutionError(type=raised.type, message=raised.message, traceback=raised.traceback)
    return result.model_copy(update={"error": error})


def _unusable(code: str, seconds: float | None) -> str | None:
    """Return what is wrong with the arguments of execute_code beside their types."""
    if not code.strip():
        return tool_texts.NO_CODE
    if seconds is not None and not 0 < seconds < math.inf:
        return tool_texts.no_timeout(seconds, LONGEST_SECONDS)
    try:
        check_script(code)
    except ValueError as error:
        return str(error)
    return None


def _not_run(error: RunInterruptedError | StoreError | SandboxError) -> Reply:
    if isinstance(error, RunInterruptedError):
        logger().error("a run was interrupted", problem=str(error), what_to_do=error.what_to_do)
        return Reply(run_texts.interrupted(error.run_id, error.executed), is_error=True)
    logger().error("a run was not begun", problem=str(error))
    return Reply(run_texts.NOT_RECORDED if isinstance(error, StoreError) else run_texts.NO_SANDBOX, is_error=True)


def _hints(annotations: Mapping[str, Any]) -> dict[str, bool]:
    """Return what annotations have to be, as filters.

    Raises:
        SearchError: One has another name than in MCP, or is neither true nor false.
    """
    for name, want in annotations.items():
        if name not in HINTS or not isinstance(want, bool):
            raise SearchError(tool_texts.no_annotation(name, HINTS))
    return {HINTS[name]: want for name, want in annotations.items()}
