"""The eight things that a server of "Progressive Disclosure for Tool Descriptions" 2.1 has to do.

By clients that are not ours, over stdio and HTTP, in both protocol eras: the Python SDK's in this process, the
TypeScript SDK's in one of its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx2
import mcp
import pytest
from anyio.from_thread import start_blocking_portal
from mcp import MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.broker.servers.plain import plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyio.from_thread import BlockingPortal
    from pydantic import BaseModel

CODEMODE = str(Path(sys.executable).with_name("codemode"))
CLIENTS = Path(__file__).parent / "clients"
SDK = Path(__file__).parents[2] / "examples" / "servers" / "node_modules" / "@modelcontextprotocol" / "sdk"
URI = "resource:///tool_descriptions"
TOKENS = {"one": "1" * 32, "two": "2" * 32}
ALLOWED = ("add", "count", "find")

KINDS = {"python 2026": "auto", "python 2025": "legacy", "typescript 2025": None}
"""Clients, with the mode of those that are the Python SDK's."""


class Client:
    """A client with a session of its own.

    Attributes:
        instructions: What the server told it.
    """

    instructions: str

    def ask(self, method: str, **params):
        """Return the result, or the error with its code."""
        raise NotImplementedError

    def read(self, *names: str):
        """Return the document of the resource for these tools."""
        [contents] = self.ask("resources/read", uri=f"{URI}?tools={','.join(names)}")["contents"]
        assert contents["mimeType"] == "application/json"
        return json.loads(contents["text"])

    def call(self, tool: str, /, **arguments):
        return self.ask("tools/call", name=tool, arguments=arguments)


class TypeScriptClient(Client):
    """A client's process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.instructions = self._read()["instructions"]

    def ask(self, method: str, **params):
        assert self._process.stdin
        self._process.stdin.write(json.dumps([method, params]) + "\n")
        self._process.stdin.flush()
        answer = self._read()
        return answer.get("result", answer)

    def _read(self):
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, "the client ended"
        return json.loads(line)


class PythonClient(Client):
    """A client in a thread with a loop."""

    def __init__(self, portal: BlockingPortal, client: mcp.Client) -> None:
        self._portal = portal
        self._client = client
        self.instructions = client.instructions or ""

    def ask(self, method: str, **params):
        try:
            result = self._portal.call(self._result, method, params)
        except MCPError as error:
            return {"error": {"code": error.error.code, "message": error.error.message}}
        return result.model_dump(mode="json", by_alias=True, exclude_none=True)

    async def _result(self, method: str, params: dict[str, Any]) -> BaseModel:
        match method:
            case "tools/list":
                return await self._client.list_tools(cache_mode="refresh")
            case "resources/list":
                return await self._client.list_resources()
            case "resources/read":
                return await self._client.read_resource(params["uri"], cache_mode="refresh")
            case _:
                return await self._client.call_tool(params["name"], params["arguments"])


class Clients(NamedTuple):
    """Two clients of a kind at the same tools.

    Attributes:
        executed: Returns what reached the tools since it was last asked, or the check began.
    """

    one: Client
    two: Client
    executed: Callable[[], list[str]]


@contextmanager
def typescript_client(target, environment, folder):
    command = ["node", str(CLIENTS / "typescript_client.mjs"), str(SDK), *target]
    with subprocess.Popen(  # noqa: S603  # a pinned client
        command, env=environment, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield TypeScriptClient(process)
        process.kill()


@contextmanager
def python_client(mode, target, environment, folder):
    @asynccontextmanager
    async def connected():
        if len(target) > 1:
            parameters = StdioServerParameters(command=target[0], args=target[1:], env=environment, cwd=folder)
            async with mcp.Client(parameters, mode=mode) as client:
                yield client
        else:
            headers = {"Authorization": f"Bearer {environment['TOKEN']}"}
            async with (
                httpx2.AsyncClient(headers=headers, timeout=60) as http,
                mcp.Client(streamable_http_client(target[0], http_client=http), mode=mode) as client,
            ):
                yield client

    with start_blocking_portal() as portal, portal.wrap_async_context_manager(connected()) as client:
        yield PythonClient(portal, client)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("descriptions")


@pytest.fixture(scope="module")
def log(folder):
    return folder / "notes.log"


@pytest.fixture(scope="module")
def serve_arguments(folder, log):
    notes = plain("notes", NOTES_LOG=str(log))
    config = folder / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"notes": notes}, "serve": {"mode": "tools", "tokens": TOKENS}}))
    return ["serve", "-c", str(config), *(word for name in ALLOWED for word in ("--allow", f"notes.{name}"))]


@pytest.fixture(scope="module")
def environment(folder):
    plain = {key: value for key, value in os.environ.items() if not key.startswith("CODEMODE_")}
    return plain | {"XDG_CONFIG_HOME": str(folder / "none")}


@pytest.fixture(scope="module")
def url(serve_arguments, environment, folder):
    """One HTTP server for all."""
    with subprocess.Popen(  # noqa: S603  # our own command
        [CODEMODE, *serve_arguments, "--http", "127.0.0.1:0"],
        env=environment,
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr
        line = next(line for line in process.stderr if "MCP at" in line or "error" in line)
        yield re.findall(r"http://\S+", line)[0]
        process.kill()


@pytest.fixture(params=[f"{client} over {way}" for client in KINDS for way in ("stdio", "http")])
def connect(request, serve_arguments, environment, folder):
    """Start clients of one kind, each with a session of its own, by the name of a token's holder."""
    kind, _, way = request.param.partition(" over ")
    if kind.startswith("typescript") and not SDK.is_dir():
        pytest.skip("examples/servers is not installed: npm ci there")
    target = [request.getfixturevalue("url")] if way == "http" else [CODEMODE, *serve_arguments]

    def start(holder: str):
        own = environment | {"TOKEN": TOKENS[holder]}
        mode = KINDS[kind]
        return python_client(mode, target, own, folder) if mode else typescript_client(target, own, folder)

    return start


