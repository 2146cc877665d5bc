"""Servers of 2026-07-28 behind HTTP, which have no session, with answers that are none; each beside one that is."""

from __future__ import annotations

import json

import anyio
import anyio.lowlevel
import pytest

from broker.errors import OutcomeUnknownError
from broker.upstreams.http_answers import COMPRESSED, NO_TIME
from broker.upstreams.http_trail import ANOTHER
from broker.upstreams.message_bounds import LINE_BYTES, MANY_VALUES, OVER_BOUND, VALUES

from .test_http_answers import NO_ANSWERS, RawServer, connected, http, reply

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("deadline")]

DISCOVERED = {
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "private",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "web", "version": "1"},
}
LISTED = {
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "private",
    "tools": [{"name": "do", "inputSchema": {"type": "object"}}],
}
DONE = {"resultType": "complete", "content": [{"type": "text", "text": "done"}]}


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """The SDK's HTTP client leaves generators behind on trio."""
    return request.param


class SessionlessServer(RawServer):
    """Answers its first call with `bad(id)`, and any later one as it should."""

    def __init__(self, bad):
        super().__init__()
        self.bad = bad

    async def answer(self, stream, verb, body):
        message = json.loads(body) if body else {}
        method = message.get("method", verb)
        if method == "tools/call" and method not in self.asked:
            self.asked.append(method)
            await stream.send(self.bad(message["id"]))
            return
        results = {"server/discover": DISCOVERED, "tools/list": LISTED, "tools/call": DONE}
        if method in results:
            self.asked.append(method)
            await stream.send(http(body=reply(message["id"], results[method])))
            return
        await super().answer(stream, verb, body)


def on_again(milliseconds):
    """Return a stream that is to be opened again after so long."""
    return http(kind="text/event-stream", body=b"id: 1\nretry: " + milliseconds + b"\n\n")


MANY: dict[str, object] = {**DONE, "structuredContent": {"x": [[]] * VALUES}}
LOST = {case: (lambda _, answer=answer: answer, reason) for case, (answer, reason) in NO_ANSWERS.items()} | {
    "a stream that goes on before it ends": (lambda _: on_again(b"-1"), NO_TIME),
    "a stream that goes on after ages": (lambda _: on_again(b"9" * 400), NO_TIME),
    "too much": (lambda number: http(body=reply(number, DONE | {"x": "x" * LINE_BYTES})), OVER_BOUND),
    "too many values": (lambda number: http(body=reply(number, MANY)), MANY_VALUES),
    "compressed": (lambda _: http("200 OK", "application/json", b"\x1f\x8b", "Content-Encoding: gzip"), COMPRESSED),
}


@pytest.mark.parametrize("case", LOST)
async def test_without_a_session_too_a_call_is_sent_once_and_the_next_is_answered(running, case):
    bad, reason = LOST[case]
    server = SessionlessServer(bad)
    async with connected(running, server, mode="auto") as upstream:
        with pytest.raises(OutcomeUnknownError) as lost:
            await upstream.call_tool("do", {})
        assert server.asked.count("tools/call") == 1
        assert (await upstream.call_tool("do", {}))["content"] == DONE["content"]
    assert reason in str(lost.value)
    assert server.asked.count("server/discover") == 1
    assert "initialize" not in server.asked


async def test_an_answer_on_the_stream_of_a_call_is_of_that_call_whatever_its_id(running):
    def renumbered(number):
        return http(kind="text/event-stream", body=b"data: " + reply(number + 1_000_000, DONE) + b"\n\n")

    server = SessionlessServer(renumbered)
    async with connected(running, server, mode="auto") as upstream:
        assert (await upstream.call_tool("do", {}))["content"] == DONE["content"]
        assert (await upstream.call_tool("do", {}))["content"] == DONE["content"]
    assert server.asked.count("tools/call") == 2


@pytest.mark.parametrize("retry", [b"", b"1.5", b"soon", b"0", b"9" * 5_000])
async def test_a_stream_that_says_nothing_of_use_about_going_on_is_read(running, retry):
    def answered(number):
        event = b"retry: " + retry + b"\ndata: " + reply(number, DONE) + b"\n\n"
        return http(kind="text/event-stream", body=event)

    async with connected(running, SessionlessServer(answered), mode="auto") as upstream:
        assert (await upstream.call_tool("do", {}))["content"] == DONE["content"]


