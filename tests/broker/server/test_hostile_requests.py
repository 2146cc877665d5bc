"""Requests that no client sends, on real sockets: each is refused, or means nothing more than it says."""

from __future__ import annotations

import gzip
import json
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import anyio
import mcp.types as t
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from tests.broker.server.principals import INITIALIZE, PING, TOKENS, as_principal, opened

pytestmark = pytest.mark.anyio

BODY = json.dumps(INITIALIZE).encode()
ADA, BOB = (f"Bearer {TOKENS[name]}".encode() for name in ("ada", "bob"))
CHUNKED = b"Transfer-Encoding: chunked"
TOO_LONG = b"10000\r\n" + b" " * 0x10000 + b"\r\n"


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """Serving HTTP needs asyncio."""
    return request.param


@pytest.fixture
def shared(served, listening):
    @asynccontextmanager
    async def share():
        async with served(tokens=TOKENS) as server, listening(server) as url:
            yield url

    return share


def request(
    *more: bytes, body: bytes = BODY, token: bytes = ADA, host: bytes = b"127.0.0.1:80", method: bytes = b"POST"
):
    """Return a request; its length is given unless other headers say how long it is."""
    says_length = any(header.lower().startswith((b"content-length", b"transfer-encoding")) for header in more)
    headers = [
        method + b" /mcp HTTP/1.1",
        b"Host: " + host,
        b"Content-Type: application/json",
        b"Accept: application/json, text/event-stream",
        b"Authorization: " + token,
        *([] if says_length else [b"Content-Length: %d" % len(body)]),
        *more,
        b"Connection: close",
    ]
    return b"\r\n".join(headers) + b"\r\n\r\n" + body


def with_name(name: object) -> bytes:
    """Return a handshake that is right but for the client's name; a connection keeps that."""
    return BODY.replace(b'"test"', json.dumps(name).encode())


REFUSED = {
    "a header of a megabyte": (request(b"X-A: " + b"a" * 1_000_000), 400),
    "very many headers": (request(*(b"X-%d: a" % number for number in range(20_000))), 400),
    "two hosts": (request(b"Host: 127.0.0.1:80"), 400),
    "a foreign host": (request(host=b"evil.example"), 421),
    "a foreign origin that begins like ours": (request(b"Origin: http://localhost.evil.example:80"), 403),
    "a foreign host behind the colon": (request(host=b"127.0.0.1:80.evil.example"), 421),
    "a foreign host behind a name and a port": (request(host=b"localhost:80@evil.example"), 421),
    "a foreign origin behind the colon": (request(b"Origin: http://localhost:80.evil.example"), 403),
    "a foreign origin behind a name and a port": (request(b"Origin: http://localhost:80@evil.example"), 403),
    "two origins, the second of them foreign": (
        request(b"Origin: http://localhost:80", b"Origin: http://evil.example"),
        403,
    ),
    "an origin of nobody": (request(b"Origin: null"), 403),
    "two tokens, the first of them wrong": (request(b"Authorization: " + ADA, token=b"Bearer wrong"), 401),
    "a token of bytes that are no text": (request(token=b"Bearer \xff\xfe"), 401),
    "two lengths": (request(b"Content-Length: 5", b"Content-Length: 500"), 400),
    "a length below nothing": (request(b"Content-Length: -1"), 400),
    "a length in other digits": (request("Content-Length: \u0661\u0662".encode()), 400),
    "a length shorter than the body": (request(b"Content-Length: 10"), 400),
    "a length over the bound": (request(b"Content-Length: 99999999"), 413),
    "a body over the bound, in pieces": (request(CHUNKED, body=TOO_LONG * 100), 413),
    "a piece with a name of 200 kB": (request(CHUNKED, body=b"1;" + b"a" * 200_000 + b"\r\n \r\n0\r\n\r\n"), 400),
    "a client that says much of itself": (request(body=with_name("a" * 64 * 1024)), 413),
    "a client that says many things of itself": (request(body=with_name([0] * 1_000)), 413),
    "a compressed body": (request(b"Content-Encoding: gzip", body=gzip.compress(BODY)), 400),
    "a compressed transfer": (request(b"Transfer-Encoding: gzip, chunked"), 400),
    "nesting": (request(body=b"[" * 1_000), 400),
    "a number of 50,000 digits": (
        request(body=b'{"jsonrpc":"2.0","method":"ping","id":' + b"9" * 50_000 + b"}"),
        400,
    ),
    "a revision that there is not": (request(b"Mcp-Protocol-Version: 2027-01-01"), 400),
    "two revisions in one": (request(b"Mcp-Protocol-Version: 2025-11-25, 2026-07-28"), 400),
    "no HTTP": (b"\x16\x03\x01" * 100, 400),
}


