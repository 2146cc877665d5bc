"""An ASGI application at an address of this machine, for the time of a block. Needs asyncio, as uvicorn does."""

from __future__ import annotations

import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import uvicorn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import ASGIApp


def bound_socket(port: int = 0) -> socket.socket:
    """Take a port, any free one for 0."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", port))
    return sock


def url_of(sock: socket.socket) -> str:
    return f"http://127.0.0.1:{sock.getsockname()[1]}"


@asynccontextmanager
async def serving(app: ASGIApp, sock: socket.socket, **settings: Any) -> AsyncIterator[None]:
    """Serve on a bound socket, and close it afterwards."""
    http = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1, **settings))
    with sock:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(http.serve, [sock])
            while not http.started:
                await anyio.lowlevel.checkpoint()
            yield
            http.should_exit = True
