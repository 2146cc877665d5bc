"""Drives one isolate to its outcome: runs its calls at the same time, wakes it for its timers, ends it at its limits.

The driver is the only place where a run waits. It holds a thread only while the guest computes.
"""

from __future__ import annotations

import collections
import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from sandbox.guest_messages import WRITTEN_BYTES, Step, argument_bytes, protocol_failure
from sandbox.host_messages import encode_completion
from sandbox.journal import Past, PastStep
from sandbox.limits import MIB
from sandbox.outcome import Outcome, Parked, Stopped

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from anyio.abc import TaskGroup

    from sandbox.isolate import Isolate
    from sandbox.journal import Journal
    from sandbox.limits import Limits
    from sandbox.outcome import Call, Completion, Printed
    from sandbox.stopwatch import Stopwatch

OPEN_BYTES = 128 * MIB
"""Memory in the host that all open calls of a run may take together. Steps are counted only if they are large enough
for a run to get there. Through its stubs a script needs as much memory itself; one that goes around them does not."""

CLOCK_SLACK_SECONDS = 0.001
"""How far the run's clock may be ahead of real time before the driver waits: reading the clock moves it, too."""


@dataclass(slots=True)
class _Batch:
    """The calls of one step: how many are open, and what they take in memory together."""

    open: int
    decoded_bytes: int


