"""Whether other tasks have turns of the event loop: for how long its thread works on end, and how often they have one.

Times are those of the processor: a busy machine does not lengthen them.
"""

from __future__ import annotations

import gc
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_BETWEEN_SECONDS = 0.01


class Stretches:
    """What was measured so far.

    Attributes:
        longest_seconds: The longest time without a turn for others, or a hundredth of a second more.
    """

    longest_seconds = 0.0


@asynccontextmanager
async def measured_stretches() -> AsyncIterator[Stretches]:
    """Measure for the time of a block, in a module with `heap_of_its_own`: a collection is part of a stretch."""
    assert gc.get_freeze_count(), "heap_of_its_own is not used"
    stretches = Stretches()

    async def measure() -> None:
        while True:
            began = time.thread_time()
            await anyio.sleep(_BETWEEN_SECONDS)
            stretches.longest_seconds = max(stretches.longest_seconds, time.thread_time() - began)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(measure)
        yield stretches
        tasks.cancel_scope.cancel()


class Turns:
    """What was counted so far.

    Attributes:
        count: How many turns of the loop a task had that wants each of them.
    """

    count = 0


@asynccontextmanager
async def counted_turns() -> AsyncIterator[Turns]:
    """Count for the time of a block."""
    turns = Turns()

    async def take_turns() -> None:
        while True:
            await anyio.lowlevel.checkpoint()
            turns.count += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take_turns)
        yield turns
        tasks.cancel_scope.cancel()
