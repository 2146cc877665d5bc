"""The runs of a server: so many at once, so many waiting, and all of them ended when the server ends.

Above: app.py. Below: anyio. A run is not a task of its request: it lives in the server's task group, so that it can
outlast a request that has to be answered before it ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anyio.abc import TaskGroup

T = TypeVar("T")

REPORT_SECONDS = 5.0
"""How long runs that are stopped have to report that: what prepares one, as a wait for a server, heeds no stop."""


class NoRoomError(Exception):
    """Too many runs wait."""


class DrainingError(Exception):
    """The server is about to end: it has not begun this, or has ended it without hearing what it came to."""

    def __init__(self, *, has_begun: bool = False) -> None:
        """`has_begun` tells which of the two."""
        super().__init__("the server is about to end")
        self.has_begun = has_begun


class LiveRun(Generic[T]):
    """A run that goes on until its work ends, it is stopped, or it is dropped."""

    def __init__(self) -> None:
        """Hold nothing yet."""
        self.stop = anyio.CancelScope()
        """Cancelling it stops the script, and the work goes on to report that."""
        self.has_begun = False
        self._drop = anyio.CancelScope()
        self._ended = anyio.Event()
        self._value: T | None = None
        # Holds until the work has ended: a server that ends meanwhile cancels it without a word.
        self._error: Exception | None = DrainingError()

    async def result(self) -> T:
        """Wait for what the work returns. A caller that is cancelled drops the run, and waits until it has ended.

        Raises:
            Exception: What the work raised.
        """
        try:
            await self._ended.wait()
        except anyio.get_cancelled_exc_class():
            self._drop.cancel()
            with anyio.CancelScope(shield=True):
                await self._ended.wait()
            raise
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # set wherever there is no error

    def drop(self) -> None:
        """End the work at once; whoever waits for the result learns that the server is about to end."""
        self._drop.cancel()

    async def perform(self, work: Callable[[LiveRun[T]], Awaitable[T]], slots: anyio.Semaphore) -> None:
        """Do the work, as a task of the server."""
        try:
            with self._drop:
                async with slots:
                    self.has_begun = True
                    self._error = DrainingError(has_begun=True)
                    self._value = await work(self)
                    self._error = None
        except Exception as error:  # noqa: BLE001  # whoever waits for the result gets it
            self._error = error
        finally:
            self._ended.set()


class Runs:
    """The bounds on runs, and their end."""

    def __init__(self, *, at_once: int, waiting: int) -> None:
        """Allow so many at once and so many more that wait."""
        self._slots = anyio.Semaphore(at_once)
        self._most = at_once + waiting
        self._live: set[LiveRun[object]] = set()
        self._all_ended = anyio.Event()
        self._draining = False

    def __len__(self) -> int:
        """Count the runs, those that wait for their turn included."""
        return len(self._live)

    async def perform(self, tasks: TaskGroup, work: Callable[[LiveRun[T]], Awaitable[T]]) -> T:
        """Do the work of a run as a task of `tasks`, and wait for its result.

        Raises:
            NoRoomError: Too many runs wait.
            DrainingError: The server is about to end.
        """
        if self._draining:
            raise DrainingError
        if len(self._live) >= self._most:
            raise NoRoomError
        live: LiveRun[T] = LiveRun()
        self._live.add(live)  # type: ignore[arg-type]  # what it returns does not matter here
        tasks.start_soon(self._perform, live, work)
        return await live.result()

    async def _perform(self, live: LiveRun[T], work: Callable[[LiveRun[T]], Awaitable[T]]) -> None:
        try:
            await live.perform(work, self._slots)
        finally:
            self._live.discard(live)
            if not self._live:
                self._all_ended.set()

    async def drain(self, grace_seconds: float) -> None:
        """Take nothing more in; let runs go on for so long, then stop them, and drop those that do not report that.

        Those that still wait for their turn then are dropped at once: nothing of them was executed.
        """
        self._draining = True
        if not self._live:
            return
        self._all_ended = anyio.Event()
        with anyio.move_on_after(grace_seconds):
            await self._all_ended.wait()
        for live in list(self._live):
            if live.has_begun:
                live.stop.cancel()
            else:
                live.drop()
        with anyio.move_on_after(REPORT_SECONDS):
            await self._all_ended.wait()
        for live in list(self._live):
            live.drop()
        if self._live:
            await self._all_ended.wait()
