"""Runs of a session that nobody waits for: parked while a question is open, and resumed with the answer.

Above: sessions.py. Below: question_box.py, execution.py, and the task group of the broker, in which the runs live. Of a
parked run that is recorded nothing is kept but its question; the answer resumes it. One that is not recorded waits in
memory.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import anyio

from broker.authorization.question_box import Later
from broker.authorization.questions import GivenAnswers
from broker.authorization.run_answerer import answering
from broker.runs.envelope import ExecutionResult, WaitsFor
from broker.runs.watching import Watching

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anyio.abc import TaskGroup

    from broker.authorization.question_box import OpenQuestion, QuestionBox
    from broker.calls.attempts import CallRecord
    from broker.runs.execution import Execution

    Work: TypeAlias = Callable[[Watching], Awaitable[ExecutionResult]]

MAX_KEPT = 1_000
"""Runs that are parked, or have ended and were not asked for again; the oldest that have ended are forgotten."""


@dataclass(slots=True, eq=False)
class _Live:
    """A run of this process that nobody may be waiting for.

    Attributes:
        run: Its id; empty before its first question.
        shown: The id of the last question with which somebody was told that it is parked.
        calls: Those that have ended.
        printed: What it has printed, with the stream.
        parked: How it was parked last, where it is recorded; None while it waits in memory.
        result: How it ended.
        error: What it raised instead.
        woken: Set when there may be something new for whoever waits.
        scope: Ends it.
    """

    run: str = ""
    shown: str = ""
    calls: list[CallRecord] = field(default_factory=list)
    printed: list[tuple[str, str]] = field(default_factory=list)
    parked: ExecutionResult | None = None
    result: ExecutionResult | None = None
    error: Exception | None = None
    woken: anyio.Event = field(default_factory=anyio.Event)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    def note(self, record: CallRecord) -> None:
        self.calls.append(record)

    def add(self, stream: str, text: str) -> None:
        self.printed.append((stream, text))

    def wake(self) -> None:
        self.woken.set()
        self.woken = anyio.Event()

    def text(self, stream: str) -> str:
        return "".join(text for its, text in self.printed if its == stream)


_LIVE: ContextVar[_Live | None] = ContextVar("_LIVE", default=None)


class Parking:
    """The runs of one session whose questions are kept in a box."""

    def __init__(self, box: QuestionBox, tasks: Callable[[], TaskGroup], execution: Execution) -> None:
        """Listen to the box; `tasks` returns where runs live, and `execution` goes on with one that is recorded."""
        self._box = box
        self._tasks = tasks
        self._execution = execution
        self._kept: dict[str, _Live] = {}
        box.wake = _opened

    async def run(self, work: Work, watching: Watching | None = None) -> ExecutionResult:
        """Run until the end, or until the run is parked."""
        live = _Live()
        self._tasks().start_soon(self._perform, live, work, watching or Watching())
        try:
            return await self._next(live)
        except anyio.get_cancelled_exc_class():
            live.scope.cancel()
            raise

    def begin(self, run: str, work: Work) -> None:
        """Start a run that nobody waits for yet; `wait_for` finds it."""
        live = _Live(run)
        self._keep(live)
        self._tasks().start_soon(self._perform, live, work, Watching())

    def __contains__(self, run: str) -> bool:
        """Tell whether a run is kept here, for `wait_for`."""
        return run in self._kept

    async def wait_for(self, run: str) -> ExecutionResult:
        """Wait until a parked run ends, or is parked with another question; resumes one of an earlier process.

        Raises:
            KeyError: No such run of the principal is parked, or its result was fetched.
            RecordingError: It is recorded, and cannot go on here; the text says why.
            UnavailableError: As of `Execution.resume`.
        """
        if run in self:
            return await self._next(self._kept[run])
        if not self._execution.recorder.unfinished.is_open(run, self._execution.desk.principal):
            raise KeyError(f"{run} is not parked here for this principal, or its result was fetched")
        return await self.run(partial(self._execution.resume, run))

    def resume_waiting(self) -> list[str]:
        """Resume the principal's recorded runs that wait and are not kept here yet; return their ids."""
        recorded = self._execution.recorder.unfinished.waiting(self._execution.desk.principal)
        waiting = [run for run in recorded if run not in self]
        for run in waiting:
            self.begin(run, partial(self._execution.resume, run, needs_servers=False))
        return waiting

    async def _perform(self, live: _Live, work: Work, watching: Watching) -> None:
        _LIVE.set(live)
        watching = watching.telling(live.note, live.add)
        with live.scope, answering(Later(self._box)):
            try:
                result = await work(watching)
                # Its scope was left, and is entered once: the answer resumes the run as one of another process.
                watching = replace(watching, stop=None)
                while result.waits_for is not None:
                    live.parked = result
                    question = result.waits_for.asked
                    given = GivenAnswers(question, await self._box.answer(question), self._box.name)
                    result = await self._execution.resume(result.run_id, watching, given=given, needs_servers=False)
                live.result = result
            except Exception as error:  # noqa: BLE001  # whoever waits for the run gets it
                live.error = error
        live.wake()

    async def _next(self, live: _Live) -> ExecutionResult:
        while live.result is None and live.error is None:
            asked = self._box.of_run(live.run) if live.run else None
            if asked is not None and asked.id != live.shown:
                live.shown = asked.id
                self._keep(live)
                return _parked(live, asked)
            await live.woken.wait()
        self._kept.pop(live.run, None)
        if live.error is not None:
            raise live.error
        return live.result  # type: ignore[return-value]  # there is no error

    def _keep(self, live: _Live) -> None:
        self._kept[live.run] = live
        for run, kept in list(self._kept.items())[: max(0, len(self._kept) - MAX_KEPT)]:
            if kept.result is not None or kept.error is not None:
                del self._kept[run]


def _opened(asked: OpenQuestion) -> None:
    """Wake whoever waits for the run to which the present task belongs."""
    live = _LIVE.get()
    if live is not None:
        live.run = asked.run
        live.wake()


def _parked(live: _Live, asked: OpenQuestion) -> ExecutionResult:
    """Return the state of a waiting run: as it was parked, or, if it waits in memory, what is known of it."""
    stands = live.parked or ExecutionResult(
        outcome="parked",
        stdout=live.text("stdout"),
        stderr=live.text("stderr"),
        calls=list(live.calls),
        usage={},
        run_id=live.run,
        duration_ms=0.0,
    )
    return stands.model_copy(update={"waits_for": WaitsFor.answer_to(asked.question, asked.id)})
