"""Examples, usage and error guidance beside the definition of a tool, in its description and to our own clients."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import anyio.lowlevel
import pytest
from mcp import Client

from broker import Broker, Config, Grant, ServerConfig
from broker.server import BrokerServer, ServeSettings
from broker.upstreams.guidance import GUIDANCE_BYTES, GUIDANCE_CHARACTERS, examples_of, with_guidance

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("deadline")]

SERVERS = Path(__file__).parents[1] / "servers"
DESCRIBED = SERVERS / "described.py"
EXAMPLES = [{"to": "a@example.com"}]
TOLD = (
    'Sends a mail to one person. Takes effect at once.\n\nExamples: [{"to": "a@example.com"}]\n\n'
    "Errors: A mail to nobody is an error."
)


@pytest.fixture
def opened():
    def make(mode) -> Broker:
        config = ServerConfig(command=sys.executable, args=("-I", str(DESCRIBED), mode), mode="legacy")
        return Broker(Config(servers={"post": config}), opens_sandbox=False)

    return make


async def test_what_stands_beside_a_tool_in_an_ordinary_listing_is_in_its_description(opened):
    async with opened("ordinary") as broker:
        entry = broker.catalog.lookup("post.send_mail")
        assert (entry.is_complete, entry.spec.description, entry.spec.examples) == (True, TOLD, EXAMPLES)
        details = await broker.session().get_tool_details(["post.send_mail"])
        assert 'Examples: [{"to": "a@example.com"}]' in details.source
        assert "Errors: A mail to nobody is an error." in details.source


async def test_a_changed_usage_is_a_changed_description(opened):
    async with opened("ordinary") as broker:
        session = broker.session(grants=[Grant("post.*")])
        await session.get_tool_details(["post.send_mail"])
        assert (await session.call_directly("post.send_mail", {"to": "a", "text": "advise"})).failed is None
        while session.is_described(broker.catalog.lookup("post.send_mail")):
            await anyio.lowlevel.checkpoint()
        assert session.lapsed == {"post.send_mail": "changed: its description"}
        assert (
            "Usage: Only to people who have asked for it." in broker.catalog.lookup("post.send_mail").spec.description
        )


@pytest.mark.parametrize("mode", ["ordinary", "plain"])
async def test_our_clients_read_the_examples_beside_the_definition(opened, mode):
    async with opened(mode) as broker, Client(BrokerServer(broker, ServeSettings(mode="tools")).mcp) as client:
        document = await read(client, "send_mail")
        assert (document["description"], document["examples"]) == (TOLD, EXAMPLES)
        assert "examples" not in await read(client, "count_mails")


async def read(client, name):
    said = await client.read_resource(f"resource:///tool_descriptions?tools={name}")
    return json.loads(said.contents[0].text)[name]


async def test_a_broker_behind_another_says_the_guidance_once(opened):
    async with opened("plain") as inner:
        server = BrokerServer(inner, ServeSettings(mode="tools"))
        async with Broker(servers={"far": server.mcp}, opens_sandbox=False) as outer:
            await outer.session().get_tool_details(["far.send_mail"])
            spec = outer.catalog.lookup("far.send_mail").spec
            assert (spec.description, spec.examples) == (TOLD, EXAMPLES)


async def test_guidance_is_bounded_and_what_is_no_guidance_is_passed_over():
    assert with_guidance("Does.", {"usage": 5, "examples": [], "error_handling": " ", "_meta": ["usage"]}) == "Does."
    assert with_guidance("", {"_meta": {"usage": "Once."}}) == "Usage: Once."
    assert with_guidance("", {"usage": "This.", "_meta": {"usage": "Not this."}}) == "Usage: This."
    assert len(with_guidance("", {"usage": "u" * 10_000})) == len("Usage: ") + GUIDANCE_CHARACTERS
    kept = examples_of({"examples": ["e" * 10_000] * 100})
    assert kept is not None
    assert 0 < len(kept) * 10_000 < GUIDANCE_BYTES
    deep: dict[str, object] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    assert examples_of({"examples": [1, deep]}) == [1]
    assert with_guidance("", {"usage": deep, "examples": {"a": "x" * 100_000}}) == ""


async def test_an_integer_that_cannot_be_written_takes_no_other_tool_with_it(tmp_path):
    huge = "1" * 2_000
    tools = (
        '[{"name": "good", "inputSchema": {"type": "object"}},'
        f'{{"name": "guided", "inputSchema": {{"type": "object"}}, "examples": [1, {huge}], "usage": {{"a": {huge}}}}},'
        f'{{"name": "bad", "inputSchema": {{"type": "object", "default": {huge}}}}}]'
    )
    answers = tmp_path / "answers.json"
    answer = f'{{"jsonrpc": "2.0", "id": %ID%, "result": {{"tools": {tools}}}}}\n'
    answers.write_text(json.dumps({"tools/list": answer}))
    arguments = (str(SERVERS / "raw_upstream.py"), str(answers))
    raw = ServerConfig(command=sys.executable, args=arguments, env={"HOSTILE_LOG": str(tmp_path / "log")})
    async with Broker(Config(servers={"raw": raw}), opens_sandbox=False) as broker:
        assert [(tool.spec.name, tool.spec.examples) for tool in broker.catalog.tools] == [
            ("good", None),
            ("guided", [1]),
        ]
        [status] = broker.server_statuses()
        assert status.warnings == ("left out the tool 'bad': it has an integer of more than 4096 bits",)
