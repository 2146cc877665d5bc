"""Plain functions as tools, and the three tools for model APIs."""

from __future__ import annotations

import json
from importlib import import_module

import anyio
import pytest
from typing_extensions import TypedDict

from broker import Broker, Grant, tool_definitions
from broker.surface import texts

pytestmark = pytest.mark.anyio


class Person(TypedDict):
    name: str
    age: int


def find(name: str, limit: int = 3) -> list[Person]:
    """Finds people."""
    return [Person(name=name, age=number) for number in range(limit)]


async def greet(name: str) -> str:
    """Greets."""
    await anyio.lowlevel.checkpoint()
    return f"hello {name}"


async def test_plain_functions_are_typed_tools():
    script = (
        "from tools import people\nfound = await people.find(name='Ada', limit=1)\n"
        "found[0]['age'], await people.greet(name='Ada')"
    )
    with anyio.fail_after(60):
        async with Broker(servers={"people": [find, greet]}) as broker:
            session = broker.session(grants=[Grant("people.*")])
            details = await session.dispatch("get_tool_details", {"tools": ["people.find", "people.greet"]})
            reply = await session.dispatch("execute_code", {"code": script})
    assert "async def find(*, name: str, limit: int = 3) -> list[FindPerson]:" in details.text
    assert reply.text == '[0, "hello Ada"]\ncalls: people.find ok; people.greet ok'


async def test_a_function_is_cancelled_with_its_call():
    started, cancelled = anyio.Event(), anyio.Event()

    async def wait() -> None:
        """Waits."""
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    async with Broker(servers={"people": [wait]}) as broker, anyio.create_task_group() as tasks:
        session = broker.session(grants=[Grant("*")])
        await session.get_tool_details(["people.wait"])
        tasks.start_soon(session.call_directly, "people.wait", {})
        await started.wait()
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True), anyio.fail_after(20):
            await cancelled.wait()


async def test_whoever_embeds_sees_output_and_calls_as_they_come():
    printed, ended = [], []
    async with Broker(servers={"people": [greet]}) as broker:
        session = broker.session(grants=[Grant("*")])
        await session.get_tool_details(["people.greet"])
        await session.dispatch(
            "execute_code",
            {"code": "from tools import people\nprint('now')\nawait people.greet(name='Ada')"},
            on_output=lambda stream, text: printed.append((stream, text)),
            on_call=lambda record, done, made: ended.append((record.tool, record.status, done, made)),
        )
    assert printed == [("stdout", "now\n")]
    assert ended == [("greet", "ok", 1, 1)]


@pytest.fixture(scope="module")
def encoding():
    return import_module("bpe_openai").get_encoding("o200k_base")


NAMES = ["search_tools", "get_tool_details", "execute_code"]


def test_the_definitions_have_the_form_of_each_api():
    assert [tool["name"] for tool in tool_definitions("mcp")] == NAMES
    assert [(tool["name"], tool["input_schema"]["type"]) for tool in tool_definitions("anthropic")] == [
        (name, "object") for name in NAMES
    ]
    assert [(tool["type"], tool["name"]) for tool in tool_definitions("openai")] == [
        ("function", name) for name in NAMES
    ]
    assert [tool["function"]["name"] for tool in tool_definitions("openai-chat")] == NAMES
    with pytest.raises(ValueError, match="there is no format 'grpc'"):
        tool_definitions("grpc")  # type: ignore[arg-type]  # what is tested


@pytest.mark.parametrize("api", ["mcp", "anthropic", "openai", "openai-chat"])
def test_the_definitions_cost_a_model_at_most_500_tokens(api, encoding):
    text = json.dumps(tool_definitions(api), ensure_ascii=False, separators=(",", ":"))
    assert len(encoding.encode(text)) <= 500


@pytest.mark.parametrize("count", [0, 3, 500])
def test_the_instructions_cost_a_model_less_than_150_tokens(count, encoding):
    text = texts.instructions([f"server_number_{number}" for number in range(count)])
    assert len(encoding.encode(text)) < 150
