from __future__ import annotations

import signal
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

import anyio
import pytest

from broker.upstreams.process_tree import ProcessTree
from broker.upstreams.server_process import end_process, start_process
from tests.processes import lives

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("deadline")]


def pids(log: Path) -> list[int]:
    return [int(line.removeprefix("pid ")) for line in log.read_text().splitlines() if line.startswith("pid ")]


@pytest.mark.parametrize(
    ("behaviour", "started"),
    [("child_apart", 1), ("deaf_child_apart", 1), ("orphan", 1), ("child_when_told_to_end", 2)],
)
async def test_nothing_that_a_server_started_is_left(faulty, running, log, behaviour, started):
    async with running(faulty(behaviour, env={"CALLS_LOG": str(log)})) as upstream:
        assert upstream.status.state == "ready"
        assert all(map(lives, pids(log)))
    assert len(pids(log)) == started
    assert not any(map(lives, pids(log)))


async def test_what_starts_more_while_it_is_ended_is_stopped_first(faulty, log):
    server = await start_process(faulty("keeps_starting", env={"CALLS_LOG": str(log)}))
    while len(pids(log)) < 3:
        await anyio.lowlevel.checkpoint()
    await end_process(server)
    assert len(pids(log)) < 200
    assert not any(map(lives, pids(log)))


async def test_a_server_that_ends_by_itself_is_given_the_time_to(faulty, running, log):
    async with running(faulty("tidies_up", env={"CALLS_LOG": str(log)})):
        [child] = pids(log)
    assert log.read_text().splitlines() == [f"pid {child}", "tidied up"]
    assert not lives(child)


async def test_nothing_is_left_of_a_server_that_nobody_came_to_speak_to(faulty, log):
    server = await start_process(faulty("child_apart", env={"CALLS_LOG": str(log)}))
    while not pids(log):
        await anyio.lowlevel.checkpoint()
    await end_process(server)
    assert server.process.returncode == -signal.SIGKILL
    assert not any(map(lives, pids(log)))


async def test_the_session_of_a_server_that_has_ended_is_ended():
    code = f"import subprocess; print(subprocess.Popen([{sys.executable!r}, '-c', 'input()']).pid)"
    async with await anyio.open_process([sys.executable, "-c", code], start_new_session=True) as leader:
        assert leader.stdout is not None
        child = int(await leader.stdout.receive())
        while leader.returncode is None:
            await anyio.lowlevel.checkpoint()
        assert lives(child)
        await ProcessTree(leader).end(grace_seconds=10)
        assert not lives(child)


async def test_a_process_that_was_given_the_pid_of_a_server_is_left_alone():
    async with await anyio.open_process(["cat"], start_new_session=True) as other:
        ended = SimpleNamespace(pid=other.pid, returncode=0)
        await ProcessTree(ended).kill()  # type: ignore[arg-type]  # a process that has ended
        assert lives(other.pid)
        assert other.stdin is not None
        await other.stdin.aclose()
        assert await other.wait() == 0