@pytest.fixture
def executed(log):
    """What reached the tools since the last question."""
    seen = 0

    def news():
        nonlocal seen
        lines = log.read_text().splitlines() if log.exists() else []
        seen, new = len(lines), lines[seen:]
        return new

    return news


def test_a_server_does_what_the_extension_asks_for(connect, executed, subtests):
    with connect("one") as one, connect("two") as two:
        for check in CHECKS:
            executed()
            with subtests.test(check.__name__):
                check(Clients(one, two, executed))


def tools_are_listed_with_one_sentence_and_an_open_schema(clients):
    listed = {tool["name"]: tool for tool in clients.one.ask("tools/list")["tools"]}
    assert list(listed)[:3] == ["search_tools", "get_tool_details", "call_tool"]
    assert {name: listed[name]["description"] for name in (*ALLOWED, "erase")} == {
        "add": "Keeps a note.",
        "count": "Counts notes that have a word.",
        "find": "Finds notes.",
        "erase": "Erases a note.",
    }
    assert all(listed[name]["inputSchema"] == {"type": "object", "properties": {}} for name in (*ALLOWED, "erase"))
    assert not any("outputSchema" in listed[name] for name in (*ALLOWED, "erase"))


def the_resource_is_listed_and_tells_the_workflow(clients):
    [listed] = [one for one in clients.one.ask("resources/list")["resources"] if one["name"] == "tool_descriptions"]
    assert (listed["uri"], listed["mimeType"]) == (URI, "application/json")
    assert f"Before you call a tool, read {URI}?tools=" in listed["description"]
    assert f"{URI}?tools=" in clients.one.instructions


def a_read_delivers_the_whole_descriptions_of_the_tools_asked_for_and_nothing_else(clients):
    document = clients.one.read("find", "add")
    assert list(document) == ["find", "add"]
    assert document["add"]["name"] == "add"
    assert document["add"]["description"].endswith("Nothing is ever lost.")
    assert document["add"]["inputSchema"]["required"] == ["text"]
    assert document["add"]["inputSchema"]["properties"]["urgent"]["type"] == "boolean"


def a_read_without_a_selection_is_told_to_select(clients):
    for query in ("", "?tools=", "?tools=,", "?other=x"):
        [contents] = clients.one.ask("resources/read", uri=URI + query)["contents"]
        error = json.loads(contents["text"])["error"]
        assert error["code"] == "MISSING_TOOL_SELECTION", query
        assert f"{URI}?tools=" in error["message"], query


def a_call_before_the_read_executes_nothing_and_names_the_read_that_makes_it_possible(clients):
    client = clients.two
    refused = client.call("count", word="a")
    error = json.loads(refused["content"][0]["text"])["error"]
    assert refused["isError"]
    assert refused["structuredContent"] == {"error": error}
    assert (error["code"], error["resource_uri"]) == ("TOOL_DESCRIPTION_REQUIRED", f"{URI}?tools=count")
    assert clients.executed() == []
    client.ask("resources/read", uri=error["resource_uri"])
    answer = client.call("count", word="a")
    assert not answer.get("isError")
    assert answer["content"][0]["text"] == "count a"
    assert client.call("call_tool", name="count", arguments={"word": "b"})["content"][0]["text"] == "count b"
    assert clients.executed() == ["count a", "count b"]


def an_unknown_name_has_an_entry_with_the_available_ones_beside_the_others(clients):
    document = clients.one.read("fnid", "find")
    assert "fnid" in document["fnid"]["error"]
    assert document["fnid"]["available_tools"][0] == "find"
    assert set(document["fnid"]["available_tools"]) == {*ALLOWED, "erase"}
    assert "inputSchema" in document["find"]


def what_one_session_read_is_not_read_by_another(clients):
    clients.one.read("add")
    assert not clients.one.call("add", text="mine").get("isError")
    refused = clients.two.call("add", text="yours")
    assert json.loads(refused["content"][0]["text"])["error"]["code"] == "TOOL_DESCRIPTION_REQUIRED"
    assert clients.executed() == ["add mine False"]


def a_description_allows_nothing(clients):
    clients.one.read("erase")
    refused = clients.one.call("erase", text="all")
    assert refused["isError"]
    assert "TOOL_DESCRIPTION_REQUIRED" not in refused["content"][0]["text"]
    assert clients.executed() == []
    wrong = clients.one.call("add", texts="x")
    assert wrong["isError"]
    assert clients.executed() == []


CHECKS = (
    tools_are_listed_with_one_sentence_and_an_open_schema,
    the_resource_is_listed_and_tells_the_workflow,
    a_read_delivers_the_whole_descriptions_of_the_tools_asked_for_and_nothing_else,
    a_read_without_a_selection_is_told_to_select,
    a_call_before_the_read_executes_nothing_and_names_the_read_that_makes_it_possible,
    an_unknown_name_has_an_entry_with_the_available_ones_beside_the_others,
    what_one_session_read_is_not_read_by_another,
    a_description_allows_nothing,
)
