"""Opens a connection to a server: a transport, then the protocol's revision.

Above: upstream.py. Below: the SDK's session over our own transport for child processes, and the SDK's for HTTP and for
servers in this process.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import anyio.abc
import httpx2
import mcp.types as t
from mcp import ClientSession, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.server import MCPServer, Server
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.memory import create_client_server_memory_streams
from mcp.types.version import LATEST_MODERN_VERSION
from pydantic import ValidationError

from broker.callbacks import failing_alone
from broker.logging import logger
from broker.upstreams.child_calls import ChildDispatcher
from broker.upstreams.http_client import HttpClient
from broker.upstreams.http_messages import watched
from broker.upstreams.http_trail import HttpTrail
from broker.upstreams.in_process import InProcessDispatcher
from broker.upstreams.message_bounds import LINE_BYTES
from broker.upstreams.plain_tools import PlainToolsDispatcher
from broker.upstreams.probing import ProbingDispatcher
from broker.upstreams.stdio import stdio_streams

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp.client._transport import TransportStreams
    from mcp.shared.dispatcher import Dispatcher

    from broker.upstreams.connection import Connection
    from broker.upstreams.server_config import Mode, ServerConfig
    from broker.upstreams.server_process import ServerProcess

InProcessServer: TypeAlias = "Server[Any] | MCPServer"

_IDLE_CONNECTIONS = 20

_LIFESPAN_END_SECONDS = 30.0
"""How long the end of a lifespan may take: it may have much to close."""

_GOODBYE_SECONDS = 2.0
"""How long the end of a connection waits for a server behind HTTP to take note of it."""


@asynccontextmanager
async def connect(
    target: ServerConfig | InProcessServer, mode: Mode, connection: Connection, process: ServerProcess | None = None
) -> AsyncIterator[None]:
    """Open and negotiate `connection`; everything behind it is gone when the block ends.

    `process` is the server where it has been started already.

    Raises:
        Exception: Whatever the transport meets, often in exception groups; `explain` puts it into words.
    """
    async with AsyncExitStack() as stack:
        dispatcher = await _open(stack, target, mode, connection, process)
        wire = ProbingDispatcher(dispatcher, _not_offered(connection))
        requests = connection.requests
        session = ClientSession(
            dispatcher=wire,
            message_handler=connection.on_message,
            client_info=_client_info(),
            elicitation_callback=connection.elicit if requests.elicits else None,
            sampling_callback=connection.sample if requests.sampler is not None else None,
        )
        await stack.enter_async_context(session)
        await _negotiate(session, mode)
        connection.states_capabilities = mode in ("auto", "legacy")
        connection.begin(session, wire)
        yield


def _not_offered(connection: Connection) -> frozenset[str]:
    """Return the requests of a server that nobody here answers."""
    requests = connection.requests
    sampling = () if requests.sampler is not None else ("sampling/createMessage",)
    elicitation = () if requests.elicits else ("elicitation/create",)
    return frozenset({"roots/list", *sampling, *elicitation})


@cache
def _client_info() -> t.Implementation:
    """Return what servers are told of us."""
    return t.Implementation(name="codemode-broker", title="codemode", version=version("codemode-broker"))


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
    process: ServerProcess | None,
) -> Dispatcher[Any]:
    if isinstance(target, (Server, MCPServer)):
        # The SDK's own client reaches in the same way; there is no public accessor.
        server = target._lowlevel_server if isinstance(target, MCPServer) else target  # noqa: SLF001
        if mode == "legacy":
            return JSONRPCDispatcher(*await stack.enter_async_context(_memory_streams(server)))
        state = await stack.enter_async_context(_lifespan(server))
        return (
            PlainToolsDispatcher(target, state) if isinstance(target, MCPServer) else InProcessDispatcher(server, state)
        )
    if target.command is not None:
        streams = stdio_streams(
            target,
            connection.end,
            process,
            on_stop=connection.stopped,
            on_stray=connection.on_stray,
            redact=connection.redact,
        )
        return ChildDispatcher(*await stack.enter_async_context(streams))
    return JSONRPCDispatcher(*watched(await _http_streams(stack, target, connection), connection.trail, connection.end))


@asynccontextmanager
async def _lifespan(server: Server[Any]) -> AsyncIterator[Any]:
    """Hold a server's lifespan; it is told that the block has ended, also where that was cancelled."""
    over = anyio.Event()
    async with anyio.create_task_group() as tasks:
        state = await tasks.start(_hold_lifespan, server, over)
        try:
            yield state
        finally:
            over.set()


async def _hold_lifespan(server: Server[Any], over: anyio.Event, *, task_status: anyio.abc.TaskStatus[Any]) -> None:
    """Be in a lifespan until it is over, in a task of its own: cancelled, it could not close what it has opened."""
    with anyio.CancelScope() as scope, failing_alone():
        async with server.lifespan(server) as state:
            scope.shield = True
            task_status.started(state)
            await over.wait()
            scope.deadline = anyio.current_time() + _LIFESPAN_END_SECONDS
    if scope.cancelled_caught:
        logger().warning("a lifespan was cut off at its end", server=server.name)


async def _http_streams(stack: AsyncExitStack, config: ServerConfig, connection: Connection) -> TransportStreams:
    connection.trail = HttpTrail(config.url or "")
    goodbye = stack.enter_context(anyio.CancelScope())
    us = _client_info()
    headers = httpx2.Headers({"User-Agent": f"{us.name}/{us.version}"})
    headers.update(config.headers)  # the operator's, in whatever case
    client = HttpClient(
        connection.trail,
        headers=headers,
        # Reading has no limit of its own: every call has a deadline, and a subscription stays quiet for long.
        timeout=httpx2.Timeout(config.connect_timeout_seconds, read=None),
        # Their number has none either: the calls of all runs may be on their way at once, and the answers to what the
        # server asks during them.
        limits=httpx2.Limits(max_keepalive_connections=_IDLE_CONNECTIONS),
    )
    if config.oauth is not None:
        from broker.upstreams.oauth import authentication  # noqa: PLC0415  # few servers need it

        client.auth = await authentication(config, client.exchange, connection.on_secret)
    await stack.enter_async_context(client)
    streams = await stack.enter_async_context(
        streamable_http_client(config.url or "", http_client=client, max_sse_event_size=LINE_BYTES)
    )
    stack.callback(_end_soon, goodbye)
    return streams


def _end_soon(scope: anyio.CancelScope) -> None:
    scope.deadline = anyio.current_time() + _GOODBYE_SECONDS


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
