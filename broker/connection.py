"""One connection to one server: opened, negotiated, then asked for its tools or to run one.

Above: upstream.py, which owns it. Below: the SDK's session over our own transport for child processes and the
SDK's for HTTP and for servers in this process. Answers are handed on as the JSON objects that came: the SDK
refuses a whole listing for one malformed tool, and results that a tolerant reader can still use.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import anyio
import httpx2
import mcp.types as t
from mcp import ClientSession, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import listen
from mcp.server import MCPServer, Server
from mcp.server.runner import modern_on_request
from mcp.shared.direct_dispatcher import create_direct_dispatcher_pair
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.memory import create_client_server_memory_streams
from mcp.types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from broker.raw_dispatcher import RAW, RawDispatcher
from broker.stdio import LINE_BYTES, stdio_streams
from broker.upstream_requests import RefusedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from anyio.abc import Process
    from mcp.client._transport import TransportStreams
    from mcp.shared.dispatcher import CallOptions, Dispatcher, ProgressFnT

    from broker.config import ServerConfig
    from broker.upstream_requests import Reply, UpstreamRequests

Mode: TypeAlias = Literal["auto", "legacy", "2026-07-28"]
InProcessServer: TypeAlias = "Server[Any] | MCPServer"

_RESOURCE_PAGES = 5
_REFUSED = t.ErrorData(code=t.INVALID_REQUEST, message="Refused.")
_UNAUTHORIZED = frozenset({401, 403})


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a listing: tools as received, the names the protocol forbids to use, the next cursor."""

    tools: Any
    forbidden: frozenset[str]
    cursor: Any


