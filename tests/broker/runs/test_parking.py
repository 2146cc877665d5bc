"""What is kept of runs that nobody waits for."""

from __future__ import annotations

from typing import Any, cast

import anyio
import pytest

from broker import QuestionBox
from broker.errors import RecordingError
from broker.runs import parking as module
from broker.runs.parking import Parking

pytestmark = pytest.mark.anyio


async def test_of_runs_that_failed_the_oldest_are_forgotten(monkeypatch):
    monkeypatch.setattr(module, "MAX_KEPT", 1)

    async def fail(_watching):
        raise RecordingError("it cannot go on here")

    async with anyio.create_task_group() as tasks:
        parking = Parking(QuestionBox(), lambda: tasks, cast("Any", None))
        for run in "abc":
            parking.begin(run, fail)
            await anyio.wait_all_tasks_blocked()
    assert [run for run in "abc" if run in parking] == ["c"]


async def test_of_runs_that_go_on_none_is_forgotten(monkeypatch):
    monkeypatch.setattr(module, "MAX_KEPT", 1)

    async def go_on(_watching):
        await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        parking = Parking(QuestionBox(), lambda: tasks, cast("Any", None))
        for run in "abc":
            parking.begin(run, go_on)
        await anyio.wait_all_tasks_blocked()
        assert [run for run in "abc" if run in parking] == ["a", "b", "c"]
        tasks.cancel_scope.cancel()


async def test_who_waits_for_a_run_is_told_why_it_failed():
    async def fail(_watching):
        await anyio.wait_all_tasks_blocked()  # until somebody waits
        raise RecordingError("it cannot go on here")

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            parking = Parking(QuestionBox(), lambda: tasks, cast("Any", None))
            with pytest.raises(RecordingError, match="it cannot go on here"):
                await parking.run(fail)


async def test_a_run_ends_with_whoever_waits_for_it():
    started, ended = anyio.Event(), anyio.Event()

    async def go_on(_watching):
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            parking = Parking(QuestionBox(), lambda: tasks, cast("Any", None))
            async with anyio.create_task_group() as waiting:
                waiting.start_soon(parking.run, go_on)
                await started.wait()
                waiting.cancel_scope.cancel()
            await ended.wait()
