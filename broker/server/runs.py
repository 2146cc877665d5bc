"""The runs of a server: bounds on how many run and wait, and their end when the server ends.

Above: app.py. Below: turns.py, room.py.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Self, TypeVar

import anyio

from broker.room import gives_way
from broker.server.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

T = TypeVar("T")

REPORT_SECONDS = 5.0
"""How long runs that are stopped have to report that."""


class NoRoomError(Exception):
    """Too many runs wait."""


class DrainingError(Exception):
    """The server is about to end: it has not begun the run, or has ended it without its outcome."""

    def __init__(self, *, has_begun: bool = False) -> None:
        """`has_begun` tells which of the two."""
        super().__init__("the server is about to end")
        self.has_begun = has_begun


class Stop(anyio.CancelScope):
    """Stops a script, and knows whether that has begun: it is entered when it does, after all that prepares it."""

    def __new__(cls) -> Self:
        """Make one of this class, not the event loop's."""
        return object.__new__(cls)

    def __init__(self) -> None:
        """Stop nothing yet."""
        self._scope = anyio.CancelScope()
        self.was_entered = False

    def __enter__(self) -> Self:
        """Note that the script begins."""
        self.was_entered = True
        self._scope.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        """Take the stop of the script as its end."""
        return bool(self._scope.__exit__(kind, error, traceback))

    def cancel(self, _reason: str | None = None) -> None:
        """Stop the script."""
        self._scope.cancel()

    @property
    def cancelled_caught(self) -> bool:
        """Whether the script was stopped."""
        return self._scope.cancelled_caught


class LiveRun:
    """A run that goes on until its work ends, it is stopped, or it is dropped: a claim on the room for runs."""

    def __init__(self, principal: str, used_at: float) -> None:
        """Hold nothing yet; `principal` is whose it is. Of those that wait, the lowest `used_at` is refused first."""
        self.principal = principal
        self.used_at = used_at
        self.stop = Stop()
        """Cancelling it stops the script, and the work goes on to report that."""
        self.is_busy = False
        """Whether it has its turn, and is not refused any more."""
        self._drop = anyio.CancelScope()
        self._is_refused = False

    @property
    def has_begun(self) -> bool:
        """Whether anything of the script may have been executed."""
        return self.stop.was_entered

    def drop(self) -> None:
        """End the work at once; whoever waits for the result learns that the server is about to end."""
        self._drop.cancel()

    def refuse(self) -> None:
        """Give up a run that has not begun, for want of room."""
        self._is_refused = True
        self._drop.cancel()

    async def perform(self, work: Callable[[LiveRun], Awaitable[T]], turns: Turns) -> T:
        """Do the work when its turn has come.

        Raises:
            NoRoomError: It was refused.
            DrainingError: It was dropped.
        """
        with self._drop:
            async with turns.turn(self.principal):
                self.is_busy = True
                return await work(self)
        if self._is_refused:
            raise NoRoomError
        raise DrainingError(has_begun=self.has_begun)


class Runs:
    """The bounds on runs, and their end."""

    def __init__(self, *, at_once: int, waiting: int) -> None:
        """Allow `at_once` runs at the same time, and `waiting` more that wait."""
        self._turns = Turns(at_once)
        self._most = at_once + waiting
        self._live: dict[int, LiveRun] = {}
        self._numbers = count()
        self._all_ended = anyio.Event()
        self._draining = False

    def __len__(self) -> int:
        """Count the runs, those that wait for their turn included."""
        return len(self._live)

    async def perform(self, work: Callable[[LiveRun], Awaitable[T]], principal: str = "") -> T:
        """Do the work of a run of a principal, when its turn has come, and return its result.

        Raises:
            NoRoomError: Too many runs wait.
            DrainingError: The server is about to end.
        """
        if self._draining:
            raise DrainingError
        if len(self._live) >= self._most:
            self._make_room(principal)
        number = next(self._numbers)
        self._live[number] = live = LiveRun(principal, used_at=-number)  # who came last goes first
        try:
            return await live.perform(work, self._turns)
        finally:
            self._live.pop(number, None)
            if not self._live:
                self._all_ended.set()

    def _make_room(self, principal: str) -> None:
        """Refuse, in the place of a new run, the last one of whoever has the most that still waits for its turn.

        Raises:
            NoRoomError: Nobody else has more.
        """
        leaving = gives_way(self._live, principal)
        if leaving is None or self._live[leaving].principal == principal:
            raise NoRoomError
        self._live.pop(leaving).refuse()

    async def drain(self, grace_seconds: float) -> None:
        """Begin no more runs; after `grace_seconds`, stop those that go on, and drop those that then do not report.

        Those that have not begun then are dropped at once, as they wait for their turn or for what prepares them:
        nothing of them was executed.
        """
        self._draining = True
        if not self._live:
            return
        self._all_ended = anyio.Event()
        with anyio.move_on_after(grace_seconds):
            await self._all_ended.wait()
        for live in list(self._live.values()):
            if live.has_begun:
                live.stop.cancel()
            else:
                live.drop()
        with anyio.move_on_after(REPORT_SECONDS):
            await self._all_ended.wait()
        for live in list(self._live.values()):
            live.drop()
        if self._live:
            await self._all_ended.wait()
