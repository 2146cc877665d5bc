"""The clients of all runs hear that time goes by, from one task."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from broker.server.beats import Beats

pytestmark = pytest.mark.anyio


class Run:
    """The notices of one run: due every 10 ms, as all are as often."""

    def __init__(self, beat_at):
        self.beat_at = beat_at
        self.told = anyio.Event()

    def beat(self, now):
        assert now >= self.beat_at
        self.beat_at = now + 0.01
        self.told.set()


@pytest.fixture
async def beats():
    async with anyio.create_task_group() as tasks:
        beats = Beats()
        tasks.start_soon(beats.run)
        await anyio.wait_all_tasks_blocked()
        yield beats
        tasks.cancel_scope.cancel()


async def test_each_run_is_told_when_it_is_due_and_one_that_ended_is_not(beats):
    now = anyio.current_time()
    first, ended, last = Run(now + 0.005), Run(now + 0.005), Run(now + 0.01)
    for run in (first, ended, last):
        beats.add(run)
    beats.discard(ended)
    with anyio.fail_after(10):
        await last.told.wait()
    assert first.told.is_set()
    assert not ended.told.is_set()


async def test_runs_that_begin_after_all_others_have_ended_are_told_as_well(beats):
    for _ in range(3):
        run = Run(anyio.current_time() + 0.01)
        beats.add(run)
        with anyio.fail_after(10):
            await run.told.wait()
        beats.discard(run)
        await anyio.sleep_until(run.beat_at)  # it wakes for it once more, and finds nobody
        await anyio.wait_all_tasks_blocked()


async def test_a_run_that_begins_while_another_is_slept_for_is_told_in_its_turn(beats):
    now = anyio.current_time()
    first, second = Run(now + 0.01), Run(now + 0.02)
    beats.add(first)
    await anyio.lowlevel.checkpoint()
    beats.add(second)
    beats.discard(first)
    with anyio.fail_after(10):
        await second.told.wait()
    assert not first.told.is_set()
