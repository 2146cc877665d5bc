"""Servers that the broker's tests connect to, in this process or programs with a fault, and what these tests share."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
import structlog
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from broker.redaction import Redactor
from broker.upstreams.server_config import ServerConfig
from broker.upstreams.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from broker.upstreams.listing import Listing

FAULTY = Path(__file__).parent / "servers" / "faulty.py"


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


@pytest.fixture(autouse=True)
def _log_of_a_program():
    """Have each test log as a program does that has not configured structlog, which `capture_logs` does for good."""
    yield
    structlog.reset_defaults()


@pytest.fixture
def deadline():
    """Ends a test that waits for what does not come, by the hook below."""


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Give a test with `deadline` a minute. A scope around the fixture's `yield` would end trio, and pytest hang."""
    if "deadline" in pyfuncitem.fixturenames:
        pyfuncitem.obj = _within_a_minute(pyfuncitem.obj)


def _within_a_minute(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    @wraps(test)
    async def run(**given: Any) -> None:
        with anyio.fail_after(60):
            await test(**given)

    return run


@pytest.fixture
def log(tmp_path):
    """What a server writes that it executed and heard."""
    path = tmp_path / "log"
    path.touch()
    return path


@pytest.fixture
def calls():
    """What reached the tools of this process, in order."""
    return []


@pytest.fixture
def desk_server(calls):
    server = MCPServer("desk")

    @server.tool()
    def add(a: int, b: int = 2) -> int:
        """Adds two numbers."""
        calls.append(("add", a, b))
        return a + b

    @server.tool()
    def fail(reason: str) -> str:
        """Fails."""
        calls.append(("fail", reason))
        raise ToolError(f"failed: {reason}")

    @server.tool()
    async def wait() -> str:
        """Waits for ever."""
        calls.append(("wait",))
        await anyio.sleep_forever()
        return ""

    return server


@pytest.fixture
def faulty() -> Callable[..., ServerConfig]:
    """Configure the faulty server with a behaviour."""

    def configure(behaviour: str, **settings) -> ServerConfig:
        defaults = {"mode": "legacy", "connect_timeout_seconds": 20, "call_timeout_seconds": 20}
        return ServerConfig(command=sys.executable, args=("-I", str(FAULTY), behaviour), **{**defaults, **settings})

    return configure


@pytest.fixture
def running():
    """Run an upstream for the time of a block, settled; its listings are added to those given."""

    @asynccontextmanager
    async def run(target, listings: list[Listing] | None = None) -> AsyncIterator[Upstream]:
        kept: list[Listing] = [] if listings is None else listings
        upstream = Upstream("faulty", target, lambda _, listing: kept.append(listing), redact=Redactor(()))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(upstream.run)
            with anyio.fail_after(30):
                await upstream.settled()
            yield upstream
            tasks.cancel_scope.cancel()

    return run