@dataclass
class Connection:
    """An open connection. `ended` is set, with `reason`, when it is of no further use."""

    on_tools_changed: Callable[[], None]
    on_end: Callable[[], None]
    on_secret: Callable[[str], None] | None = None
    requests: UpstreamRequests | None = None
    ended: anyio.Event = field(default_factory=anyio.Event)
    reason: str = ""
    http_status: int | None = None
    _session: ClientSession | None = None
    _wire: Dispatcher[Any] | None = None

    @property
    def session(self) -> ClientSession:
        """The SDK's session."""
        if self._session is None:
            raise RuntimeError("the connection is not open")
        return self._session

    @property
    def protocol_version(self) -> str:
        """The negotiated revision."""
        return self.session.protocol_version or ""

    @property
    def _dispatcher(self) -> Dispatcher[Any]:
        if self._wire is None:
            raise RuntimeError("the connection is not open")
        return self._wire

    def end(self, reason: str) -> None:
        """Mark the connection as of no further use; the first reason stays."""
        self.reason = self.reason or reason
        if not self.ended.is_set():
            self.ended.set()
            self.on_end()

    async def list_page(self, cursor: str | None) -> Page:
        """Ask for one page of tools.

        Raises:
            MCPError: The server answered with an error, or the connection ended.
        """
        result = await self.session.list_tools(params=t.PaginatedRequestParams(cursor=cursor))
        raw = (result.meta or {})[RAW]
        offered = (result.meta or {})["offered"]
        forbidden = frozenset(offered) - {tool.name for tool in result.tools}
        return Page(raw.get("tools"), forbidden, raw.get("nextCursor"))

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any],
        on_progress: ProgressFnT | None = None,
        replies: Mapping[str, Reply] | None = None,
        state: str | None = None,
        *,
        may_ask: bool = False,
    ) -> dict[str, Any]:
        """Send `tools/call` once and return the result as it came, unchecked.

        `replies` and `state` answer the questions that the call was answered with before. `may_ask` tells a server of
        2026-07-28 that there is a person for its questions; older ones are told when they are connected.

        Raises:
            MCPError: The server answered with an error, or the connection ended.
        """
        # Not through the session's models: they would check what is ours, and an answer that is judged elsewhere.
        params: dict[str, Any] = {"name": name, "arguments": arguments}
        if replies is not None:
            answers = {
                key: one.model_dump(by_alias=True, mode="json", exclude_none=True) for key, one in replies.items()
            }
            params["inputResponses"] = answers
        if state is not None:
            params["requestState"] = state
        options: CallOptions = {} if on_progress is None else {"on_progress": on_progress}
        # Revision, client, headers; there is no public way.
        self.session._stamp({"method": "tools/call", "params": params}, options)  # noqa: SLF001
        if not may_ask:
            _take_back_elicitation(params.get("_meta", {}))
        return await self._dispatcher.send_raw_request("tools/call", params, options)

    async def list_resources(self) -> list[t.Resource]:
        """Return the resources of the first pages, none where the server has none.

        Raises:
            MCPError: The server answered with an error, or the connection ended.
        """
        capabilities = self.session.server_capabilities
        if capabilities is None or capabilities.resources is None:
            return []
        found: list[t.Resource] = []
        cursor: str | None = None
        for _ in range(_RESOURCE_PAGES):
            page = await self.session.list_resources(params=t.PaginatedRequestParams(cursor=cursor))
            found += page.resources
            cursor = page.next_cursor
            if cursor is None:
                break
        return found

    async def read_resource(self, uri: str) -> list[str]:
        """Return the texts of a resource.

        Raises:
            MCPError: The server answered with an error, or the connection ended.
        """
        result = await self.session.read_resource(uri)
        return [one.text for one in result.contents if isinstance(one, t.TextResourceContents)]

    async def watch_tools(self) -> None:
        """Report changed listings on a connection of 2026-07-28 until it ends; older ones notify unasked."""
        if self.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return
        capabilities = self.session.server_capabilities
        if capabilities is None or capabilities.tools is None or not capabilities.tools.list_changed:
            return
        # A server that offers the notification and refuses the subscription is used without it.
        try:
            async with listen(self.session, tools_list_changed=True) as events:
                async for _ in events:
                    self.on_tools_changed()
        except (MCPError, RuntimeError, TimeoutError):
            return

    async def elicit(self, context: Any, params: t.ElicitRequestParams) -> t.ElicitResult | t.ErrorData:
        """Answer a server of an older revision that asks a person; the SDK declares that this may be done."""
        del context
        answer = await self._requested("elicitation/create", params)
        return answer if isinstance(answer, t.ElicitResult | t.ErrorData) else _REFUSED

    async def sample(self, context: Any, params: t.CreateMessageRequestParams) -> t.CreateMessageResult | t.ErrorData:
        """Answer a server of an older revision that asks a model."""
        del context
        answer = await self._requested("sampling/createMessage", params)
        return answer if isinstance(answer, t.CreateMessageResult | t.ErrorData) else _REFUSED

    async def _requested(self, method: str, params: t.RequestParams) -> Reply | t.ErrorData:
        if self.requests is None:
            return _REFUSED
        try:
            asked = params.model_dump(by_alias=True, mode="json", exclude_none=True)
            return await self.requests.pushed(method, asked)
        except RefusedError as error:
            return t.ErrorData(code=t.INVALID_REQUEST, message=f"Refused: {error}.")

    async def on_message(self, message: Any) -> None:
        """Take what the server sends unasked; all but changed listings is dropped."""
        if isinstance(message, t.ToolListChangedNotification):
            self.on_tools_changed()


def _take_back_elicitation(meta: dict[str, Any]) -> None:
    """Change what the connection says of itself for a call during which nobody can be asked."""
    capabilities = meta.get(t.CLIENT_CAPABILITIES_META_KEY)
    if isinstance(capabilities, dict):
        meta[t.CLIENT_CAPABILITIES_META_KEY] = {k: one for k, one in capabilities.items() if k != "elicitation"}


@asynccontextmanager
async def connect(
    target: ServerConfig | InProcessServer, mode: Mode, connection: Connection, process: Process | None = None
) -> AsyncIterator[None]:
    """Open and negotiate `connection`; everything behind it is gone when the block ends.

    `process` is the server where it has been started already.

    Raises:
        Exception: Whatever the transport meets, often in exception groups; `explain` puts it into words.
    """
    async with AsyncExitStack() as stack:
        dispatcher = await _open(stack, target, mode, connection, process)
        raw = RawDispatcher(dispatcher, lambda: session.protocol_version)
        requests = connection.requests
        session = ClientSession(
            dispatcher=raw,
            message_handler=connection.on_message,
            elicitation_callback=connection.elicit if requests is not None and requests.elicits else None,
            sampling_callback=connection.sample if requests is not None and requests.sampler is not None else None,
        )
        await stack.enter_async_context(session)
        await _negotiate(session, mode)
        connection._session, connection._wire = session, dispatcher  # noqa: SLF001  # set once, here
        yield


