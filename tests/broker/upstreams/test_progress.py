"""What a server says of how far a call is, told to somebody who takes their time."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from broker.upstreams.progress import MAX_WAITING, Progress
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


async def test_of_what_waits_for_a_busy_listener_the_latest_is_told():
    told, may_go_on = [], anyio.Event()

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))
        await may_go_on.wait()

    words = Progress(listen, str)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(words.tell, 1, None, "begun")
        await anyio.wait_all_tasks_blocked()
        for number in range(2, 5_001):
            await words.tell(number, None, None)
        may_go_on.set()
        await words.end()
    assert told == [(1, None, "begun"), *((number, None, None) for number in range(5_001 - MAX_WAITING, 5_001))]


async def test_all_that_was_said_is_told_before_the_answer(running, tmp_path, log):
    told = []

    async def listen(number, *_) -> None:
        for _turn in range(50):
            await anyio.lowlevel.checkpoint()
        told.append(number)

    lines = [words(number) for number in range(1, MAX_WAITING)]
    async with running(saying(tmp_path, log, *lines)) as upstream:
        await upstream.call_tool("echo", {"text": "hi"}, on_progress=listen)
        assert told == [*range(1, MAX_WAITING)]


async def test_an_answer_does_not_wait_long_for_who_listens_and_nothing_is_told_after_it(
    running, tmp_path, log, monkeypatch
):
    monkeypatch.setattr("broker.upstreams.progress.END_SECONDS", 0.01)
    told, may_go_on = [], anyio.Event()

    async def listen(number, *_) -> None:
        told.append(number)
        await may_go_on.wait()

    async with running(saying(tmp_path, log, words(1), words(2))) as upstream:
        assert (await upstream.call_tool("echo", {"text": "hi"}, on_progress=listen)) == {"content": []}
        may_go_on.set()
        await anyio.wait_all_tasks_blocked()
    assert told == [1]


async def test_what_is_no_number_is_not_told(running, tmp_path, log):
    told = []

    async def listen(*progress) -> None:
        told.append(progress)

    lines = [words("1e999"), words(1, total="1e999", message='"half"'), words(2, total=2)]
    async with running(saying(tmp_path, log, *lines)) as upstream:
        await upstream.call_tool("echo", {"text": "hi"}, on_progress=listen)
    assert told == [(1.0, None, "half"), (2.0, 2.0, None)]
