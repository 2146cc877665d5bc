"""Mode `tools`: what a client is told of a call that a server has answered with what is no result."""

from __future__ import annotations

import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from mcp import Client

from broker import Broker, Config, Grant, ServerConfig
from broker.server import BrokerServer, ServeSettings

pytestmark = pytest.mark.anyio

RAW = Path(__file__).parents[1] / "servers" / "raw_upstream.py"
DROPPED = "raw.echo sent an answer that cannot be passed on. It may have acted; check before you repeat it."

MANY = (
    "The result of raw.echo has no list of at most 1000 content blocks. The call was made and is not repeated. "
    "If it only reads, call it again and ask for less; if not, do without its result."
)


@pytest.fixture
def answered(tmp_path, log, mode):
    """What a client is given of a call that its server answers with a result; that was sent once."""

    @asynccontextmanager
    async def answer(result):
        line = f'{{"jsonrpc": "2.0", "id": %ID%, "result": {json.dumps(result)}}}\n'
        log.write_text("", encoding="utf-8")
        answers = tmp_path / "answers.json"
        answers.write_text(json.dumps({"tools/call": line}), encoding="utf-8")
        raw = ServerConfig(
            command=sys.executable, args=(str(RAW), str(answers)), env={"HOSTILE_LOG": str(log)}, mode="legacy"
        )
        with anyio.fail_after(60):
            async with Broker(Config(servers={"raw": raw}), startup_seconds=30, opens_sandbox=False) as broker:
                session = broker.session(grants=[Grant("raw.*")])
                await session.get_tool_details("raw.echo")
                server = BrokerServer(broker, ServeSettings(mode="tools"), make_session=lambda _: session)
                async with Client(server.mcp, mode=mode) as client:
                    yield await client.call_tool("echo", {"text": "hi"})
        assert log.read_text(encoding="utf-8").split() == ["call"]

    return answer


def block(**fields):
    return {"content": [fields]}


IMAGE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
BROKEN = {
    "a block of no kind": block(type="frobnicate"),
    "a block that is a number": {"content": [5]},
    "a text that is a number": block(type="text", text=5),
    "an image of no type": block(type="image", data="AAAA"),
    "an image that is no base64": block(**IMAGE | {"data": "no base64!"}),
    "an image of an impossible type": block(**IMAGE | {"mimeType": "image/png\r\nX: y"}),
    "annotations that are none": block(type="text", text="hi", annotations={"priority": "high"}),
    "a resource of no name": block(type="resource", resource={"text": "hi"}),
    "no list": {"content": {}},
    "a result of no kind": {"resultType": "frobnicate", "content": []},
}


@pytest.mark.parametrize("case", BROKEN)
async def test_a_call_with_a_broken_answer_is_told_to_have_been_made(answered, case):
    async with answered(BROKEN[case]) as result:
        assert (result.is_error, result.content[0].text) == (True, DROPPED)


async def test_a_whole_answer_is_passed_on(answered):
    async with answered({"content": [IMAGE, {"type": "text", "text": "hi"}], "structuredContent": {"a": 1}}) as result:
        assert (result.is_error, result.structured_content) == (False, {"a": 1})
        assert [one.type for one in result.content] == ["image", "text"]


@pytest.mark.parametrize("is_error", [False, True])
async def test_more_blocks_than_a_script_gets_are_told_as_to_a_script(answered, is_error):
    texts = [{"type": "text", "text": "x"}] * 1_001
    async with answered(
        {"content": texts, "isError": is_error} | ({"structuredContent": {}} if is_error else {})
    ) as result:
        assert (result.is_error, result.content[0].text) == (True, MANY)


async def test_a_long_list_is_passed_on_as_the_text_of_its_structured_value(answered):
    """The Python SDK sends a block for each item beside it; a script gets the list."""
    rows = {"result": ["ü"] * 5_000}
    texts = [{"type": "text", "text": "ü"}] * 5_000
    async with answered({"content": texts, "structuredContent": rows}) as result:
        assert (result.is_error, result.structured_content) == (False, rows)
        [block] = result.content
        assert json.loads(block.text) == rows
        assert "ü" in block.text


async def test_a_value_that_is_no_object_reaches_older_clients_as_text(answered, mode):
    async with answered({"content": [], "structuredContent": [1, "ü"]}) as result:
        texts = [one.text for one in result.content]
        told = (None, ['[1, "ü"]']) if mode == "legacy" else ([1, "ü"], [])
        assert (result.structured_content, texts) == told
    async with answered({"content": [{"type": "text", "text": "hi"}], "structuredContent": "hi"}) as result:
        assert [one.text for one in result.content] == ["hi"]
