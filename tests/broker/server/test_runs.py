"""The runs of a server, without the server."""

from __future__ import annotations

import anyio
import pytest

from broker.server import runs as module
from broker.server.runs import DrainingError, Runs

pytestmark = pytest.mark.anyio


async def test_a_run_that_heeds_no_stop_is_dropped_when_the_server_ends(monkeypatch):
    monkeypatch.setattr(module, "REPORT_SECONDS", 0.01)
    runs, started = Runs(at_once=1, waiting=1), anyio.Event()
    ended: list[int] = []

    async def work(live):
        with live.stop:
            started.set()
        await anyio.sleep_forever()

    async def wait():
        with pytest.raises(DrainingError):
            await runs.perform(work)
        ended.append(1)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            tasks.start_soon(wait)
            await started.wait()
            await anyio.wait_all_tasks_blocked()
            assert len(runs) == 2
            await runs.drain(0)
            assert len(runs) == 0
    assert len(ended) == 2


async def test_a_run_that_is_still_prepared_when_the_server_ends_has_executed_nothing():
    """As while the image is compiled, which heeds no stop."""
    runs, told = Runs(at_once=1, waiting=1), []

    async def work(_live):
        await anyio.sleep_forever()

    async def wait():
        with pytest.raises(DrainingError) as caught:
            await runs.perform(work)
        told.append(caught.value.has_begun)

    with anyio.fail_after(module.REPORT_SECONDS / 2):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            await runs.drain(0)
    assert told == [False]


async def test_runs_that_wait_for_their_turn_do_not_begin_when_the_server_ends():
    runs, began, ended = Runs(at_once=2, waiting=200), [], []

    async def work(live):
        began.append(live)
        with live.stop:
            await anyio.sleep_forever()
        return "stopped"

    async def wait():
        try:
            ended.append(await runs.perform(work))
        except DrainingError as error:
            ended.append(error.has_begun)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            for _ in range(202):
                tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            await runs.drain(0)
    assert (len(began), ended.count("stopped"), ended.count(False)) == (2, 2, 200)
