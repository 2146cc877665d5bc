"""What a server says of how far a call is, told to somebody who takes their time."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from broker.upstreams.server_config import ServerConfig

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("deadline")]

RAW = Path(__file__).parents[1] / "servers" / "raw_upstream.py"
RESULT = '{"jsonrpc": "2.0", "id": %ID%, "result": {"content": []}}\n'


def words(progress, **more):
    more_words = "".join(f', "{key}": {value}' for key, value in more.items())
    params = f'{{"progressToken": %ID%, "progress": {progress}{more_words}}}'
    return f'{{"jsonrpc": "2.0", "method": "notifications/progress", "params": {params}}}\n'


def saying(tmp_path, log, *lines):
    """A server that says this while its tool is called."""
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps({"tools/call": "".join(lines) + RESULT}), encoding="utf-8")
    arguments, env = ("-I", str(RAW), str(answers)), {"HOSTILE_LOG": str(log)}
    return ServerConfig(command=sys.executable, args=arguments, env=env, mode="legacy")


async def test_who_listens_slowly_is_told_the_latest(running, tmp_path, log):
    told, may_go_on = [], anyio.Event()

    async def listen(*progress) -> None:
        told.append(progress)
        await may_go_on.wait()

    lines = [words(number, total=5_000) for number in range(1, 5_001)]
    async with running(saying(tmp_path, log, *lines)) as upstream:
        await upstream.call_tool("echo", {"text": "hi"}, on_progress=listen)
        assert told == [(1.0, 5_000.0, None)]
        may_go_on.set()
        while len(told) < 2:
            await anyio.lowlevel.checkpoint()
        await anyio.wait_all_tasks_blocked()
    assert told == [(1.0, 5_000.0, None), (5_000.0, 5_000.0, None)]


async def test_what_is_no_number_is_not_told(running, tmp_path, log):
    told = []

    async def listen(*progress) -> None:
        told.append(progress)

    lines = [words("1e999"), words(1, total="1e999", message='"half"'), words(2, total=2)]
    async with running(saying(tmp_path, log, *lines)) as upstream:
        await upstream.call_tool("echo", {"text": "hi"}, on_progress=listen)
        while len(told) < 2:
            await anyio.lowlevel.checkpoint()
    assert told == [(1.0, None, "half"), (2.0, 2.0, None)]