class Run:
    """One script on one isolate."""

    _news: anyio.Event
    """Belongs to the wait that is going on; set when one of several calls has its answer."""

    def __init__(
        self,
        isolate: Isolate,
        limits: Limits,
        answer: Callable[[Call], Awaitable[Completion | None]],
        stopwatch: Stopwatch,
        *,
        journal: Journal,
        take_printed: Callable[[], Sequence[Printed]],
    ) -> None:
        """Take what the run needs; `outcome` starts it.

        `answer` returns None for a call that has no answer for now. `take_printed` returns what was printed since it
        was last called.
        """
        self.calls = 0
        self.steps = 0
        self._isolate = isolate
        self._limits = limits
        self._answer = answer
        self._stopwatch = stopwatch
        self._journal = journal
        self._take_printed = take_printed
        self._queued: collections.OrderedDict[int, Call] = collections.OrderedDict()
        self._performers = 0
        self._last_id = 0
        self._in_flight: dict[int, anyio.CancelScope | None] = {}
        self._open_bytes = 0
        self._batches: dict[int, _Batch] = {}
        self._unanswered: set[int] = set()
        self._finished: dict[int, str] = {}
        self._lines: dict[int, int] = {}
        self._waits_at: int | None = None
        self._outcome: Outcome | None = None

    async def outcome(self, script: str, filename: str, manifest: Mapping[str, Any], past: Past) -> Outcome:
        """Run the script to its end, from where its past ends. Calls still open then are cancelled."""
        try:
            with anyio.CancelScope(deadline=self._deadline()) as scope:
                self._stopwatch.on_change(partial(self._set_deadline, scope))
                await self._drive(partial(self._isolate.start, script, filename, manifest), past)
        finally:
            self._stopwatch.on_change(None)  # or the two would keep each other, and the image, alive
        outcome = self._outcome or Stopped("wall_seconds", self._limits.wall_seconds, self._waits_at)
        self._journal.ended(outcome, self._take_printed())
        return outcome

    def _set_deadline(self, scope: anyio.CancelScope) -> None:
        scope.deadline = self._deadline()

    def _deadline(self) -> float:
        """Return when the run must be over, by the event loop's clock."""
        return math.inf if self._stopwatch.is_paused else anyio.current_time() + self._remaining()

    def _remaining(self) -> float:
        return self._limits.wall_seconds - self._stopwatch.elapsed

    async def _drive(self, start: Callable[[float], Awaitable[Step]], past: Past) -> None:
        if past.steps:
            step = await self._retrace(start, past)
            if step.outcome is None and not past.goes_on:
                self._outcome = Parked(tuple(call.id for call in step.calls))
                return
        else:
            step = await self._enter(PastStep(0, {}), start)
        await self._go_on(step, None)

    async def _go_on(self, step: Step, tasks: TaskGroup | None) -> None:
        """Hand in what the script waits for until it ends; open a task group once it waits for more than one call."""
        while step.outcome is None:
            is_single = len(step.calls) == 1 and step.timer is None and not self._is_expecting
            if tasks is None and not is_single:
                await self._go_on_with_tasks(step)
                return
            if step.cancelled:
                self._withdraw(step.cancelled)
            for call in step.calls:
                self._lines[call.id] = call.line
            self._waits_at = next(iter(self._lines.values()), step.line) or None
            if self._journal.is_full:
                await self._end_calls()
                self._outcome = Stopped("recording_bytes", self._journal.most_bytes, self._waits_at)
                return
            if tasks is None or is_single:
                # The common case, a script that waits for one call: no task, no event.
                await self._perform(step.calls[0])
            else:
                self._begin(step.calls, tasks)
                await self._wait(step.timer)
            if step.timer is None and not self._is_expecting:
                self._outcome = self._parked()
                return
            completions, self._finished = self._finished, {}
            for call_id in completions:
                self._lines.pop(call_id, None)
            entered = PastStep(int(self._stopwatch.elapsed * 1e9), completions)
            step = await self._enter(entered, partial(self._isolate.resume, completions.values(), entered.now_ns))
        self._outcome = step.outcome

    async def _go_on_with_tasks(self, step: Step) -> None:
        try:
            async with anyio.create_task_group() as tasks:
                await self._go_on(step, tasks)
                if self._performers:
                    tasks.cancel_scope.cancel()
        except ExceptionGroup as group:
            # What ended the run. The others came after: what is told of cancelled calls mostly raises the same again.
            raise group.exceptions[0] from None

    async def _end_calls(self) -> None:
        """Wait for the answers that are under way, so that they are kept."""
        while any(self._in_flight.values()):
            self._news = anyio.Event()
            await self._news.wait()

    def _withdraw(self, call_ids: Sequence[int]) -> None:
        """End calls that the script no longer waits for."""
        for call_id in call_ids:
            self._unanswered.discard(call_id)
            self._lines.pop(call_id, None)
            self._queued.pop(call_id, None)
            scope = self._in_flight.pop(call_id, None)
            if scope is not None:
                scope.cancel()

    def _parked(self) -> Outcome:
        if not self._unanswered:
            return protocol_failure("the guest waits for nothing")
        return Parked(tuple(sorted(self._unanswered)))

    @property
    def _is_expecting(self) -> bool:
        """Whether something is on its way into the script."""
        return bool(self._in_flight or self._finished)

    async def _retrace(self, start: Callable[[float], Awaitable[Step]], past: Past) -> Step:
        """Take the steps of the past again while time stands still; return the last step, with all open calls."""
        calls: dict[int, Call] = {}
        step = Step()
        with self._stopwatch.paused():
            for number, entered in enumerate(past.steps):
                resume = partial(self._isolate.resume, entered.completions.values(), entered.now_ns)
                step = self._followed(await (resume if number else start)(self._remaining()))
                self._journal.retraced(number, step, self._take_printed())
                for call_id in entered.completions:
                    self._let_go(call_id)
                step = self._counted(step)
                for call_id in (*entered.completions, *step.cancelled):
                    calls.pop(call_id, None)
                calls |= {call.id: call for call in step.calls}
        self._finished = dict(past.answered)
        for call_id in past.answered:
            self._let_go(call_id)
        still_open = tuple(call for call in calls.values() if call.id not in past.answered)
        if past.goes_on:
            await self._catch_up()
        return step._replace(calls=still_open, cancelled=())

    async def _enter(self, entered: PastStep, step: Callable[[float], Awaitable[Step]]) -> Step:
        """Let the guest compute until it returns, then wait for as long as it slept."""
        if self.steps >= self._limits.steps:
            return Step(outcome=Stopped("steps", self._limits.steps, self._waits_at))
        self._waits_at = None
        made = self._followed(await step(self._remaining()))
        self._journal.stepped(entered, made, self._take_printed())
        if not isinstance(made.outcome, Stopped):
            await self._catch_up()
        return self._counted(made)

    async def _catch_up(self) -> None:
        """Wait until real time has caught up with `time.sleep`, which moved the run's clock at once."""
        ahead = self._isolate.elapsed_ns / 1e9 - self._stopwatch.elapsed
        if ahead > CLOCK_SLACK_SECONDS:
            await self._stopwatch.wait(ahead)

    def _followed(self, step: Step) -> Step:
        """End the run at a step whose call ids do not rise, because no journal holds two calls of one id."""
        for call in step.calls:
            if call.id <= self._last_id:
                return Step(outcome=protocol_failure("a call's id does not follow the ones before it"))
            self._last_id = call.id
        return step

    def _counted(self, step: Step) -> Step:
        """Count a step and what it asks for; one that asks for too much ends the run."""
        self.steps += 1
        exceeded = None if step.outcome is not None else self._exceeded(step)
        return step if exceeded is None else Step(outcome=exceeded)

    def _exceeded(self, step: Step) -> Stopped | None:
        self.calls += len(step.calls)
        if self.calls > self._limits.calls:
            one_too_many = step.calls[self._limits.calls - self.calls]
            return Stopped("calls", self._limits.calls, one_too_many.line or None)
        if step.characters * WRITTEN_BYTES > self._limits.argument_bytes:
            for call in step.calls:
                if argument_bytes(call) > self._limits.argument_bytes:
                    return Stopped("argument_bytes", self._limits.argument_bytes, call.line or None)
        for call_id in step.cancelled:
            self._let_go(call_id)
        if step.decoded_bytes * self._limits.calls > OPEN_BYTES:
            self._hold(step)
            if self._open_bytes > OPEN_BYTES:
                return Stopped("open_bytes", OPEN_BYTES, step.calls[0].line or None)
        return None

    def _hold(self, step: Step) -> None:
        batch = _Batch(len(step.calls), step.decoded_bytes)
        self._batches |= dict.fromkeys((call.id for call in step.calls), batch)
        self._open_bytes += batch.decoded_bytes

    def _let_go(self, call_id: int) -> None:
        batch = self._batches.pop(call_id, None)
        if batch is not None:
            batch.open -= 1
            if not batch.open:
                self._open_bytes -= batch.decoded_bytes

    async def _perform(self, call: Call) -> None:
        completion = await self._answer(call)
        if completion is None:
            self._unanswered.add(call.id)
            return
        encoded = encode_completion(call.id, completion, self._limits)
        self._journal.answered(call.id, encoded)
        self._finished[call.id] = encoded
        if self._batches:
            self._let_go(call.id)

    def _begin(self, calls: Sequence[Call], tasks: TaskGroup) -> None:
        """Queue calls and start enough tasks to perform them; a task for each would cost more than most calls."""
        for call in calls:
            self._in_flight[call.id] = None
            self._queued[call.id] = call
        for _ in range(min(len(calls), self._limits.calls_in_flight - self._performers)):
            self._performers += 1
            tasks.start_soon(self._perform_queued)

    async def _perform_queued(self) -> None:
        """Perform the calls that are queued. A call that the script withdraws ends with its scope."""
        while self._may_call():
            with anyio.CancelScope() as scope:
                while self._may_call() and not scope.cancel_called:
                    await self._perform_next(scope)
        self._performers -= 1

    def _may_call(self) -> bool:
        return bool(self._queued) and not self._journal.is_full

    async def _perform_next(self, scope: anyio.CancelScope) -> None:
        _, call = self._queued.popitem(last=False)
        self._in_flight[call.id] = scope
        await self._perform(call)
        self._in_flight.pop(call.id, None)
        self._news.set()

    async def _wait(self, timer: float | None) -> None:
        """Wait for an answer, or until `timer` on the run's clock; or until there is nothing left to wait for."""
        self._news = anyio.Event()
        if self._finished:
            return
        if timer is None or self._stopwatch.skips:
            while self._in_flight and not self._finished:
                await self._news.wait()
                self._news = anyio.Event()
            if timer is not None and not self._finished:
                await self._stopwatch.wait(timer - self._stopwatch.elapsed)
            return
        with anyio.move_on_after(timer - self._stopwatch.elapsed):
            await self._news.wait()
