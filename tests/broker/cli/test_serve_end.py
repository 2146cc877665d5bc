"""However `codemode serve` ends, nothing that its servers started is left, be it deaf to signals or a grandchild."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from tests.processes import descendants, lives

pytestmark = pytest.mark.anyio

HOSTILE = Path(__file__).parents[1] / "servers" / "hostile_upstream.py"
HANGING = {"hanging": "call_hang", "silent": "start_hang"}
SERVERS = {"stubborn": "call_ignore_sigterm", "forking": "call_fork_child", "leaving": "call_fork_apart"}
TOOLS = [f"{name}.echo" for name in SERVERS]
SCRIPT = f"from tools import {', '.join(SERVERS)}\n" + "\n".join(f"await {tool}(text='a')" for tool in TOOLS)
WITHIN_SECONDS = 5
"""What a client, or an init system, gives the processes of a server to be gone after the signal."""
KINDS = {
    "sleeps": "import asyncio\nawait asyncio.sleep(60)",
    "computes": "while True:\n    pass",
    "calls": "from tools import hanging\nawait hanging.echo(text='a')",
}
"""What a script does when the signal comes."""
ENDS = {"SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT, "SIGHUP": signal.SIGHUP, "end of input": None}


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """Serving HTTP is for asyncio."""
    return request.param


@pytest.fixture
def hostile_config(tmp_path):
    """A server that ignores signals and closed pipes, one whose child holds the pipes open, one whose child left."""
    servers = {
        name: {
            "command": sys.executable,
            "args": ["-I", str(HOSTILE), behaviour],
            "mode": "legacy",
            "lazy": name == "silent",
        }
        for name, behaviour in (SERVERS | HANGING).items()
    }
    path = tmp_path / "hostile.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return str(path)


@pytest.fixture
def serving(command, environment, hostile_config, tmp_path):
    @contextmanager
    def serve(*arguments: str):
        process = subprocess.Popen(  # noqa: S603  # our own command
            [command, "serve", "--config", hostile_config, "--allow", "*", *arguments],
            env=environment,
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with process:
            try:
                yield process
            finally:
                process.kill()

    return serve


def request(process: subprocess.Popen[str], number: int, method: str, params: object) -> dict[str, Any]:
    """Make a request over the standard streams, and return its result."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
    process.stdin.flush()
    answers = map(json.loads, iter(process.stdout.readline, ""))
    return next(answer["result"] for answer in answers if answer.get("id") == number)


def url_of(process: subprocess.Popen[str]) -> str:
    """Wait until it says where it serves."""
    assert process.stderr is not None
    lines = iter(process.stderr.readline, "")
    return next(match[0] for line in lines if (match := re.search(r"http://\S+", line)))


