"""Servers behind HTTP that answer with too much, with what is no answer, or for ever; each beside one that does not."""

from __future__ import annotations

import gzip
import json
from contextlib import asynccontextmanager, nullcontext

import anyio
import anyio.lowlevel
import httpx2
import pytest

from broker import ServerConfig
from broker.errors import CallTimeoutError, OutcomeUnknownError, ToolRejectedError, UnavailableError
from broker.texts.call_texts import lost_answer, unavailable
from broker.upstreams.http_answers import BROKEN_OFF, COMPRESSED, STREAM_SECONDS, UNREACHED, BoundedBody, UnreadError
from broker.upstreams.http_client import HttpClient
from broker.upstreams.http_trail import HttpTrail, SentCall
from broker.upstreams.message_bounds import FLOODED, LINE_BYTES, MANY_VALUES, OVER_BOUND, VALUES
from broker.upstreams.oauth_settings import OAuthClient
from tests.processes import resident_bytes

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("deadline")]

HONEST = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "web", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "do", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "done"}]},
}
GONE = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """The SDK's HTTP client leaves generators behind on trio."""
    return request.param


def http(status="200 OK", kind="application/json", body=b"", *more):
    """An answer, byte for byte."""
    fields = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *more, "", ""]
    return "\r\n".join(fields).encode() + body


def reply(number, result):
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()


class RawServer:
    """An MCP server of 2025-11-25 over HTTP that answers some methods, or `GET`, as it is told.

    `asked` has the methods of its requests, `left` is set when a client has turned away from an answer. Cancelling
    `open` ends it, with all its connections; then `closed` is set.
    """

    def __init__(self, **answers):
        self.answers = {name.replace("_", "/"): answer for name, answer in answers.items()}
        self.asked = []
        self.left, self.closed = anyio.Event(), anyio.Event()
        self.open = anyio.CancelScope()

    async def listen(self, listener):
        with self.open:
            await listener.serve(self.serve)
        await listener.aclose()
        self.closed.set()

    async def serve(self, stream):
        async with stream:
            unread = b""
            try:
                while True:
                    while b"\r\n\r\n" not in unread:
                        unread += await stream.receive()
                    head, _, unread = unread.partition(b"\r\n\r\n")
                    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
                    while len(unread) < int(fields.get(b"content-length", 0)):
                        unread += await stream.receive()
                    size = int(fields.get(b"content-length", 0))
                    body, unread = unread[:size], unread[size:]
                    await self.answer(stream, head.split(b" ", 1)[0].decode(), body)
            except GONE:
                self.left.set()

    async def answer(self, stream, verb, body):
        message = json.loads(body) if body else {}
        method = message.get("method", verb)
        self.asked.append(method)
        answer = self.answers.get(method)
        if callable(answer):
            await answer(stream, message.get("id"))
        elif answer is not None:
            await stream.send(answer)
        elif method in HONEST:
            more = ["Mcp-Session-Id: s"] if method == "initialize" else []
            await stream.send(http("200 OK", "application/json", reply(message["id"], HONEST[method]), *more))
        else:
            await stream.send(http("405 No" if verb == "GET" else "202 Accepted"))