TAKEN = {
    "a long name": request(body=with_name("a" * 60_000)),
    "a text of many commas": request(body=BODY[:-1] + b',"text":"' + b"," * 30_000 + b'"}'),
    "an address of six": request(host=b"[::1]:80"),
    "a name without a port": request(host=b"localhost"),
    "an origin of this machine": request(b"Origin: http://localhost:5173"),
    "an origin of this machine with six": request(b"Origin: http://[::1]:5173"),
}


async def test_what_comes_from_this_machine_is_taken(shared):
    async with shared() as url:
        for case, sent in TAKEN.items():
            assert (case, await status_of(url, sent)) == (case, 200)


async def test_what_no_client_sends_is_refused_and_the_server_goes_on(shared):
    async with shared() as url:
        for case, (sent, status) in REFUSED.items():
            assert (case, await status_of(url, sent)) == (case, status)
            assert (case, await status_of(url, request())) == (case, 200)


async def test_what_follows_a_request_of_two_lengths_is_not_read(shared):
    """A proxy that goes by the other length takes it for a request of somebody else."""
    first = request(CHUNKED, b"Content-Length: 5", body=b"0\r\n\r\n").replace(b"Connection: close\r\n", b"")
    async with shared() as url:
        answers = await answers_to(url, first + request())
    assert [answer.split(b" ", 1)[0] for answer in answers] == [b"400"]


async def status_of(url: str, sent: bytes) -> int:
    return int((await answers_to(url, sent))[0].split(b" ", 1)[0])


async def answers_to(url: str, sent: bytes) -> list[bytes]:
    place = urlsplit(url)
    received = b""
    over = (anyio.EndOfStream, anyio.BrokenResourceError)
    async with await anyio.connect_tcp(place.hostname or "", place.port or 0) as stream:
        with suppress(*over):  # it may be answered before it is at its end
            await stream.send(sent)
        with suppress(*over):
            while True:
                received += await stream.receive()
    return received.split(b"HTTP/1.1 ")[1:]


async def test_a_request_has_very_many_commas_and_not_very_many_values(shared):
    async with shared() as url, as_principal("ada") as ada:
        headers = {"mcp-session-id": await opened(ada, url), "content-type": "application/json"}
        for value, status in (("," * 300_000, 200), ([[]] * 300_000, 413)):
            body = json.dumps(PING | {"params": {"_meta": {"value": value}}})
            assert (await ada.post(url, headers=headers, content=body)).status_code == status


async def test_a_connection_is_of_its_principal_alone(shared):
    async with shared() as url, as_principal("ada") as ada, as_principal("bob") as bob:
        theirs = {"mcp-session-id": await opened(ada, url)}
        for method in ("POST", "GET", "DELETE"):
            refused = await bob.request(method, url, headers=theirs, json=PING if method == "POST" else None)
            assert (method, refused.status_code) == (method, 404)
        assert (await ada.post(url, headers=theirs, json=PING)).status_code == 200


async def test_a_stream_that_is_to_go_on_after_an_event_begins_anew_for_its_principal_alone(shared):
    async with shared() as url, as_principal("ada") as ada, as_principal("bob") as bob:
        after = {"mcp-session-id": await opened(ada, url), "last-event-id": "1"}
        assert (await bob.get(url, headers=after)).status_code == 404
        async with ada.stream("GET", url, headers=after) as stream:
            assert (stream.status_code, stream.headers["content-type"]) == (200, "text/event-stream")


OFFSETS = {
    "-1": "offset is a number",
    "\u0663": "offset is a number",
    "1e3": "offset is a number",
    "9" * 13: "offset is a number",
    "9" * 1_000: "There is no resource",
    "": None,
    "24000": None,
    "999999999999": "[the output ends after 7000",
}


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_kept_output_is_of_its_principal_alone_and_pages_are_numbers(shared, mode):
    async with (
        shared() as url,
        as_principal("ada") as ada,
        as_principal("bob") as bob,
        Client(streamable_http_client(url, http_client=ada), mode=mode) as hers,
        Client(streamable_http_client(url, http_client=bob), mode=mode) as his,
    ):
        ran = await hers.call_tool("execute_code", {"code": "print('secret ' * 10_000)"})
        uri = ran.structured_content["truncated"]["resource"]
        assert "secret" in await text_of(hers, uri)
        for other in (uri, uri.replace("runs/", "runs/../runs/"), uri.replace("///", "//ada/")):
            assert (await text_of(his, other)).startswith("There is no resource")
        for offset, said in OFFSETS.items():
            text = await text_of(hers, uri.replace("offset=0", f"offset={offset}"))
            assert (offset[:20], text.startswith(said) if said else "secret" in text) == (
                offset[:20],
                True,
            )


async def text_of(client, uri) -> str:
    try:
        [content] = (await client.read_resource(uri)).contents
    except MCPError as error:
        return str(error)
    assert isinstance(content, t.TextResourceContents)
    return content.text
