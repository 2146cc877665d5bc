"""Drives one isolate to its outcome: runs its calls at the same time, wakes it for its timers, ends it at its limits.

The driver is the only place where a run waits. It holds a thread only while the guest computes.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from sandbox.messages import Step, argument_bytes, encode_completion, protocol_failure
from sandbox.outcome import Outcome, Stopped

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from anyio.abc import TaskGroup

    from sandbox.isolate import Isolate
    from sandbox.limits import Limits
    from sandbox.outcome import Call, Completion
    from sandbox.stopwatch import Stopwatch

WRITTEN_BYTES = 12
"""What a character takes at most as JSON, as two escapes: the arguments in a shorter message need no counting."""

CLOCK_SLACK_SECONDS = 0.001
"""How far the run's clock may be ahead of real time before that is waited for: its own readings move it."""


class Run:
    """One script on one isolate."""

    def __init__(
        self,
        isolate: Isolate,
        limits: Limits,
        answer: Callable[[Call], Awaitable[Completion]],
        stopwatch: Stopwatch,
    ) -> None:
        """Takes what the run needs; `outcome` starts it."""
        self.calls = 0
        self.steps = 0
        self._isolate = isolate
        self._limits = limits
        self._answer = answer
        self._stopwatch = stopwatch
        self._slots = anyio.Semaphore(limits.calls_in_flight)
        self._last_id = 0
        self._in_flight: dict[int, anyio.CancelScope] = {}
        self._finished: list[str] = []
        self._news = anyio.Event()

    async def outcome(self, script: str, filename: str, manifest: Mapping[str, Any]) -> Outcome:
        """Runs the script to its end. Calls still open then are cancelled."""
        outcome: Outcome = Stopped("wall_seconds", self._limits.wall_seconds)
        async with anyio.create_task_group() as tasks:
            scope = tasks.cancel_scope
            self._stopwatch.on_change(partial(self._set_deadline, scope))
            self._set_deadline(scope)
            outcome = await self._drive(tasks, partial(self._isolate.start, script, filename, manifest))
            scope.cancel()
        return outcome

    def _set_deadline(self, scope: anyio.CancelScope) -> None:
        remaining = math.inf if self._stopwatch.is_paused else self._remaining()
        scope.deadline = anyio.current_time() + remaining

    def _remaining(self) -> float:
        return self._limits.wall_seconds - self._stopwatch.elapsed

    async def _drive(self, tasks: TaskGroup, start: Callable[[float], Awaitable[Step]]) -> Outcome:
        step = await self._enter(start)
        while step.outcome is None:
            exceeded = self._exceeded(step)
            if exceeded is not None:
                return exceeded
            for call_id in step.cancelled:
                if call_id in self._in_flight:
                    self._in_flight.pop(call_id).cancel()
            if len(step.calls) == 1 and step.timer is None and not self._in_flight and not self._finished:
                # The common case, a script that waits for one call: no task, no event.
                await self._perform(step.calls[0])
            else:
                for call in step.calls:
                    self._in_flight[call.id] = anyio.CancelScope()
                    tasks.start_soon(self._perform_beside, call)
                await self._wait(step.timer)
            completions, self._finished = self._finished, []
            step = await self._enter(partial(self._isolate.resume, completions, int(self._stopwatch.elapsed * 1e9)))
        return step.outcome

    async def _enter(self, step: Callable[[float], Awaitable[Step]]) -> Step:
        """Lets the guest compute until it returns, and pays for the time it slept."""
        self.steps += 1
        if self.steps > self._limits.steps:
            return Step(outcome=Stopped("steps", self._limits.steps))
        made = await step(self._remaining())
        if not isinstance(made.outcome, Stopped):
            await self._catch_up()
        return made

    async def _catch_up(self) -> None:
        """Waits until real time has caught up with `time.sleep`, which moved the run's clock at once."""
        ahead = self._isolate.elapsed_ns / 1e9 - self._stopwatch.elapsed
        if ahead > CLOCK_SLACK_SECONDS:
            await anyio.sleep(ahead)

    def _exceeded(self, step: Step) -> Outcome | None:
        for call in step.calls:
            if call.id <= self._last_id:
                return protocol_failure("a call's id does not follow the ones before it")
            self._last_id = call.id
        self.calls += len(step.calls)
        if self.calls > self._limits.calls:
            return Stopped("calls", self._limits.calls)
        may_exceed = step.characters * WRITTEN_BYTES > self._limits.argument_bytes
        if may_exceed and any(argument_bytes(call) > self._limits.argument_bytes for call in step.calls):
            return Stopped("argument_bytes", self._limits.argument_bytes)
        return None

    async def _perform(self, call: Call) -> None:
        completion = await self._answer(call)
        self._finished.append(encode_completion(call.id, completion, self._limits))

    async def _perform_beside(self, call: Call) -> None:
        """Performs one of several calls: waits for a slot, ends when the script withdraws it."""
        with self._in_flight[call.id]:
            async with self._slots:
                await self._perform(call)
            self._in_flight.pop(call.id, None)
            self._news.set()

    async def _wait(self, timer: float | None) -> None:
        """Waits for an answer, or until `timer` on the run's clock."""
        self._news = anyio.Event()
        if self._finished:
            return
        if timer is None:
            await self._news.wait()
            return
        with anyio.move_on_after(timer - self._stopwatch.elapsed):
            await self._news.wait()
