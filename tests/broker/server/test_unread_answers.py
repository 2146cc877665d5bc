"""Clients that do not read what they asked for, over real sockets: they lose it, and whoever reads at all does not."""

from __future__ import annotations

import contextlib
import socket

import anyio
import anyio.lowlevel
import pytest
from starlette.applications import Starlette
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from broker.server import ServeSettings
from broker.server.http import Address, HttpServer

pytestmark = pytest.mark.anyio

SECONDS = 1.0
CHUNK, CHUNKS = b"x" * 65_536, 512
LENGTH = len(CHUNK) * CHUNKS


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """Serving HTTP needs asyncio."""
    return request.param


class Served:
    """A server with answers of all kinds, of which clients may leave nothing lying for long."""

    def __init__(self) -> None:
        self.ended = anyio.Event()
        self.go_on = anyio.Event()
        self.http: HttpServer | None = None

    async def stream(self, _request):
        """Sends for ever, as far as somebody reads."""

        async def parts():
            try:
                while True:
                    yield CHUNK
                    await anyio.lowlevel.checkpoint()
            finally:
                self.ended.set()

        return StreamingResponse(parts())

    async def whole(self, _request):
        return Response(CHUNK * CHUNKS)

    async def quiet(self, _request):
        """Says something, nothing for long, and something more."""

        async def parts():
            yield b"first\n"
            await self.go_on.wait()
            yield b"last\n"

        return StreamingResponse(parts())

    @contextlib.asynccontextmanager
    async def connected(self, path):
        routes = [Route(f"/{one.__name__}", one) for one in (self.stream, self.whole, self.quiet)]
        self.http = HttpServer(Starlette(routes=routes), ServeSettings(answer_seconds=SECONDS))
        with anyio.fail_after(60), Address("127.0.0.1", 0).listen() as listening:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self.http.serve, [listening])
                while not self.http.started:
                    await anyio.lowlevel.checkpoint()
                async with await anyio.connect_tcp(*listening.getsockname()) as client:
                    await client.send(f"GET /{path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
                    yield client
                self.http.end()


@pytest.fixture
def served():
    return Served()


async def received(client, length, pause=0.0):
    found = b""
    while len(found) < length:
        found += await client.receive()
        await anyio.sleep(pause)
    return found


async def test_a_stream_of_which_nobody_reads_is_ended(served):
    async with served.connected("stream"):
        await served.ended.wait()


async def test_an_answer_that_nobody_reads_holds_no_connection(served):
    """The application has given all of it away: nothing but the transport still waits for the client."""
    async with served.connected("whole") as client:
        await received(client, 1)
        while served.http.server_state.connections:
            await anyio.lowlevel.checkpoint()


async def test_an_answer_that_is_read_slowly_and_steadily_arrives_whole(served):
    async with served.connected("whole") as client:
        with anyio.move_on_after(4 * SECONDS):
            beginning = b""
            while True:
                beginning += await client.receive(65_536)
                await anyio.sleep(SECONDS / 20)
        assert len(beginning) < LENGTH
        rest = await received(client, LENGTH - len(beginning))
        assert (beginning + rest).endswith(CHUNK * 2)


async def test_a_stream_that_has_nothing_to_say_goes_on(served):
    async with served.connected("quiet") as client:
        while b"first" not in await client.receive():
            pass
        with anyio.move_on_after(3 * SECONDS):
            assert await client.receive() == b"nothing comes meanwhile"
        served.go_on.set()
        assert b"last" in await client.receive()


def test_the_end_of_an_answer_does_not_wait_until_its_beginning_is_confirmed():
    with Address("127.0.0.1", 0).listen() as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