async def _negotiate(session: ClientSession, mode: Mode) -> None:
    """Settle the protocol revision. Anything but a clear modern answer leads to the older handshake."""
    if mode == "legacy":
        await session.initialize()
        return
    if mode != "auto":
        session.adopt(
            t.DiscoverResult(
                supported_versions=[LATEST_MODERN_VERSION],
                capabilities=t.ServerCapabilities(tools=t.ToolsCapability(list_changed=True)),
                result_type="complete",
                ttl_ms=0,
                cache_scope="public",
            )
        )
        return
    try:
        await session.discover()
    except MCPError:
        # No code is proof of a closed connection: servers use -32000 for errors of their own.
        await _handshake_after_probe(session)
    except (ValidationError, RuntimeError):
        await session.initialize()


async def _handshake_after_probe(session: ClientSession) -> None:
    try:
        await session.initialize()
    except MCPError as error:
        if error.code != t.UNSUPPORTED_PROTOCOL_VERSION:
            raise
        # A slow start: the probe was answered too late, and made the connection a modern one.
        await session.discover()


async def _open(
    stack: AsyncExitStack,
    target: ServerConfig | InProcessServer,
    mode: Mode,
    connection: Connection,
    process: Process | None,
) -> Dispatcher[Any]:
    if isinstance(target, (Server, MCPServer)):
        # The SDK's own client reaches in the same way; there is no public accessor.
        server = target._lowlevel_server if isinstance(target, MCPServer) else target  # noqa: SLF001
        if mode == "legacy":
            return JSONRPCDispatcher(*await stack.enter_async_context(_memory_streams(server)))
        return await _direct(stack, server)
    if target.command is not None:
        streams = await stack.enter_async_context(stdio_streams(target, connection.end, process))
    else:
        streams = await _http_streams(stack, target, connection)
    return JSONRPCDispatcher(*streams)


async def _authentication(config: ServerConfig, connection: Connection) -> httpx2.Auth | None:
    if config.oauth is None:
        return None
    from broker.oauth import authentication  # noqa: PLC0415  # few servers need it

    return await authentication(config, connection.on_secret)


async def _http_streams(stack: AsyncExitStack, config: ServerConfig, connection: Connection) -> TransportStreams:
    async def note_status(response: httpx2.Response) -> None:
        if response.status_code in _UNAUTHORIZED:
            connection.http_status = response.status_code

    client = httpx2.AsyncClient(
        headers=config.headers,
        auth=await _authentication(config, connection),
        # Reading has no limit of its own: every call has a deadline, and a subscription stays quiet for long.
        timeout=httpx2.Timeout(config.connect_timeout_seconds, read=None),
        event_hooks={"response": [note_status]},
    )
    await stack.enter_async_context(client)
    return await stack.enter_async_context(
        streamable_http_client(config.url or "", http_client=client, max_sse_event_size=LINE_BYTES)
    )


@asynccontextmanager
async def _memory_streams(server: Server[Any]) -> AsyncIterator[TransportStreams]:
    """Run a server of this process behind streams, as the older handshake needs them."""
    async with (
        create_client_server_memory_streams() as ((read, write), (server_read, server_write)),
        anyio.create_task_group() as tasks,
    ):

        async def serve() -> None:
            await server.run(server_read, server_write, server.create_initialization_options())

        tasks.start_soon(serve)
        yield read, write
        tasks.cancel_scope.cancel()


async def _direct(stack: AsyncExitStack, server: Server[Any]) -> Dispatcher[Any]:
    """Call a server of this process without any encoding."""
    state = await stack.enter_async_context(server.lifespan(server))
    ours, theirs = create_direct_dispatcher_pair(raise_handler_exceptions=False)
    tasks = await stack.enter_async_context(anyio.create_task_group())
    stack.callback(theirs.close)

    async def drop(*_: Any) -> None:
        """The revision has no notifications from client to server."""

    await tasks.start(theirs.run, modern_on_request(server, state), drop)
    return ours
