"""The eight things that a server of "Progressive Disclosure for Tool Descriptions" 2.1 has to do.

By clients that are not ours, each a process of its own, over stdio and HTTP, in both protocol eras.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.broker.servers.plain import plain

CODEMODE = str(Path(sys.executable).with_name("codemode"))
CLIENTS = Path(__file__).parent / "clients"
OTHERS = Path(__file__).parents[1] / "clients"
SDK = Path(__file__).parents[2] / "examples" / "servers" / "node_modules" / "@modelcontextprotocol" / "sdk"
URI = "resource:///tool_descriptions"
ALLOWED = ("add", "count", "find")

PYTHON = str(CLIENTS / "python_client.py")
MANY = {
    "python 2026": [PYTHON, "auto"],
    "python 2025": [PYTHON, "legacy"],
    "typescript 2026": [str(OTHERS / "typescript_v2_lines.mjs")],
    "typescript 2025": [str(CLIENTS / "typescript_client.mjs"), str(SDK)],
}
NEEDED = {"typescript 2026": OTHERS / "node_modules", "typescript 2025": SDK}
VERSIONS = {"2025": "2025-11-25", "2026": "2026-07-28"}
"""What each has to settle on with the server."""

HOLDERS = {(kind, name): f"{kind} {name}".replace(" ", "-") for kind in MANY for name in ("one", "two")}
TOKENS = {holder: holder.ljust(32, "-") for holder in HOLDERS.values()}
"""In the newer era, those who hold the same one share a session."""


class Client:
    """A client's process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.hello = self._read()

    def ask(self, method: str, **params):
        """Return the result, or the error with its code."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps([method, params]) + "\n")
        self._process.stdin.flush()
        answer = self._read()
        return answer.get("result", answer)

    def read(self, *names: str):
        """Return the document of the resource for these tools."""
        [contents] = self.ask("resources/read", uri=f"{URI}?tools={','.join(names)}")["contents"]
        assert contents["mimeType"] == "application/json"
        return json.loads(contents["text"])

    def call(self, tool: str, /, **arguments):
        return self.ask("tools/call", name=tool, arguments=arguments)

    def _read(self):
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, "the client ended"
        return json.loads(line)


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


@pytest.fixture(scope="module", params=[f"{client} over {way}" for client in MANY for way in ("stdio", "http")])
def connect(request, python, serve_arguments, environment, folder):
    """Start clients of one kind, each with a session of its own, by the name of a token's holder."""
    kind, _, way = request.param.partition(" over ")
    if kind in NEEDED and not NEEDED[kind].is_dir():
        pytest.skip("examples/servers or tests/clients is not installed: npm ci there")
    target = [request.getfixturevalue("url")] if way == "http" else [*python, CODEMODE, *serve_arguments]
    interpreter = ["node"] if kind in NEEDED else python

    @contextmanager
    def start(holder: str = "one"):
        with subprocess.Popen(  # noqa: S603  # our own command
            [*interpreter, *MANY[kind], *target],
            env=environment | {"TOKEN": TOKENS[HOLDERS[kind, holder]]},
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            client = Client(process)
            assert client.hello["version"] == VERSIONS[kind.rpartition(" ")[2]]
            yield client
            process.kill()

    return start


@pytest.fixture(scope="module")
def client(connect):
    with connect() as started:
        yield started


@pytest.fixture
def executed(log):
    """What reached the tools during a test."""
    before = log.read_text().splitlines() if log.exists() else []
    return lambda: (log.read_text().splitlines() if log.exists() else [])[len(before) :]


def test_tools_are_listed_with_one_sentence_and_an_open_schema(client):
    listed = {tool["name"]: tool for tool in client.ask("tools/list")["tools"]}
    assert list(listed)[:3] == ["search_tools", "get_tool_details", "call_tool"]
    assert {name: listed[name]["description"] for name in (*ALLOWED, "erase")} == {
        "add": "Keeps a note.",
        "count": "Counts notes that have a word.",
        "find": "Finds notes.",
        "erase": "Erases a note.",
    }
    assert all(listed[name]["inputSchema"] == {"type": "object", "properties": {}} for name in (*ALLOWED, "erase"))
    assert not any("outputSchema" in listed[name] for name in (*ALLOWED, "erase"))


def test_the_resource_is_listed_and_tells_the_workflow(client):
    [listed] = [one for one in client.ask("resources/list")["resources"] if one["name"] == "tool_descriptions"]
    assert (listed["uri"], listed["mimeType"]) == (URI, "application/json")
    assert f"Before you call a tool, read {URI}?tools=" in listed["description"]
    assert f"{URI}?tools=" in client.hello["instructions"]


def test_a_read_delivers_the_whole_descriptions_of_the_tools_asked_for_and_nothing_else(client):
    document = client.read("find", "add")
    assert list(document) == ["find", "add"]
    assert document["add"]["name"] == "add"
    assert document["add"]["description"].endswith("Nothing is ever lost.")
    assert document["add"]["inputSchema"]["required"] == ["text"]
    assert document["add"]["inputSchema"]["properties"]["urgent"]["type"] == "boolean"


@pytest.mark.parametrize("query", ["", "?tools=", "?tools=,", "?other=x"])
def test_a_read_without_a_selection_is_told_to_select(client, query):
    [contents] = client.ask("resources/read", uri=URI + query)["contents"]
    error = json.loads(contents["text"])["error"]
    assert error["code"] == "MISSING_TOOL_SELECTION"
    assert f"{URI}?tools=" in error["message"]


def test_a_call_before_the_read_executes_nothing_and_names_the_read_that_makes_it_possible(connect, executed):
    with connect("two") as client:
        refused = client.call("count", word="a")
        error = json.loads(refused["content"][0]["text"])["error"]
        assert refused["isError"]
        assert refused["structuredContent"] == {"error": error}
        assert (error["code"], error["resource_uri"]) == ("TOOL_DESCRIPTION_REQUIRED", f"{URI}?tools=count")
        assert executed() == []
        client.ask("resources/read", uri=error["resource_uri"])
        answer = client.call("count", word="a")
        assert not answer.get("isError")
        assert answer["content"][0]["text"] == "count a"
        assert client.call("call_tool", name="count", arguments={"word": "b"})["content"][0]["text"] == "count b"
    assert executed() == ["count a", "count b"]


def test_an_unknown_name_has_an_entry_with_the_available_ones_beside_the_others(client):
    document = client.read("fnid", "find")
    assert "fnid" in document["fnid"]["error"]
    assert document["fnid"]["available_tools"][0] == "find"
    assert set(document["fnid"]["available_tools"]) == {*ALLOWED, "erase"}
    assert "inputSchema" in document["find"]


def test_what_one_session_read_is_not_read_by_another(connect, client, executed):
    client.read("add")
    assert not client.call("add", text="mine").get("isError")
    with connect("two") as other:
        refused = other.call("add", text="yours")
        assert json.loads(refused["content"][0]["text"])["error"]["code"] == "TOOL_DESCRIPTION_REQUIRED"
    assert executed() == ["add mine False"]


def test_a_description_allows_nothing(client, executed):
    client.read("erase")
    refused = client.call("erase", text="all")
    assert refused["isError"]
    assert "TOOL_DESCRIPTION_REQUIRED" not in refused["content"][0]["text"]
    assert executed() == []
    wrong = client.call("add", texts="x")
    assert wrong["isError"]
    assert executed() == []
