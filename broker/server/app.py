"""The MCP server itself: requests of a downstream client to the surface, in both protocol eras.

Above: http.py and `codemode serve`, which carry it, and in-memory clients. Below: session_keeper.py, asking.py,
runs.py, tools_mode.py, resources.py, unforeseen.py, and `broker.surface`, where everything that a model reads is made.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import anyio
import mcp.types as t
from mcp import MCPError
from mcp.server import NotificationOptions, Server
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from broker.api_arguments import check_told
from broker.broker import Broker
from broker.disclosure.tool_descriptions import SESSION_KEY
from broker.errors import SearchError, UnknownToolError
from broker.server.agents import definitions_for, wants_structured
from broker.server.announcing import Announcer
from broker.server.asking import Asking
from broker.server.beats import Beats
from broker.server.log_levels import LogLevels
from broker.server.notices import Notices
from broker.server.open_requests import OpenRequests
from broker.server.resources import Resources, check_first_page
from broker.server.runs import DrainingError, NoRoomError, Runs
from broker.server.session_keeper import NoSessionError, SessionKeeper, handle_in
from broker.server.settings import ServeSettings
from broker.server.tools_mode import OWN_SCHEMAS, ToolsMode, for_older_clients
from broker.server.unforeseen import told_without_details
from broker.surface import KeptOutputs, Reply, Surface, tool_definitions
from broker.surface.definitions import EXECUTE, INPUT_SCHEMAS, SEARCH
from broker.surface.sent_arguments import plain_arguments
from broker.texts import tool_texts
from sandbox.limits import check_limits
from sandbox.pace import PACE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from anyio.abc import TaskGroup
    from mcp.server import ServerRequestContext

    from broker.server.runs import LiveRun
    from broker.sessions import Session
    from sandbox import Limits


_REPORTED_SECONDS = 0.5


@dataclass(frozen=True)
class _State:
    """What the SDK hands to each request."""

    tasks: TaskGroup
    beats: Beats


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

        Raises:
            TypeError: `broker` is not a `Broker`, `settings` are not `ServeSettings`, `limits` are not `Limits`, or
                `make_session` is no plain function.
        """
        settings = ServeSettings() if settings is None else settings
        for given, kind in ((broker, Broker), (settings, ServeSettings)):
            if not isinstance(given, kind):
                raise TypeError(f"a BrokerServer takes a Broker and ServeSettings, not a {type(given).__name__}")
        check_told(make_session=make_session)
        check_limits(limits)
        self.settings = settings
        self.broker = broker
        self.sessions = SessionKeeper(
            partial(_session_of, make_session or (lambda principal: broker.session(principal=principal))),
            most=settings.sessions,
            idle_seconds=settings.session_idle_seconds,
            rest=broker.serving.rest_unused,
        )
        self.runs = Runs(at_once=settings.runs_at_once, waiting=settings.runs_waiting)
        self.outputs = KeptOutputs()
        self.open_requests = OpenRequests()
        self._asking = Asking(broker.serving.requested_runs)
        self._limits = limits
        self._log_levels = LogLevels(settings.sessions)
        self._is_tools_mode = settings.mode == "tools"
        self._tools = ToolsMode(broker, None if self._is_tools_mode else tool_definitions("mcp"))
        self._announcer = Announcer(broker.catalog, self._tools) if self._is_tools_mode else None
        self.mcp = self._make_mcp()

    async def drain(self) -> None:
        """Take no more runs in, and end those that there are; the next server can resume them."""
        self.broker.serving.note_shutdown()
        await self.runs.drain(self.settings.grace_seconds)

    async def end_servers_in_time(self) -> None:
        """End the upstream servers half a second after scripts have been stopped, whoever has not reported by then.

        Servers that are deaf to that take two seconds more; what is left to do for clients goes on meanwhile.
        """
        await anyio.sleep(self.settings.grace_seconds + _REPORTED_SECONDS)
        self.broker.serving.end_servers()

    def end_announcing(self) -> None:
        """End the subscriptions of clients, each with its answer."""
        if self._announcer is not None:
            self._announcer.end()

    def _make_mcp(self) -> _Server:
        resources = Resources(self._tools, self.outputs, self.sessions)
        mcp = _Server(
            "codemode-broker",
            version=version("codemode-broker"),
            title="codemode",
            instructions=self._tools.instructions if self._is_tools_mode else self._instructions(),
            lifespan=self._lifespan,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=resources.list,
            on_list_resource_templates=resources.list_templates,
            on_read_resource=resources.read,
            on_subscriptions_listen=self._announcer.listen if self._announcer is not None else None,
        )
        mcp.middleware.extend([told_without_details, self.open_requests.middleware])
        mcp.has_changing_tools = self._is_tools_mode
        # Not the constructor's argument, which warns that the newer era has none.
        mcp.add_request_handler("logging/setLevel", t.SetLevelRequestParams, self._log_levels.set)
        return mcp

    def _instructions(self) -> str:
        names = [status.name for status in self.broker.server_statuses() if status.state != "disabled"]
        described = tool_texts.DESCRIBED_FROM_THE_START if self.broker.serving.may_describe_all else ""
        return tool_texts.instructions(names) + described

    @asynccontextmanager
    async def _lifespan(self, _server: Server[_State]) -> AsyncIterator[_State]:
        async with anyio.create_task_group() as tasks:
            if self._announcer is not None:
                tasks.start_soon(self._announcer.run)
            tasks.start_soon(self.sessions.sweep_regularly)
            beats = Beats()
            tasks.start_soon(beats.run)
            yield _State(tasks, beats)
            tasks.cancel_scope.cancel()

    async def _list_tools(
        self, ctx: ServerRequestContext[_State, Any], params: t.PaginatedRequestParams | None
    ) -> t.ListToolsResult:
        if self._announcer is not None:
            try:
                tools, cursor = await self._tools.listing(params.cursor if params is not None else None)
            except SearchError as error:
                raise MCPError(t.INVALID_PARAMS, str(error)) from None
            if self.broker.describes_all:  # what was listed in full is what the client's session knows
                self.sessions.begin(ctx)
            self._announcer.note(ctx)
            return t.ListToolsResult(tools=[t.Tool.model_validate(tool) for tool in tools], next_cursor=cursor)
        check_first_page(params)
        definitions = definitions_for(ctx, self.settings.structured_content)
        return t.ListToolsResult(tools=[t.Tool.model_validate(tool) for tool in definitions])

    async def _call_tool(
        self, ctx: ServerRequestContext[_State, Any], params: t.CallToolRequestParams
    ) -> t.CallToolResult | t.InputRequiredResult:
        PACE.note_wait()  # the event loop has brought the request
        return await self._asking.perform(ctx, params, partial(self._answer_call, ctx, params))

    async def _answer_call(
        self, ctx: ServerRequestContext[_State, Any], params: t.CallToolRequestParams, run: str | None
    ) -> t.CallToolResult:
        if self._is_tools_mode and params.name != SEARCH:
            return await self._call_directly(ctx, params.name, params.arguments or {})
        if params.name not in INPUT_SCHEMAS:
            raise MCPError(t.INVALID_PARAMS, tool_texts.unknown_tool(params.name, list(INPUT_SCHEMAS)))
        reply = await self._reply(ctx, params.name, params.arguments or {}, run)
        if not wants_structured(ctx, self.settings.structured_content):
            reply = replace(reply, structured=None)
        return _result(reply)

    async def _call_directly(
        self, ctx: ServerRequestContext[_State, Any], name: str, arguments: dict[str, Any]
    ) -> t.CallToolResult:
        named = None
        if name in OWN_SCHEMAS:
            arguments = plain_arguments(arguments, OWN_SCHEMAS[name]) or {}
            named = arguments.get("session")
        try:
            with self.sessions.using(ctx, handle_in(named) or self.sessions.passed(ctx)) as (held, new):
                answer = await self._tools.answer(held.session, name, arguments, new, ctx.session.report_progress)
        except UnknownToolError as error:
            raise MCPError(t.INVALID_PARAMS, self._tools.unknown(error)) from None
        except NoSessionError as error:
            return _result(Reply(str(error), is_error=True))
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            answer = for_older_clients(answer)
        if new is not None:
            answer["_meta"] = {SESSION_KEY: new}
        elif (note := _note_on(named)) is not None:
            answer["content"] = [*answer["content"], {"type": "text", "text": note}]
        return t.CallToolResult.model_validate(answer)

    async def _reply(
        self, ctx: ServerRequestContext[_State, Any], name: str, arguments: dict[str, Any], run: str | None
    ) -> Reply:
        named = arguments.get("session")
        handle = handle_in(named) or self.sessions.passed(ctx)
        try:
            # A run that is gone on with may have outlived its session.
            with self.sessions.using(ctx, handle, or_new=run is not None) as (held, new):
                surface = Surface(
                    session=held.session,
                    owner=held.principal,
                    handle=new,
                    outputs=self.outputs,
                    limits=self._limits,
                    output_tokens=self.settings.output_tokens,
                    resumes=run,
                    has_scripts=not self._is_tools_mode,
                )
                if name == EXECUTE:
                    reply = await self._execute(ctx, surface, arguments)
                else:
                    reply = await surface.dispatch(name, arguments)
        except NoSessionError as error:
            return Reply(str(error), is_error=True)
        note = _note_on(named) if new is None else None
        return reply if note is None else replace(reply, text=f"{reply.text}\n{note}")

    async def _execute(
        self, ctx: ServerRequestContext[_State, Any], surface: Surface, arguments: dict[str, Any]
    ) -> Reply:
        beats = ctx.lifespan_context.beats
        async with anyio.create_task_group() as telling:
            notices = Notices(ctx, telling, wants_output=partial(self._log_levels.want_output, ctx))

            async def work(live: LiveRun) -> Reply:
                live.stop.was_entered = surface.resumes is not None  # that has begun, and may go on in the background
                return await surface.dispatch(EXECUTE, arguments, notices.watching(live.stop))

            beats.add(notices)
            try:
                reply = await self.runs.perform(work, surface.owner)
            except NoRoomError:
                reply = Reply(tool_texts.TOO_MANY_RUNS, is_error=True)
            except DrainingError as error:
                reply = Reply(tool_texts.SHUT_DOWN if error.has_begun else tool_texts.SHUTTING_DOWN, is_error=True)
            finally:
                beats.discard(notices)
                notices.close()
        return reply


