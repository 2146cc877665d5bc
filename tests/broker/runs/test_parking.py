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
    monkeypatch.setattr(module, "MOST_KEPT", 1)

    async def fail(_watching):
        raise RecordingError("it cannot go on here")

    async with anyio.create_task_group() as tasks:
        parking = Parking(QuestionBox(), lambda: tasks, cast("Any", None))
        for run in "abc":
            parking.begin(run, fail)
            await anyio.wait_all_tasks_blocked()
    assert [run for run in "abc" if run in parking] == ["c"]
