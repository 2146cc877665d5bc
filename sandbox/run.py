"""Drives one isolate to its outcome: runs its calls at the same time, wakes it for its timers, ends it at its limits.

The driver is the only place where a run waits. It holds a thread only while the guest computes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from sandbox.messages import Step, argument_bytes, encode_completion
from sandbox.outcome import Outcome, Stopped

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from anyio.abc import TaskGroup

    from sandbox.isolate import Isolate
    from sandbox.limits import Limits
    from sandbox.outcome import Call, Completion
    from sandbox.stopwatch import Stopwatch
    from sandbox.threads import WasmThreads

PAUSE_POLL_SECONDS = 0.5
"""How often a paused run looks whether its time goes on."""


class Run:
    """One script on one isolate."""

    def __init__(
        self,
        isolate: Isolate,
        threads: WasmThreads,
        limits: Limits,
        answer: Callable[[Call], Awaitable[Completion]],
        stopwatch: Stopwatch,
    ) -> None:
        """Takes what the run needs; `outcome` starts it."""
        self.calls = 0
        self.steps = 0
        self._isolate = isolate
        self._threads = threads
        self._limits = limits
        self._answer = answer
        self._stopwatch = stopwatch
        self._slots = anyio.Semaphore(limits.calls_in_flight)
        self._scopes: dict[int, anyio.CancelScope] = {}
        self._finished: list[str] = []
        self._news = anyio.Event()

    async def outcome(self, script: str, filename: str, manifest: Mapping[str, Any]) -> Outcome:
        """Runs the script to its end. Calls still open then are cancelled."""
        async with anyio.create_task_group() as tasks:
            outcome = await self._drive(tasks, partial(self._isolate.start, script, filename, manifest))
            tasks.cancel_scope.cancel()
        return outcome

    async def _drive(self, tasks: TaskGroup, start: Callable[[float], Step]) -> Outcome:
        step = await self._enter(start)
        while step.outcome is None:
            await self._catch_up()
            outcome = self._begin_calls(step, tasks) or await self._wait(step.timer)
            if outcome is not None:
                return outcome
            step = await self._enter(self._resume())
        return step.outcome

    def _resume(self) -> Callable[[float], Step]:
        completions, self._finished = self._finished, []
        return partial(self._isolate.resume, completions, int(self._stopwatch.elapsed * 1e9))

    async def _enter(self, step: Callable[[float], Step]) -> Step:
        """Lets the guest compute until it returns; interrupted at once when the run is cancelled."""
        self.steps += 1
        if self.steps > self._limits.steps:
            return Step(outcome=Stopped("steps", self._limits.steps))
        remaining = self._limits.wall_seconds - self._stopwatch.elapsed
        return await self._threads.run(partial(step, remaining), self._isolate.interrupt)

    async def _catch_up(self) -> None:
        """Pays for `time.sleep`: the run's clock went ahead at once, real time follows here."""
        ahead = self._isolate.elapsed_ns / 1e9 - self._stopwatch.elapsed
        if ahead > 0.001:  # noqa: PLR2004  # below a millisecond it is the clock's own readings
            await anyio.sleep(ahead)

    def _begin_calls(self, step: Step, tasks: TaskGroup) -> Outcome | None:
        for call_id in step.cancelled:
            if call_id in self._scopes:
                self._scopes.pop(call_id).cancel()
        for call in step.calls:
            self.calls += 1
            if self.calls > self._limits.calls:
                return Stopped("calls", self._limits.calls)
            if argument_bytes(call) > self._limits.argument_bytes:
                return Stopped("argument_bytes", self._limits.argument_bytes)
            scope = self._scopes[call.id] = anyio.CancelScope()
            tasks.start_soon(self._perform, call, scope)
        return None

    async def _perform(self, call: Call, scope: anyio.CancelScope) -> None:
        with scope:
            async with self._slots:
                completion = await self._answer(call)
            if self._scopes.pop(call.id, None) is not None:
                self._finished.append(encode_completion(call.id, completion, self._limits))
                self._news.set()

    async def _wait(self, timer: float | None) -> Outcome | None:
        """Waits for an answer or the timer; returns an outcome when the run's time is over first."""
        while not self._finished:
            elapsed = self._stopwatch.elapsed
            if elapsed >= self._limits.wall_seconds:
                return Stopped("wall_seconds", self._limits.wall_seconds)
            if timer is not None and elapsed >= timer:
                return None
            wait = min(self._limits.wall_seconds, self._limits.wall_seconds if timer is None else timer) - elapsed
            if self._stopwatch.is_paused:
                wait = max(wait, PAUSE_POLL_SECONDS)
            self._news = anyio.Event()
            with anyio.move_on_after(wait):
                await self._news.wait()
        return None