class _Server(Server[_State]):
    """The SDK's server with capabilities as they are: of what it lists, only the tools of mode `tools` change."""

    has_changing_tools = False

    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
        *,
        protocol_version: str | None = None,
    ) -> t.ServerCapabilities:
        """Return the same of tools and resources in both eras; the SDK has all change if anybody can subscribe."""
        capabilities = super().get_capabilities(
            notification_options, experimental_capabilities, extensions, protocol_version=protocol_version
        )
        tools = t.ToolsCapability(list_changed=self.has_changing_tools)
        resources = t.ResourcesCapability(subscribe=False, list_changed=False)
        return capabilities.model_copy(update={"tools": tools, "resources": resources})


def _note_on(named: Any) -> str | None:
    """Return what to say of a text that a model passed as `session` and that cannot be a handle."""
    is_ignored = isinstance(named, str) and named.strip() and handle_in(named) is None
    return tool_texts.no_handle(named) if is_ignored else None


def _session_of(make_session: Callable[[str], Session], principal: str) -> Session:
    session = make_session(principal)
    session.count_fetches_of(principal)
    return session


def _result(reply: Reply) -> t.CallToolResult:
    blocks = [{"type": "text", "text": reply.text}, *reply.blocks]
    structured = {} if reply.structured is None else {"structuredContent": reply.structured}
    return t.CallToolResult.model_validate({"content": blocks, "isError": reply.is_error, **structured})
