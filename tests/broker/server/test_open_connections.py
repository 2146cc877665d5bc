"""The bound on open HTTP connections, over real sockets: at it all are served, and beyond it the newest are told so."""

from __future__ import annotations

from contextlib import AsyncExitStack
from urllib.parse import urlsplit

import anyio
import anyio.lowlevel
import pytest

from broker.server import http

pytestmark = pytest.mark.anyio

LIMIT = 3
HEALTH = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """Serving HTTP needs asyncio."""
    return request.param


async def connected(opened, url):
    parts = urlsplit(url)
    return await opened.enter_async_context(await anyio.connect_tcp(parts.hostname, parts.port))


async def status(stream):
    await stream.send(HEALTH)
    return int((await stream.receive()).split()[1])


async def test_connections_are_served_up_to_the_bound_and_again_when_one_has_closed(served, listening, monkeypatch):
    monkeypatch.setattr(http, "CONNECTIONS", LIMIT)
    async with served() as server, listening(server) as url, AsyncExitStack() as opened:
        held = [await connected(opened, url) for _ in range(LIMIT)]
        assert [await status(one) for one in held] == [200] * LIMIT
        async with AsyncExitStack() as beyond:
            assert await status(await connected(beyond, url)) == 503
        await held.pop().aclose()
        while await status(again := await connected(opened, url)) == 503:  # until the server has seen that one closed
            await again.aclose()
            await anyio.lowlevel.checkpoint()
        assert [await status(one) for one in (*held, again)] == [200] * LIMIT
