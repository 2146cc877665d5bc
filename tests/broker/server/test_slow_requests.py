"""Clients that take their time to send a request, over real sockets: they lose it, and nobody else loses anything."""

from __future__ import annotations

from urllib.parse import urlsplit

import anyio
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from uvicorn.protocols.http.h11_impl import H11Protocol

from tests.broker.server.principals import TOKENS, as_principal, opened

pytestmark = pytest.mark.anyio

SECONDS = 0.3
HEADERS = f"Host: 127.0.0.1\r\nAuthorization: Bearer {TOKENS['ada']}\r\nContent-Type: application/json\r\n"
POST = f"POST /mcp HTTP/1.1\r\n{HEADERS}"
HEALTH = "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
SLOW = {
    "headers": "POST /mcp HTTP/1.1\r\nX-Slow: ",
    "body": f"{POST}Content-Length: 100000\r\n\r\n",
    "body in chunks": f"{POST}Transfer-Encoding: chunked\r\n\r\n186A0\r\n",
    "request line": "",
}


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """Serving HTTP needs asyncio."""
    return request.param


@pytest.fixture
def url(served, listening):
    """A server that gives requests little time."""

    class Serving:
        async def __aenter__(self):
            self._served = served(tokens=TOKENS, request_seconds=SECONDS)
            self._listening = listening(await self._served.__aenter__())
            return await self._listening.__aenter__()

        async def __aexit__(self, *error):
            await self._listening.__aexit__(*error)
            await self._served.__aexit__(*error)

    return Serving


async def connect(url):
    parts = urlsplit(url)
    return await anyio.connect_tcp(parts.hostname, parts.port)


async def drip(url, beginning, byte=b" "):
    """Send the beginning of a request, then a byte at a time, and return all that is answered until the end."""
    answer = b""
    async with await connect(url) as stream:
        await stream.send(beginning.encode())
        try:
            while True:
                with anyio.move_on_after(SECONDS / 20):
                    answer += await stream.receive()
                if byte:
                    await stream.send(byte)
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return answer.decode()


def is_408(answer):
    head, _, text = answer.partition("\r\n\r\n")
    assert text == f"The request was not complete after {SECONDS} seconds.\n"
    return head.startswith("HTTP/1.1 408 Request Timeout\r\n") and "connection: close" in head.lower()


@pytest.mark.parametrize("slow", SLOW)
async def test_a_request_that_is_sent_a_byte_at_a_time_is_ended_with_408(url, slow):
    async with url() as address:
        assert is_408(await drip(address, SLOW[slow], b" " if slow != "request line" else b"P"))


@pytest.mark.parametrize("beginning", ["", "POST", SLOW["body"]])
async def test_a_client_that_sends_nothing_more_is_ended_with_408(url, beginning):
    async with url() as address:
        assert is_408(await drip(address, beginning, b""))


async def test_a_second_request_of_a_connection_has_its_own_time(url):
    async with url() as address:
        answer = await drip(address, HEALTH + SLOW["headers"])
        assert answer.startswith("HTTP/1.1 200 OK")
        assert is_408(answer[answer.index("HTTP/1.1 408") :])


async def test_a_body_that_nobody_waits_for_ends_the_connection(url):
    """The answer to a request without a token is there before its body is."""
    async with url() as address:
        answer = await drip(address, SLOW["body"].replace(TOKENS["ada"], "x" * 32))
        assert answer.startswith("HTTP/1.1 401")
        assert "408" not in answer


async def test_a_body_in_very_many_pieces_is_taken_in_little_by_little(url, monkeypatch):
    """Others have their turn between two takes of a connection; each piece is an event of h11, however short."""
    taken: list[int] = []
    take = H11Protocol.data_received

    def noted(connection, data):
        taken.append(len(data))
        take(connection, data)

    monkeypatch.setattr(H11Protocol, "data_received", noted)
    request = f"{POST}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + "1\r\n \r\n" * 20_000 + "0\r\n\r\n"
    async with url() as address, await connect(address) as stream:
        await stream.send(request.encode())
        assert (await stream.receive()).startswith(b"HTTP/1.1 4")
    assert max(taken) <= 8 * 1024


async def test_head_is_ended_without_a_body(url):
    async with url() as address:
        answer = await drip(address, SLOW["body"].replace("POST", "HEAD"))
        assert answer.startswith("HTTP/1.1 4")
        assert answer.endswith("\r\n\r\n")


async def test_streams_and_runs_that_last_longer_are_not_ended(url, started, calls):
    async with (
        url() as address,
        as_principal("ada") as ada,
        Client(streamable_http_client(address, http_client=ada), mode="2026-07-28") as hers,
        anyio.create_task_group() as tasks,
    ):
        await hers.call_tool("get_tool_details", {"tools": ["desk.wait"]})
        tasks.start_soon(hers.call_tool, "execute_code", {"code": "from tools import desk\nawait desk.wait()"})
        await started.wait()
        connection = {"mcp-session-id": await opened(ada, address)}
        async with ada.stream("GET", address, headers=connection, timeout=60) as stream:
            assert stream.status_code == 200
            ended = anyio.Event()

            async def read():
                async for _ in stream.aiter_bytes():
                    pass
                ended.set()

            async with anyio.create_task_group() as reading:
                reading.start_soon(read)
                for _ in range(2):
                    assert is_408(await drip(address, SLOW["headers"]))
                assert (await hers.call_tool("execute_code", {"code": "1"})).structured_content["value"] == 1
                assert not ended.is_set()
                reading.cancel_scope.cancel()
        assert calls == [("wait",)]
        tasks.cancel_scope.cancel()
