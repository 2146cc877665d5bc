"""A client of `codemode serve` that cancels a script while an upstream server has a call of it: all are processes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.broker.conftest import FAULTY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

pytestmark = pytest.mark.anyio

TOKEN = "0123456789abcdef" * 2
CALLED = ['{"text": "hang"}']
VERSIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """The SDK's HTTP client leaves generators behind on trio."""
    return request.param


@pytest.fixture
def logged(tmp_path):
    """Read what reached the upstream server: calls and cancellations."""
    log = tmp_path / "calls.log"
    return lambda: log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def serve(command, write_config, tmp_path):
    """The command that serves: one script at a time, the next waits until it is over."""
    variables = {"CALLS_LOG": str(tmp_path / "calls.log")}
    upstream = {"command": sys.executable, "args": ["-I", str(FAULTY), "hangs_in_call"], "env": variables}
    settings = {"tokens": {"ada": TOKEN}, "runs_at_once": 1}
    return [command, "serve", "-c", write_config({"faulty": upstream}, serve=settings), "--allow", "faulty.*"]


@contextmanager
def listening(serve, environment) -> Iterator[str]:
    """Serve HTTP on a free port; yield the URL."""
    with subprocess.Popen(  # noqa: S603  # our own command
        [*serve, "--http", "127.0.0.1:0"], env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            yield next(match for line in process.stderr if (match := re.search(r"http://\S+", line)))[0]
        finally:
            process.kill()


@pytest.fixture(params=["stdio", "http"])
def connected(request, serve, environment):
    """A client of an era that has described `faulty.echo`."""

    @asynccontextmanager
    async def over_http(mode) -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        with listening(serve, environment) as url:
            async with (
                httpx2.AsyncClient(headers=headers, timeout=60) as http,
                Client(streamable_http_client(url, http_client=http), mode=mode) as client,
            ):
                yield client

    @asynccontextmanager
    async def connect(mode) -> AsyncIterator[Client]:
        stdio = StdioServerParameters(command=serve[0], args=serve[1:], env=environment)
        async with over_http(mode) if request.param == "http" else Client(stdio, mode=mode) as client:
            assert client.protocol_version == VERSIONS[mode]
            await client.call_tool("get_tool_details", {"tools": ["faulty.echo"]})
            yield client

    return connect


@pytest.fixture
def states(codemode):
    """Tell how the runs are doing that are not over."""
    return lambda: [run["state"] for run in json.loads(codemode("runs", "--json").stdout)]


async def until(condition) -> None:
    """Wait for what another process brings about; the caller's deadline bounds it."""
    while not condition():
        await anyio.lowlevel.checkpoint()


async def run(client, text):
    code = f"from tools import faulty\nprint(await faulty.echo(text={text!r}))"
    return await client.call_tool("execute_code", {"code": code, "timeout": 600})


@pytest.mark.parametrize("mode", VERSIONS)
async def test_a_client_that_cancels_stops_the_script_and_its_call_at_the_server(connected, mode, logged, states):
    with anyio.fail_after(120):
        async with connected(mode) as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run, client, "hang")
                await until(lambda: logged() == CALLED)
                assert states() == ["running"]
                tasks.cancel_scope.cancel()
            await until(lambda: logged() == [*CALLED, "cancelled"])
            # It has its turn when the cancelled script is over.
            reply = await run(client, "next")
            assert reply.structured_content["stdout"] == "next\n"
            assert states() == ["interrupted"]
    assert logged() == [*CALLED, "cancelled", '{"text": "next"}']