def left_of(pids: set[int], seconds: float) -> set[int]:
    """Wait for the end of processes; return those that still run after so many seconds."""
    deadline = time.monotonic() + seconds
    with ExitStack() as stack:
        running = {}
        for pid in pids:
            with suppress(ProcessLookupError):
                running[pid] = os.pidfd_open(pid)
                stack.callback(os.close, running[pid])
        for pid, ends in list(running.items()):
            if select.select([ends], [], [], max(deadline - time.monotonic(), 0))[0]:
                del running[pid]
    return set(running)


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_over_stdio_nothing_is_left_of_the_servers(serving, end):
    with serving() as process:
        client = {"name": "test", "version": "1"}
        request(process, 1, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
        request(process, 2, "tools/call", {"name": "get_tool_details", "arguments": {"tools": TOOLS}})
        result = request(process, 3, "tools/call", {"name": "execute_code", "arguments": {"code": SCRIPT}})
        assert result["structuredContent"]["outcome"] == "completed"
        started = descendants(process.pid)
        assert len(started) >= 5
        if end is None:
            process.stdin.close()
            process.stdin = None
        else:
            process.send_signal(end)
        assert process.wait(timeout=30) == 0
        assert [pid for pid in started if lives(pid)] == []


def test_a_signal_while_it_ends_leaves_nothing_of_the_servers(serving):
    """Claude Code sends SIGINT, a tenth of a second later SIGTERM, and closes the pipes."""
    with serving() as process:
        client = {"name": "test", "version": "1"}
        request(process, 1, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
        request(process, 2, "tools/call", {"name": "get_tool_details", "arguments": {"tools": TOOLS}})
        request(process, 3, "tools/call", {"name": "execute_code", "arguments": {"code": SCRIPT}})
        started = descendants(process.pid)
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):  # a server that is deaf takes longer to end
            process.wait(timeout=0.5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
        assert [pid for pid in started if lives(pid)] == []


def test_a_client_that_goes_while_the_image_compiles_ends_it_all(serving, environment, tmp_path):
    environment |= {"XDG_CACHE_HOME": str(tmp_path / "cache"), "XDG_DATA_HOME": str(tmp_path / "new")}
    with serving() as process:
        assert process.stderr is not None
        assert any("Compiling" in line for line in iter(process.stderr.readline, ""))
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        assert process.wait(timeout=60) == 0
    assert list((tmp_path / "cache" / "codemode-broker" / "images").iterdir()) == []


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_over_http_nothing_is_left_of_the_servers_and_the_run_says_how_it_ended(serving, end):
    started: set[int] = set()
    with serving("--http", "127.0.0.1:0") as process:
        url = url_of(process)

        async def stop(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001  # as called
            if progress == 2:
                started.update(descendants(process.pid))
                process.send_signal(end)

        async with Client(url, mode="legacy") as client:
            await client.call_tool("get_tool_details", {"tools": TOOLS})
            code = f"{SCRIPT}\nimport asyncio\nawait asyncio.sleep(60)"
            result = await client.call_tool("execute_code", {"code": code}, progress_callback=stop)
        assert await anyio.to_thread.run_sync(lambda: process.wait(timeout=30)) == 0
    assert result.structured_content["stopped"]["limit"] == "shutdown"
    assert len(started) >= 5
    assert [pid for pid in started if lives(pid)] == []


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_over_stdio_the_servers_are_gone_in_time_whatever_a_script_does(serving, kind):
    with serving() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        client = {"name": "test", "version": "1"}
        request(process, 1, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
        request(
            process, 2, "tools/call", {"name": "get_tool_details", "arguments": {"tools": [*TOOLS, "hanging.echo"]}}
        )
        code = {"name": "execute_code", "arguments": {"code": f"{SCRIPT}\n{kind}"}, "_meta": {"progressToken": "run"}}
        call = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": code}
        process.stdin.write(json.dumps(call) + "\n")
        process.stdin.flush()
        messages = map(json.loads, iter(process.stdout.readline, ""))
        progress = (one["params"]["progress"] for one in messages if one.get("method") == "notifications/progress")
        assert any(made >= 3 for made in progress)
        started = descendants(process.pid)
        assert len(started) >= 6
        process.send_signal(signal.SIGTERM)
        assert left_of(started, WITHIN_SECONDS) == set()
        result = next(one["result"] for one in messages if one.get("id") == 3)
        assert result["structuredContent"]["stopped"]["limit"] == "shutdown"
        assert process.wait(timeout=30) == 0


@pytest.mark.parametrize("era", ["legacy", "auto"])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
async def test_over_http_the_servers_are_gone_in_time_whatever_a_script_does(serving, kind, era):
    begun = anyio.Event()
    left: list[set[int]] = []
    with serving("--http", "127.0.0.1:0") as process:
        url = url_of(process)

        async def note(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001  # as called
            if progress >= 3:
                begun.set()

        async def end() -> None:
            await begun.wait()
            started = descendants(process.pid)
            assert len(started) >= 6
            process.send_signal(signal.SIGTERM)
            left.append(await anyio.to_thread.run_sync(left_of, started, WITHIN_SECONDS))

        async with Client(url, mode=era) as client, anyio.create_task_group() as tasks:
            tasks.start_soon(end)
            details = await client.call_tool("get_tool_details", {"tools": [*TOOLS, "hanging.echo"]})
            handle = re.search(r"s_[0-9a-f]{8,}", str(details.content))
            session = {} if handle is None else {"session": handle[0]}
            code = f"{SCRIPT}\n{kind}"
            result = await client.call_tool("execute_code", {"code": code, **session}, progress_callback=note)
        assert await anyio.to_thread.run_sync(lambda: process.wait(timeout=30)) == 0
    assert left == [set()]
    assert result.structured_content["stopped"]["limit"] == "shutdown"


async def test_the_servers_are_gone_in_time_when_a_run_waits_for_one_that_does_not_start(serving):
    """It heeds no stop: its script has not begun."""
    with serving("--http", "127.0.0.1:0") as process:
        async with Client(url_of(process), mode="legacy") as client, anyio.create_task_group() as tasks:
            await client.call_tool("get_tool_details", {"tools": TOOLS})
            await client.call_tool("execute_code", {"code": SCRIPT})
            before = descendants(process.pid)
            code = "from tools import silent\nawait silent.echo(text='a')"
            tasks.start_soon(client.call_tool, "execute_code", {"code": code})
            with anyio.fail_after(30):
                while not (started := descendants(process.pid)) - before:  # nothing tells of them
                    await anyio.lowlevel.checkpoint()
            process.send_signal(signal.SIGTERM)
            assert await anyio.to_thread.run_sync(left_of, before | started, WITHIN_SECONDS) == set()
        assert await anyio.to_thread.run_sync(lambda: process.wait(timeout=30)) == 0
