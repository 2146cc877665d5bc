"""The MCP server itself: requests of a downstream client to the surface, in both protocol eras.

Above: stdio.py and http.py, which carry it, and in-memory clients. Below: identity.py, runs.py, notices.py, and
`broker.surface`, where everything that a model reads is made.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import anyio
import mcp.types as t
from mcp import MCPError
from mcp.server import NotificationOptions, Server
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from broker.disclosure import tool_descriptions
from broker.errors import SearchError, UnknownToolError
from broker.server.announcing import Announcer
from broker.server.asking import Asking
from broker.server.identity import NEW, SessionKeeper, TooManySessionsError, UnknownSessionError, principal_of_request
from broker.server.notices import Notices
from broker.server.runs import DrainingError, NoRoomError, Runs
from broker.server.settings import ServeSettings
from broker.server.tools_mode import CALL, SESSION_KEY, ToolsMode
from broker.surface import KeptOutputs, Reply, Surface, texts, tool_definitions
from broker.surface.definitions import DETAILS, EXECUTE, INPUT_SCHEMAS, SEARCH
from broker.surface.outputs import TEMPLATE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from anyio.abc import TaskGroup
    from mcp.server import ServerRequestContext

    from broker.broker import Broker
    from broker.disclosure.tool_descriptions import Selection
    from broker.server.identity import Held
    from broker.server.runs import LiveRun
    from broker.sessions import Session
    from sandbox import Limits

NOT_FOUND_BEFORE_2026 = -32002
_LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_LOG_META_KEY = "io.modelcontextprotocol/logLevel"
_NO_LOG = "emergency"


@dataclass(frozen=True)
class _State:
    """What the SDK hands to each request."""

    tasks: TaskGroup


class BrokerServer:
    """An entered broker as an MCP server.

    Example:
        async with Broker.from_config("mcp.json") as broker, Client(BrokerServer(broker).mcp) as client:
            await client.call_tool("execute_code", {"code": "1 + 1"})
    """

    def __init__(
        self,
        broker: Broker,
        settings: ServeSettings | None = None,
        *,
        make_session: Callable[[str], Session] | None = None,
        limits: Limits | None = None,
    ) -> None:
        """Make the server.

        Args:
            broker: Entered, and open for as long as the server is.
            settings: How to serve.
            make_session: Makes the session of a principal; one without grants when None.
            limits: Bounds of each run; the broker's sandbox's when None.
        """
        settings = settings or ServeSettings()
        self.settings = settings
        self.broker = broker
        self.sessions = SessionKeeper(
            make_session or (lambda principal: broker.session(principal=principal)),
            most=settings.sessions,
            idle_seconds=settings.session_idle_seconds,
        )
        self.runs = Runs(at_once=settings.runs_at_once, waiting=settings.runs_waiting)
        self.outputs = KeptOutputs()
        self._asking = Asking(broker.requested_run)
        self._limits = limits
        self._log_levels: dict[str, str] = {}
        self._is_tools_mode = settings.mode == "tools"
        self._tools = ToolsMode(broker, None if self._is_tools_mode else tool_definitions("mcp"))
        self._announcer = Announcer(broker.catalog, self._tools) if self._is_tools_mode else None
        names = [status.name for status in broker.server_statuses() if status.state != "disabled"]
        self.mcp = _Server(
            "codemode-broker",
            version=version("codemode-broker"),
            title="codemode",
            instructions=self._tools.instructions if self._is_tools_mode else self._instructions(names),
            lifespan=self._lifespan,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscriptions_listen=self._announcer.listen if self._announcer is not None else None,
        )
        self.mcp.has_changing_tools = self._is_tools_mode
        # Not the constructor's argument, which warns that the newer era has none.
        self.mcp.add_request_handler("logging/setLevel", t.SetLevelRequestParams, self._set_log_level)

    async def drain(self) -> None:
        """Take no more runs in, and end those that there are; they can be taken up by the next server."""
        self.broker.shuts_down()
        await self.runs.drain(self.settings.grace_seconds)

    def _instructions(self, names: list[str]) -> str:
        described = texts.DESCRIBED_FROM_THE_START if self.broker.may_describe_all else ""
        return texts.instructions(names) + described

    @asynccontextmanager
    async def _lifespan(self, _server: Server[_State]) -> AsyncIterator[_State]:
        async with anyio.create_task_group() as tasks:
            if self._announcer is not None:
                tasks.start_soon(self._announcer.run)
            yield _State(tasks)
            tasks.cancel_scope.cancel()

    async def _list_tools(
        self, ctx: ServerRequestContext[_State, Any], params: t.PaginatedRequestParams | None
    ) -> t.ListToolsResult:
        if self._announcer is not None:
            self._announcer.note(ctx)
            try:
                tools, cursor = await self._tools.listing(params.cursor if params is not None else None)
            except SearchError as error:
                raise MCPError(t.INVALID_PARAMS, str(error)) from None
            return t.ListToolsResult(tools=[t.Tool.model_validate(tool) for tool in tools], next_cursor=cursor)
        return t.ListToolsResult(tools=[t.Tool.model_validate(tool) for tool in tool_definitions("mcp")])

    async def _call_tool(
        self, ctx: ServerRequestContext[_State, Any], params: t.CallToolRequestParams
    ) -> t.CallToolResult | t.InputRequiredResult:
        return await self._asking.perform(ctx, params, partial(self._answer_call, ctx, params))

    async def _answer_call(
        self, ctx: ServerRequestContext[_State, Any], params: t.CallToolRequestParams, run: str | None
    ) -> t.CallToolResult:
        if self._is_tools_mode and params.name != SEARCH:
            return await self._call_directly(ctx, params.name, params.arguments or {})
        if params.name not in INPUT_SCHEMAS:
            raise MCPError(t.INVALID_PARAMS, texts.unknown_tool(params.name, list(INPUT_SCHEMAS)))
        return _result(await self._reply(ctx, params.name, params.arguments or {}, run))

    async def _call_directly(
        self, ctx: ServerRequestContext[_State, Any], name: str, arguments: dict[str, Any]
    ) -> t.CallToolResult:
        handle = arguments.get("session") if name in {CALL, DETAILS} else (ctx.meta or {}).get(SESSION_KEY)
        try:
            with self._in_session(ctx, handle) as (held, new):
                answer = await self._tools.answer(held.session, name, arguments, new, ctx.session.report_progress)
        except UnknownToolError as error:
            raise MCPError(t.INVALID_PARAMS, self._tools.unknown(error)) from None
        except (UnknownSessionError, TooManySessionsError) as error:
            answer = _result(_no_session(error)).model_dump(by_alias=True, exclude_none=True)
            new = None
        if new is not None:
            answer["_meta"] = {SESSION_KEY: new}
        return t.CallToolResult.model_validate(answer)

    @contextmanager
    def _in_session(self, ctx: ServerRequestContext[_State, Any], handle: Any) -> Iterator[tuple[Held, str | None]]:
        """Yield the session of a request, and its handle where that is new to the caller."""
        held, is_new = self.sessions.find(ctx, handle if isinstance(handle, str) else None)
        held.users += 1
        try:
            yield held, held.handle if is_new else None
        finally:
            held.users -= 1

    async def _reply(
        self, ctx: ServerRequestContext[_State, Any], name: str, arguments: dict[str, Any], run: str | None
    ) -> Reply:
        handle = arguments.get("session")
        try:
            try:
                held, is_new = self.sessions.find(ctx, handle if isinstance(handle, str) else None)
            except UnknownSessionError:
                if run is None:
                    raise
                held, is_new = self.sessions.find(ctx, NEW)  # the run outlived its session
        except (UnknownSessionError, TooManySessionsError) as error:
            return _no_session(error)
        held.users += 1
        try:
            if name != EXECUTE:
                return await self._surface(held, is_new=is_new).dispatch(name, arguments)
            return await self._execute(ctx, held, arguments, is_new=is_new, run=run)
        finally:
            held.users -= 1

    async def _execute(
        self,
        ctx: ServerRequestContext[_State, Any],
        held: Held,
        arguments: dict[str, Any],
        *,
        is_new: bool,
        run: str | None,
    ) -> Reply:
        notices = Notices(ctx, with_output=self._wants_output(ctx))

        async def work(live: LiveRun[Reply]) -> Reply:
            surface = replace(self._surface(held, is_new=is_new), resumes=run)
            return await surface.dispatch(EXECUTE, arguments, notices.watcher, stop=live.stop)

        async with anyio.create_task_group() as telling:
            telling.start_soon(notices.send)
            try:
                reply = await self.runs.perform(ctx.lifespan_context.tasks, work)
            except NoRoomError:
                reply = Reply(texts.TOO_MANY_RUNS, is_error=True)
            except DrainingError as error:
                reply = Reply(texts.SHUT_DOWN if error.has_begun else texts.SHUTTING_DOWN, is_error=True)
            finally:
                notices.close()
        return reply

    def _surface(self, held: Held, *, is_new: bool) -> Surface:
        return Surface(
            session=held.session,
            owner=held.principal,
            handle=held.handle if is_new else None,
            outputs=self.outputs,
            limits=self._limits,
            output_tokens=self.settings.output_tokens,
        )

    async def _list_resources(
        self, _ctx: ServerRequestContext[_State, Any], _params: t.PaginatedRequestParams | None
    ) -> t.ListResourcesResult:
        return t.ListResourcesResult(resources=[t.Resource.model_validate(tool_descriptions.resource())])

    async def _list_templates(
        self, _ctx: ServerRequestContext[_State, Any], _params: t.PaginatedRequestParams | None
    ) -> t.ListResourceTemplatesResult:
        output = t.ResourceTemplate(
            uri_template=TEMPLATE, name="run_output", description=texts.OUTPUT_RESOURCE, mime_type="text/plain"
        )
        descriptions = t.ResourceTemplate(
            uri_template=tool_descriptions.TEMPLATE,
            name=tool_descriptions.RESOURCE_NAME,
            description=tool_descriptions.WORKFLOW,
            mime_type=tool_descriptions.MIME_TYPE,
        )
        return t.ListResourceTemplatesResult(resource_templates=[output, descriptions])

    async def _read_resource(
        self, ctx: ServerRequestContext[_State, Any], params: t.ReadResourceRequestParams
    ) -> t.ReadResourceResult:
        selection = tool_descriptions.selection_of(params.uri)
        if selection is not None:
            return await self._read_descriptions(ctx, params.uri, selection)
        try:
            page = self.outputs.read(params.uri, principal_of_request())
        except ValueError as error:
            raise MCPError(t.INVALID_PARAMS, str(error)) from None
        if page is None:
            is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
            code = t.INVALID_PARAMS if is_modern else NOT_FOUND_BEFORE_2026
            raise MCPError(code, texts.no_resource(params.uri), {"uri": params.uri})
        contents = t.TextResourceContents(uri=params.uri, mime_type="text/plain", text=page)
        return t.ReadResourceResult(contents=[contents])

    async def _read_descriptions(
        self, ctx: ServerRequestContext[_State, Any], uri: str, selection: Selection
    ) -> t.ReadResourceResult:
        handle = selection.session or (ctx.meta or {}).get(SESSION_KEY)
        try:
            with self._in_session(ctx, handle) as (held, new):
                document = await self._tools.read(held.session, selection)
        except (UnknownSessionError, TooManySessionsError) as error:
            raise MCPError(t.INVALID_PARAMS, _no_session(error).text) from None
        text = json.dumps(document, ensure_ascii=False)
        contents = t.TextResourceContents(uri=uri, mime_type=tool_descriptions.MIME_TYPE, text=text)
        return t.ReadResourceResult(contents=[contents], _meta={SESSION_KEY: new} if new is not None else None)

    async def _set_log_level(
        self, ctx: ServerRequestContext[_State, Any], params: t.SetLevelRequestParams
    ) -> t.EmptyResult:
        if len(self._log_levels) >= self.settings.sessions:
            self._log_levels.clear()
        self._log_levels[_connection(ctx)] = params.level
        return t.EmptyResult()

    def _wants_output(self, ctx: ServerRequestContext[_State, Any]) -> bool:
        """Printed text is logged to clients that asked for it: it is in the reply anyhow."""
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            wanted = (ctx.meta or {}).get(_LOG_META_KEY, _NO_LOG)
        else:
            wanted = self._log_levels.get(_connection(ctx), _NO_LOG)
        return wanted in _LOG_LEVELS[: _LOG_LEVELS.index("info") + 1]


class _Server(Server[_State]):
    """The SDK's server with capabilities as they are: of what it lists, only the tools of mode `tools` change."""

    has_changing_tools = False

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> Any:
        """Return the options of the older handshake; over HTTP the SDK calls this without any."""
        return super().create_initialization_options(
            notification_options or NotificationOptions(tools_changed=self.has_changing_tools),
            experimental_capabilities,
            extensions,
        )


def _no_session(error: UnknownSessionError | TooManySessionsError) -> Reply:
    text = texts.unknown_session(str(error)) if isinstance(error, UnknownSessionError) else texts.TOO_MANY_SESSIONS
    return Reply(text, is_error=True)


def _result(reply: Reply) -> t.CallToolResult:
    blocks = [{"type": "text", "text": reply.text}, *reply.blocks]
    return t.CallToolResult.model_validate(
        {
            "content": blocks,
            "isError": reply.is_error,
            **({} if reply.structured is None else {"structuredContent": reply.structured}),
        }
    )


def _connection(ctx: ServerRequestContext[_State, Any]) -> str:
    return "" if ctx.request is None else str(ctx.request.headers.get("mcp-session-id", ""))