@asynccontextmanager
async def connected(running, server, **settings):
    """The server's address in the hands of an upstream."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610  # no Django here
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(server.listen, listener)
        config = ServerConfig(url=f"http://127.0.0.1:{port}/mcp", **({"mode": "legacy"} | settings))
        async with running(config) as upstream:
            yield upstream
        tasks.cancel_scope.cancel()


NOT_JSON_RPC = "it sent a message that is not JSON-RPC"
NO_ANSWERS = {
    "cut off": (http(body=b'{"jsonrpc": "2.0", "id": 3, "result": {"content": ['), NOT_JSON_RPC),
    "a page": (http(kind="text/html", body=b"<html>"), NOT_JSON_RPC),
    "a broken event": (http(kind="text/event-stream", body=b"data: {\n\n"), NOT_JSON_RPC),
    "no event": (http(kind="text/event-stream", body=b": wait\n\n"), "it sent no answer"),
    "accepted": (http("202 Accepted"), "it answered HTTP 202"),
    "a failure behind a gateway": (http("502 Bad Gateway", "text/html", b"<html>"), "it answered HTTP 502"),
    "a failure in other words": (http("500 No", body=b'{"error": "out of memory"}'), "it answered HTTP 500"),
    "an address elsewhere": (http("307 No", "text/html", b"", "Location: http://127.0.0.1:1/"), "it answered HTTP 307"),
}


@pytest.mark.parametrize("case", NO_ANSWERS)
async def test_an_answer_that_is_none_leaves_open_what_the_call_has_done(running, case):
    answer, reason = NO_ANSWERS[case]
    server = RawServer(tools_call=answer)
    async with connected(running, server) as upstream:
        with pytest.raises(OutcomeUnknownError) as lost:
            await upstream.call_tool("do", {})
        assert upstream.status.state == "ready"
    assert str(lost.value) == lost_answer("faulty", reason)
    assert server.asked.count("tools/call") == 1


NO_BEGINNINGS = NO_ANSWERS | {
    "not found": (http("404 Not Found", "text/html", b"<html>"), "it answered HTTP 404"),
    "not now": (http("503 No", "text/plain", b"", "Retry-After: 5"), "it answered HTTP 503"),
}


@pytest.mark.parametrize(
    ("method", "case"), [("initialize", case) for case in NO_BEGINNINGS] + [("tools_list", case) for case in NO_ANSWERS]
)
async def test_a_server_that_does_not_begin_is_down_for_what_it_answered(running, method, case):
    answer, reason = NO_BEGINNINGS[case]
    async with connected(running, RawServer(**{method: answer})) as upstream:
        assert (upstream.status.problem, upstream.status.what_to_do) == (
            reason,
            "Correct 'url', or see what the server's log says.",
        )


@pytest.mark.parametrize("status", ["200 OK", "400 No", "404 No", "500 No"])
@pytest.mark.parametrize("text", ["No such thing", "Server returned an error response"])
async def test_an_error_of_the_server_is_told_in_its_words(running, status, text):
    async def refuse(stream, number):
        error = {"jsonrpc": "2.0", "id": number, "error": {"code": -32602, "message": text}}
        await stream.send(http(status, body=json.dumps(error).encode()))

    async with connected(running, RawServer(tools_call=refuse)) as upstream:
        with pytest.raises(ToolRejectedError, match="JSON-RPC error -32602") as refused:
            await upstream.call_tool("do", {})
    assert refused.value.server_text == text


BROKEN = {
    "before its answer": b"",
    "within its answer": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
}


@pytest.mark.parametrize("case", BROKEN)
async def test_a_call_that_breaks_off_takes_no_other_along(running, case):
    is_broken, results = anyio.Event(), []

    async def answer(stream, number):
        if server.asked.count("tools/call") == 1:
            await is_broken.wait()
            await stream.send(http(body=reply(number, HONEST["tools/call"])))
        else:
            await stream.send(BROKEN[case])
            await stream.aclose()

    async def call():
        results.append(await upstream.call_tool("do", {}))

    server = RawServer(tools_call=answer)
    async with connected(running, server) as upstream, anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        while "tools/call" not in server.asked:
            await anyio.lowlevel.checkpoint()
        with pytest.raises(OutcomeUnknownError) as lost:
            await upstream.call_tool("do", {})
        is_broken.set()
    assert str(lost.value) == lost_answer("faulty", BROKEN_OFF)
    assert results == [HONEST["tools/call"]]


async def test_a_call_to_a_server_that_is_gone_was_not_sent(running):
    server = RawServer()
    async with connected(running, server) as upstream:
        server.open.cancel()
        await server.closed.wait()
        with pytest.raises(UnavailableError) as failed:
            await upstream.call_tool("do", {})
        assert str(failed.value) == unavailable("faulty", UNREACHED)


@pytest.mark.parametrize("code", [-32600, -32001])
async def test_after_a_session_that_is_over_there_is_a_new_one(running, code):
    async def refuse(stream, number):
        if server.asked.count("initialize") == 1:
            error = {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": "Session not found"}}
            await stream.send(http("404 Not Found", body=json.dumps(error).encode()))
        else:
            await stream.send(http(body=reply(number, HONEST["tools/call"])))

    server = RawServer(tools_call=refuse)
    async with connected(running, server) as upstream:
        with pytest.raises(ToolRejectedError, match=f"JSON-RPC error {code}") as refused:
            await upstream.call_tool("do", {})
        assert refused.value.server_text == "Session not found"
        assert (await upstream.call_tool("do", {})) == HONEST["tools/call"]
    assert server.asked.count("initialize") == 2


def text_of(size):
    return {"content": [{"type": "text", "text": "x" * size}]}


async def test_an_answer_is_read_up_to_the_bound_and_no_further(running):
    sizes = iter((LINE_BYTES - 1_000, LINE_BYTES))

    async def answer(stream, number):
        await stream.send(http(body=reply(number, text_of(next(sizes)))))

    async with connected(running, RawServer(tools_call=answer)) as upstream:
        assert (await upstream.call_tool("do", {})) == text_of(LINE_BYTES - 1_000)
        with pytest.raises(OutcomeUnknownError, match=f"lost: {OVER_BOUND}"):
            await upstream.call_tool("do", {})


async def pour(stream, _number):
    await stream.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        await stream.send(b"10000\r\n" + b" " * 0x10000 + b"\r\n")


INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"


async def hint(stream, _number):
    while True:
        await stream.send(INTERIM * 1_000)


async def test_answers_before_the_answer_are_taken_while_they_are_few(running):
    server = RawServer(tools_call=hint)
    async with connected(running, server) as upstream:
        with pytest.raises(OutcomeUnknownError, match=BROKEN_OFF):
            await upstream.call_tool("do", {})
        await server.left.wait()

        async def few(stream, number):
            await stream.send(INTERIM * 3 + http(body=reply(number, HONEST["tools/call"])))

        server.answers["tools/call"] = few
        assert (await upstream.call_tool("do", {})) == HONEST["tools/call"]


async def test_an_answer_without_end_is_left(running):
    server = RawServer(tools_call=pour)
    async with connected(running, server) as upstream:
        with pytest.raises(OutcomeUnknownError, match=OVER_BOUND):
            await upstream.call_tool("do", {})
        await server.left.wait()


def event(body):
    """The same message as an event, in lines that end in every way, after an event and a line with half a string."""
    return b'event: other\ndata: "\n\nevent: message\r\nid: "\r' + b"data: " + body + b"\n\r\n"


@pytest.mark.parametrize(("kind", "written"), [("application/json", bytes), ("text/event-stream", event)])
async def test_an_answer_of_very_many_values_is_not_decoded(running, kind, written):
    many = {"content": [], "structuredContent": {"x": [[]] * VALUES}}
    few = text_of(0) | {"structuredContent": {"x": "[,{" * VALUES}}
    results = iter((few, many, few))

    async def answer(stream, number):
        await stream.send(http("200 OK", kind, written(reply(number, next(results)))))

    async with connected(running, RawServer(tools_call=answer)) as upstream:
        assert (await upstream.call_tool("do", {})) == few
        before = resident_bytes()
        with pytest.raises(OutcomeUnknownError, match=f"lost: {MANY_VALUES}"):
            await upstream.call_tool("do", {})
        assert resident_bytes() - before < 64 * 1024 * 1024
        assert (await upstream.call_tool("do", {})) == few


@pytest.mark.parametrize("charset", ["utf-16", "punycode", "bz2", "none"])
async def test_events_are_read_as_utf_8_whatever_the_server_says(running, charset):
    result = {"content": [{"type": "text", "text": "h\u00e9"}]}

    async def answer(stream, number):
        body = json.dumps({"jsonrpc": "2.0", "id": number, "result": result}, ensure_ascii=False).encode()
        await stream.send(http("200 OK", f"text/event-stream; charset={charset}", event(body)))

    async with connected(running, RawServer(tools_call=answer)) as upstream:
        assert (await upstream.call_tool("do", {})) == result


class Pieces(httpx2.AsyncByteStream):
    """A body of which everything is there."""

    def __init__(self, pieces):
        self._pieces = pieces

    async def __aiter__(self):
        for piece in self._pieces:
            yield piece


AT_ONCE = {"pieces": [b":"] * 100, "events": [b"data\n\n" * 10_000], "lines": [b":\r" * 30_000]}


@pytest.mark.parametrize("many", AT_ONCE)
async def test_others_have_their_turn_while_an_answer_is_read(many):
    turns: list[None] = []
    why: list[str] = []

    async def take_turns():
        while True:
            turns.append(None)
            await anyio.lowlevel.checkpoint()

    answer = httpx2.Response(200, headers={"Content-Type": "text/event-stream"}, stream=Pieces(AT_ONCE[many]))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take_turns)
        read = [(len(turns), part) async for part in BoundedBody(answer, nullcontext, why.append)]
        tasks.cancel_scope.cancel()
    assert b"".join(part for _, part in read) == b"".join(AT_ONCE[many])
    assert max(len(part) for _, part in read) <= 4_096
    assert (len({turn for turn, _ in read}), why) == (len(read), [])


async def test_a_compressed_answer_is_not_unpacked(running):
    async def squeeze(stream, number):
        packed = gzip.compress(reply(number, text_of(LINE_BYTES)))
        await stream.send(http("200 OK", "application/json", packed, "Content-Encoding: gzip"))

    async with connected(running, RawServer(tools_call=squeeze)) as upstream:
        with pytest.raises(OutcomeUnknownError, match=f"lost: {COMPRESSED}"):
            await upstream.call_tool("do", {})


async def test_a_listing_over_the_bound_says_why_there_are_no_tools(running):
    server = RawServer(tools_list=http(body=b"[" + b" " * LINE_BYTES))
    async with connected(running, server) as upstream:
        assert (upstream.status.state, upstream.status.problem, upstream.status.what_to_do) == (
            "down",
            OVER_BOUND,
            "See what the server's log says.",
        )


async def test_the_events_of_a_call_that_is_over_are_read_no_more(running):
    async def go_on(stream, _number):
        await stream.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            await stream.send(b"7\r\n: wait\n\r\n")
            await anyio.lowlevel.checkpoint()

    server = RawServer(tools_call=go_on)
    async with connected(running, server, call_timeout_seconds=0.1) as upstream:
        with pytest.raises(CallTimeoutError):
            await upstream.call_tool("do", {})
        await server.left.wait()
        assert upstream.status.state == "ready"


async def say_nothing(stream):
    await stream.receive()


async def begin_and_say_nothing(stream):
    await stream.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    await stream.receive()


async def put_off(stream):
    while True:
        await stream.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("behave", [say_nothing, begin_and_say_nothing, put_off])
async def test_the_connection_of_a_call_that_is_over_is_closed(running, behave):
    is_closed = anyio.Event()

    async def answer(stream, _number):
        try:
            await behave(stream)
        except GONE:
            is_closed.set()
            raise

    async with connected(running, RawServer(tools_call=answer), call_timeout_seconds=0.1) as upstream:
        with pytest.raises(CallTimeoutError):
            await upstream.call_tool("do", {})
        await is_closed.wait()
        assert upstream.status.state == "ready"


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_call_is_sent_to_another_path_of_its_server_only_while_somebody_waits_for_it(running, is_late):
    is_left = anyio.Event()

    async def answer(stream, number):
        if server.asked.count("tools/call") == 1:
            if is_late:
                await is_left.wait()
            await stream.send(http("307 No", "text/html", b"", "Location: /mcp/"))
        else:
            await stream.send(http(body=reply(number, HONEST["tools/call"])))

    server = RawServer(tools_call=answer)
    async with connected(running, server, call_timeout_seconds=1 if is_late else 60) as upstream:
        if is_late:
            with pytest.raises(CallTimeoutError):
                await upstream.call_tool("do", {})
            is_left.set()
        for _ in range(3):
            assert (await upstream.call_tool("do", {})) == HONEST["tools/call"]
    assert server.asked.count("tools/call") == 4


@pytest.mark.parametrize("answers", [True, False])
async def test_calls_are_left_in_time_though_the_server_does_not_answer_that_they_were_cancelled(
    running, monkeypatch, answers
):
    monkeypatch.setattr("broker.upstreams.http_messages._STUCK_SECONDS", 0.2)

    async def hang(_stream, _number):
        await anyio.sleep_forever()

    server = RawServer(tools_call=hang, **({} if answers else {"notifications_cancelled": hang}))
    async with connected(running, server, call_timeout_seconds=0.2) as upstream:
        sent = 0
        for _ in range(3):
            began = anyio.current_time()
            # Behind a notification that is not taken, a call is not sent.
            with pytest.raises((CallTimeoutError, UnavailableError)) as late:
                await upstream.call_tool("do", {})
            assert anyio.current_time() - began < 1.2
            sent += late.type is CallTimeoutError
            while server.asked.count("tools/call") < sent:
                await anyio.lowlevel.checkpoint()
        assert server.asked.count("tools/call") == sent
        while server.asked.count("notifications/cancelled" if answers else "initialize") < (3 if answers else 2):
            await anyio.lowlevel.checkpoint()
    assert server.asked.count("initialize") == (1 if answers else 2)


@pytest.mark.parametrize("takes_answers", [False, True])
async def test_a_server_asks_so_much_and_no_more_before_it_takes_the_answers(running, monkeypatch, takes_answers):
    monkeypatch.setattr("broker.upstreams.http_messages.REQUESTS", 20)
    is_over = anyio.Event()

    async def ask(stream, _number):
        await stream.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for number in range(40):
            event = f'data: {{"jsonrpc": "2.0", "id": {number}, "method": "ping"}}\n\n'.encode()
            await stream.send(b"%x\r\n%s\r\n" % (len(event), event))
            while takes_answers and server.asked.count("POST") <= number:
                await anyio.lowlevel.checkpoint()
        is_over.set()
        await anyio.sleep_forever()

    async def take_none(_stream, _number):
        await anyio.sleep_forever()

    server = RawServer(GET=ask, **({} if takes_answers else {"POST": take_none}))
    async with connected(running, server) as upstream:
        await is_over.wait()
        while not takes_answers and upstream.status.problem is None:
            await anyio.lowlevel.checkpoint()
        assert upstream.status.problem == (None if takes_answers else FLOODED)


async def test_very_many_calls_are_on_their_way_at_once(running):
    are_all_there, results = anyio.Event(), []

    async def answer(stream, number):
        if server.asked.count("tools/call") == 150:
            are_all_there.set()
        await are_all_there.wait()
        await stream.send(http(body=reply(number, HONEST["tools/call"])))

    async def call():
        results.append(await upstream.call_tool("do", {}))

    server = RawServer(tools_call=answer)
    async with connected(running, server, connect_timeout_seconds=5) as upstream, anyio.create_task_group() as tasks:
        for _ in range(150):
            tasks.start_soon(call)
    assert len(results) == 150


async def hang(_stream, _number):
    await anyio.sleep_forever()


async def drip(stream, _number):
    await stream.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        await stream.send(b"1\r\n.\r\n")
        await anyio.sleep(0.01)


@pytest.mark.parametrize("answer", [hang, drip])
async def test_a_server_that_does_not_take_leave_is_connected_again(running, monkeypatch, answer):
    monkeypatch.setattr("broker.upstreams.connecting._GOODBYE_SECONDS", 0.1)
    server = RawServer(DELETE=answer)
    async with connected(running, server, lazy=True) as upstream:
        assert (await upstream.call_tool("do", {})) == HONEST["tools/call"]
        assert upstream.rest()
        assert (await upstream.call_tool("do", {})) == HONEST["tools/call"]
    assert server.asked.count("DELETE") == 1


ENDS_AT_ONCE = http(kind="text/event-stream", body=b"id: 1\nretry: 0\n\n")


async def test_a_stream_that_ends_at_once_is_not_opened_again_at_once(running):
    server, began = RawServer(GET=ENDS_AT_ONCE), anyio.current_time()
    async with connected(running, server):
        while server.asked.count("GET") < 4:
            await anyio.lowlevel.checkpoint()
    assert anyio.current_time() - began >= 3 * STREAM_SECONDS


async def test_an_answer_is_looked_for_again_only_while_somebody_waits_for_it():
    trail, is_over, said = HttpTrail("http://web.example/mcp"), anyio.Event(), []

    async def look(client) -> None:
        await client.get(trail.url, headers={"Accept": "text/event-stream"})
        said.append("looked")
        await is_over.wait()
        with pytest.raises(UnreadError, match="nobody waits for its answer any more"):
            await client.get(trail.url, headers={"Accept": "text/event-stream"})
        said.append("left")

    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, headers={"Content-Type": "text/event-stream"}))
    async with (
        httpx2.AsyncClient(transport=transport, event_hooks=trail.hooks) as client,
        anyio.create_task_group() as tasks,
    ):
        with trail.sending(SentCall()):
            tasks.start_soon(look, client)
            while not said:
                await anyio.lowlevel.checkpoint()
        is_over.set()
    assert said == ["looked", "left"]


async def test_a_server_is_sent_its_cookies_while_they_are_few():
    given, sent = iter((["few=1"], [f"c{number}=1" for number in range(4_000)], ["few=2"], [])), []

    def answer(request):
        sent.append(request.headers.get("cookie"))
        return httpx2.Response(200, headers=[("Set-Cookie", one) for one in next(given)])

    trail = HttpTrail("http://web.example/mcp")
    async with HttpClient(trail, transport=httpx2.MockTransport(answer)) as client:
        for _ in range(4):
            await client.post(trail.url)
    assert sent == [None, "few=1", None, "few=2"]


@pytest.mark.usefixtures("own_folder")
async def test_the_metadata_of_a_login_is_bounded_too(running):
    server = RawServer(initialize=http("401 No"), GET=pour)
    account = OAuthClient(grant="client_credentials", client_id="r", client_secret="s" * 8, issuer="https://a.example")
    async with connected(running, server, oauth=account) as upstream:
        assert (upstream.status.problem, upstream.status.what_to_do) == (OVER_BOUND, "This is a fault of the server.")
        await server.left.wait()
