"""A broker with one server of this process, and clients of both eras on its MCP server."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest
from mcp import Client
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from broker import Broker, Grant
from broker.server import BrokerServer, ServeSettings
from broker.server.http import Address, HttpServer, http_app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture(params=["auto", "legacy"])
def mode(request):
    """The newer era, then the one with a handshake."""
    return request.param


@pytest.fixture
def started():
    """Set when the tool `wait` is reached."""
    return anyio.Event()


@pytest.fixture
def desk_server(calls, started):
    server = MCPServer("desk")

    @server.tool()
    def add(a: int, b: int = 2) -> int:
        """Adds two numbers."""
        calls.append(("add", a, b))
        return a + b

    @server.tool()
    def fail(reason: str) -> str:
        """Fails."""
        raise ToolError(reason)

    @server.tool()
    async def wait() -> str:
        """Waits for ever."""
        calls.append(("wait",))
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            calls.append(("cancelled",))
        return ""

    return server


@pytest.fixture
def served(desk_server):
    """A `BrokerServer` that allows everything, for the time of a block."""

    @asynccontextmanager
    async def serve(**settings) -> AsyncIterator[BrokerServer]:
        with anyio.fail_after(60):
            async with Broker(servers={"desk": desk_server}) as broker:
                yield BrokerServer(
                    broker,
                    ServeSettings(**settings),
                    make_session=lambda _principal: broker.session(grants=[Grant("*")]),
                )

    return serve


@pytest.fixture
def connected(served, mode):
    """A client of the era `mode`, in memory."""

    @asynccontextmanager
    async def connect(*, client=None, **settings) -> AsyncIterator[Client]:
        async with served(**settings) as server, Client(server.mcp, mode=mode, **(client or {})) as one:
            yield one

    return connect


@pytest.fixture
def listening():
    """A server on a free port of this machine, for the time of a block; yields the URL. Needs asyncio."""

    @asynccontextmanager
    async def listen(server: BrokerServer) -> AsyncIterator[str]:
        address = Address("127.0.0.1", 0)
        http = HttpServer(http_app(server, address), server.settings)
        with address.listen() as sock:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(http.serve, [sock])
                while not http.started:
                    await anyio.lowlevel.checkpoint()
                yield f"http://127.0.0.1:{sock.getsockname()[1]}/mcp"
                http.end()

    return listen
