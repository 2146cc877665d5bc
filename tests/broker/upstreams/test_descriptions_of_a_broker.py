"""A broker whose server is another one, as a process in mode `tools`: over stdio and HTTP, in both protocol eras."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from mcp import Client

from broker import Broker, Config, Grant, ServerConfig
from tests.broker.servers.plain import plain

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("deadline")]

DESCRIBED = Path(__file__).parents[1] / "servers" / "described.py"
CODEMODE = str(Path(sys.executable).with_name("codemode"))


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    return request.param


@pytest.fixture
def environment(tmp_path):
    plain_variables = {key: value for key, value in os.environ.items() if not key.startswith("CODEMODE_")}
    return plain_variables | {"XDG_CONFIG_HOME": str(tmp_path / "none")}


@pytest.fixture
def arguments(tmp_path, log):
    config = tmp_path / "mcp.json"
    notes = plain("notes", NOTES_LOG=str(log))
    config.write_text(json.dumps({"mcpServers": {"notes": notes}, "serve": {"mode": "tools"}}))
    return ("serve", "-c", str(config), "--allow", "notes.*")


@pytest.fixture
def served(arguments, environment, tmp_path):
    """The command over HTTP without tokens; yields its URL."""

    @contextmanager
    def serve():
        command = [CODEMODE, *arguments, "--http", "127.0.0.1:0"]
        with subprocess.Popen(  # noqa: S603  # our own command
            command, env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr
            try:
                line = next(line for line in process.stderr if "MCP at" in line or "error" in line)
                yield re.findall(r"http://\S+", line)[0]
            finally:
                process.kill()

    return serve


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines()


async def called(session, *texts):
    """Call the far tool `add` with each text, and return why it was not done, if so."""
    results = [await session.call_directly("far.add", {"text": text}) for text in texts]
    return [result.failed and result.failed.message for result in results]


ERAS = {"auto": "2026", "2026-07-28": "2026", "legacy": "2025"}


@pytest.mark.parametrize("mode", ERAS)
async def test_what_was_described_over_http_is_called_in_the_same_session(served, log, mode):
    with served() as url:
        assert await era_of(ServerConfig(url=url, mode=mode), log) == ERAS[mode]


@pytest.mark.parametrize("mode", ERAS)
async def test_what_was_described_over_stdio_is_called_in_the_same_session(arguments, environment, log, mode):
    era = await era_of(ServerConfig(command=CODEMODE, args=arguments, env=environment, mode=mode), log)
    assert era == ERAS[mode] or mode == "auto"  # where a slow start gets the older handshake


async def era_of(far, log):
    """Describe and call a tool; return in which era that was done."""
    async with Broker(Config(servers={"far": far}), opens_sandbox=False) as broker:
        assert not broker.catalog.lookup("far.add").is_complete
        session = broker.session(grants=[Grant("far.*")])
        details = await session.get_tool_details(["far.add"])
        assert "text: str" in details.source
        assert await called(session, "a", "b") == [None, None]
        assert lines(log) == ["add a False", "add b False"]
        return broker.server_statuses()[0].era


async def test_the_tools_of_another_broker_are_of_the_session_that_described_them(served, log):
    with served() as url:
        async with Broker(Config(servers={"far": ServerConfig(url=url)}), opens_sandbox=False) as broker:
            session = broker.session(grants=[Grant("far.*")])
            await session.get_tool_details(["far.call_tool", "far.get_tool_details"])
            told = await session.call_directly("far.get_tool_details", {"tools": ["add"]})
            result = await session.call_directly("far.call_tool", {"name": "add", "arguments": {"text": "a"}})
    assert told.answer is not None
    assert "s_" not in json.dumps(told.answer)
    assert (result.failed, lines(log)) == (None, ["add a False"])


async def test_more_tools_than_one_read_of_the_other_describes_are_all_described(arguments, environment, tmp_path, log):
    config = json.loads((tmp_path / "mcp.json").read_text())
    config["mcpServers"]["notes"] = plain("wide", NOTES_LOG=str(log))
    (tmp_path / "mcp.json").write_text(json.dumps(config))
    far = ServerConfig(command=CODEMODE, args=arguments, env=environment, mode="legacy")
    async with Broker(Config(servers={"far": far}), opens_sandbox=False) as broker:
        names = [tool.qualified_name for tool in broker.catalog.tools if "wide" in tool.qualified_name]
        details = await broker.session().get_tool_details(names)
        assert details.described == tuple(names)
        assert details.source.count("the_first: str") == len(names) == 12


async def test_a_session_that_the_server_has_dropped_is_begun_again(served, tmp_path, log):
    config = json.loads((tmp_path / "mcp.json").read_text())
    config["serve"]["sessions"] = 1
    (tmp_path / "mcp.json").write_text(json.dumps(config))
    with served() as url:
        async with Broker(Config(servers={"far": ServerConfig(url=url)}), opens_sandbox=False) as broker:
            session = broker.session(grants=[Grant("far.*")])
            await session.get_tool_details(["far.add"])
            assert await called(session, "a") == [None]
            async with Client(url) as other:
                assert (await other.call_tool("add", {"text": "x"})).is_error
            assert await called(session, "b") == [None]
    assert lines(log) == ["add a False", "add b False"]


async def test_a_server_of_the_newer_revision_without_resources_lists_its_tools_in_full():
    newer = ServerConfig(**plain("notes"), mode="2026-07-28")
    async with Broker(Config(servers={"notes": newer}), opens_sandbox=False) as broker:
        [status] = broker.server_statuses()
        assert (status.era, status.warnings, status.problem) == ("2026", (), None)
        assert all(tool.is_complete for tool in broker.catalog.tools)


async def test_a_key_goes_back_to_the_server_that_gave_it_and_to_nobody_else(log):
    def post(*keys):
        variables = {"CALLS_LOG": str(log), "SESSION_KEYS": json.dumps(keys)}
        return ServerConfig(command=sys.executable, args=("-I", str(DESCRIBED)), env=variables, mode="legacy")

    odd = [5, "", "k" * 257, "\u00e9", "a\nb", None, ["first"]]
    servers = {"post": post("first", *odd, "second"), "other": post()}
    async with Broker(Config(servers=servers), opens_sandbox=False) as broker:
        session = broker.session(grants=[Grant("*")])
        await session.get_tool_details(["other.send_mail"])
        await session.get_tool_details(["post.send_mail"])
        for _ in (*odd, "first", "second"):
            assert (await session.call_directly("post.send_mail", {"to": "a"})).failed is None
        assert (await session.call_directly("other.send_mail", {"to": "a"})).failed is None
    call = 'call send_mail {"to": "a"}'
    first, second = ([call, f"key {key}"] for key in ("first", "second"))
    assert lines(log) == ["read send_mail", "read send_mail", *first * (len(odd) + 1), *second, call]
