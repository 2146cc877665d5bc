"""Mode `tools` over HTTP without tokens, for clients of the newer era that pass no session on, as Claude Code."""

from __future__ import annotations

import json
import re
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """The HTTP server needs asyncio."""
    return request.param


HOW = r"Call get_tool_details with (.*), then call_tool with (.*) and its arguments\.$"


@pytest.fixture
def client(served, listening):
    """A client that is given no token."""

    @asynccontextmanager
    async def connect():
        async with served(mode="tools") as server, listening(server) as url, Client(url, mode="2026-07-28") as one:
            yield one

    return connect


async def test_a_model_that_does_what_the_answers_say_gets_its_call_made(client):
    async with client() as one:
        refused = await one.call_tool("add", {"a": 1})
        match: Any = re.search(HOW, json.loads(refused.content[0].text)["error"]["message"])
        told = await one.call_tool("get_tool_details", json.loads(match[1]))
        called = await one.call_tool("call_tool", json.loads(match[2]) | {"arguments": {"a": 1}})
    assert json.loads(told.content[0].text)["add"]["inputSchema"]["required"] == ["a"]
    assert (refused.is_error, called.structured_content) == (True, {"result": 3})


async def test_a_model_that_reads_descriptions_first_is_told_its_session_once(client):
    async with client() as one:
        told = await one.call_tool("get_tool_details", {"tools": ["add"]})
        match: Any = re.match(r'session: "(s_[0-9a-f]+)"', told.content[1].text)
        named = {"session": match[1]}
        called = await one.call_tool("call_tool", {"name": "add", "arguments": {"a": 1}, **named})
        again = await one.call_tool("get_tool_details", {"tools": ["add"], **named})
    assert (called.structured_content, len(again.content)) == ({"result": 3}, 1)