class SwappingServer(SessionlessServer):
    """Answers its first two calls at the same time, each with what `number` makes of both ids."""

    def __init__(self, number):
        super().__init__(None)
        self.number = number
        self.both = anyio.Event()
        self.ids = []

    async def answer(self, stream, verb, body):
        message = json.loads(body) if body else {}
        if message.get("method") != "tools/call" or self.both.is_set():
            await super().answer(stream, verb, body)
            return
        self.asked.append("tools/call")
        own = message["id"]
        self.ids.append(own)
        if len(self.ids) == 2:
            self.both.set()
        await self.both.wait()
        [other] = set(self.ids) - {own}
        content = [{"type": "text", "text": message["params"]["arguments"]["text"]}]
        await stream.send(http(body=reply(self.number(own, other), DONE | {"content": content})))


async def answers_to_two(upstream):
    found = {}

    async def call(text):
        try:
            found[text] = (await upstream.call_tool("do", {"text": text}))["content"][0]["text"]
        except OutcomeUnknownError as error:
            found[text] = str(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call, "a")
        tasks.start_soon(call, "b")
    return found


async def test_an_answer_with_the_id_of_another_call_goes_to_neither(running):
    server = SwappingServer(lambda _own, other: other)
    async with connected(running, server, mode="auto") as upstream:
        found = await answers_to_two(upstream)
        assert all(ANOTHER in said for said in found.values()), found
        assert (await upstream.call_tool("do", {}))["content"] == DONE["content"]
    assert server.asked.count("tools/call") == 3


async def test_an_id_that_comes_back_as_text_is_the_same(running):
    async with connected(running, SwappingServer(lambda own, _other: str(own)), mode="auto") as upstream:
        assert await answers_to_two(upstream) == {"a": "a", "b": "b"}


class EndingServer(SessionlessServer):
    """Tells of changes, or of nothing, on streams that it ends at once; there is a new tool after each."""

    def __init__(self, is_taken):
        super().__init__(lambda number: http(body=reply(number, DONE)))
        self.is_taken = is_taken

    async def answer(self, stream, verb, body):
        message = json.loads(body) if body else {}
        number, method = message.get("id"), message.get("method")
        listens = self.asked.count("subscriptions/listen")
        if method == "server/discover":
            await stream.send(http(body=reply(number, DISCOVERED | {"capabilities": {"tools": {"listChanged": True}}})))
        elif method == "tools/list":
            tools = [{"name": f"do_{count}", "inputSchema": {"type": "object"}} for count in range(listens + 1)]
            await stream.send(http(body=reply(number, LISTED | {"tools": tools})))
        elif method == "subscriptions/listen" and listens < 3:
            self.asked.append(method)
            subscription = {"io.modelcontextprotocol/subscriptionId": number}
            params = {"notifications": {"toolsListChanged": self.is_taken}, "_meta": subscription}
            told = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params}
            await stream.send(http(kind="text/event-stream", body=b"data: " + json.dumps(told).encode() + b"\n\n"))
        else:
            await super().answer(stream, verb, body)


async def test_a_subscription_that_ends_is_opened_again_and_the_tools_are_listed_again(running, monkeypatch):
    monkeypatch.setattr("broker.upstreams.back_off.FIRST_DELAY_SECONDS", 0.01)
    async with connected(running, EndingServer(is_taken=True), mode="auto") as upstream:
        while upstream.status.tool_count < 4:  # noqa: ASYNC110  # what the server tells, as it comes
            await anyio.sleep(0.01)
        assert (await upstream.call_tool("do_3", {}))["content"] == DONE["content"]


async def test_a_subscription_to_nothing_is_not_opened_again(running, monkeypatch):
    monkeypatch.setattr("broker.upstreams.back_off.FIRST_DELAY_SECONDS", 0)
    server = EndingServer(is_taken=False)
    async with connected(running, server, mode="auto") as upstream:
        while "subscriptions/listen" not in server.asked:
            await anyio.lowlevel.checkpoint()
        for _ in range(20):
            await upstream.call_tool("do_0", {})
    assert server.asked.count("subscriptions/listen") == 1
