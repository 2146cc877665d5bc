"""The threads that Wasm runs on.

A step is handed over and its result handed back with one wake-up each way, to the thread that worked last, whose
caches are warm: that is half the price of a generic executor. How deep a thread's stack is does not matter, because a
guest runs on a fiber of its own.
"""

from __future__ import annotations

import collections
import contextlib
import queue
import threading
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio
import anyio.lowlevel

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

AGAIN = object()
"""Returned by a function that has more to do, and lets others that wait for a thread go first."""


class WasmThreads:
    """A bounded set of threads, started when first needed; each runs one step at a time."""

    def __init__(self, count: int) -> None:
        """Allow `count` threads; further jobs wait."""
        self._count = count
        self._threads: list[_Thread] = []
        self._idle: list[_Thread] = []
        self._backlog: collections.deque[_Job[Any]] = collections.deque()
        self._lock = threading.Lock()

    async def run(self, function: Callable[[], T], interrupt: Callable[[], None] | None = None) -> T:
        """Run `function` on one of the threads, to its end even when the caller is cancelled.

        Args:
            function: What to run; again, perhaps on another thread, as often as it returns `AGAIN`.
            interrupt: Called once on cancellation, to make `function` end soon.

        Raises:
            BaseException: What `function` raised.
        """
        job = _Job(function)
        self._hand_over(job)
        try:
            await job.done.wait()
        except anyio.get_cancelled_exc_class():
            if interrupt is not None:
                interrupt()
            with anyio.CancelScope(shield=True):
                await job.done.wait()
            raise
        return job.result()

    def close(self) -> None:
        """Let every thread end after the step it is in; the next job gets new ones."""
        with self._lock:
            for thread in self._threads:
                thread.jobs.put(None)
            self._threads.clear()
            self._idle.clear()

    def next_job(self, thread: _Thread, unfinished: _Job[Any] | None) -> _Job[Any] | None:
        """Return a job that waits for a thread, else the unfinished one; without one, note that `thread` is idle."""
        with self._lock:
            if unfinished is not None:
                self._backlog.append(unfinished)
            if self._backlog:
                return self._backlog.popleft()
            self._idle.append(thread)
            return None

    def _hand_over(self, job: _Job[Any]) -> None:
        with self._lock:
            if self._idle:
                thread = self._idle.pop()
            elif len(self._threads) < self._count:
                thread = _Thread(self, f"wasm-{len(self._threads)}")
                self._threads.append(thread)
            else:
                self._backlog.append(job)
                return
        thread.jobs.put(job)


async def run_aside(function: Callable[[], T]) -> T:
    """Run `function` on a thread of its own. A cancelled caller does not wait for it, nor does the end of the process.

    Raises:
        BaseException: What `function` raised.
    """
    job = _Job(function)

    def work() -> None:
        job.perform()
        job.wake()

    threading.Thread(target=work, name="wasm-aside", daemon=True).start()
    await job.done.wait()
    return job.result()


class _Thread:
    """One thread and the queue it is handed jobs through."""

    def __init__(self, threads: WasmThreads, name: str) -> None:
        self.jobs: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._threads = threads
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def _work(self) -> None:
        while (job := self.jobs.get()) is not None:
            following: _Job[Any] | None = job
            while following is not None:
                current, is_over = following, following.perform()
                following = self._threads.next_job(self, None if is_over else current)
                if is_over:
                    current.wake()


class _Job(Generic[T]):
    """One function call on another thread, with a way to wake the task that waits for it."""

    def __init__(self, function: Callable[[], T]) -> None:
        self.done = anyio.Event()
        self._function = function
        self._wake = waker(self.done.set)
        self._value: T | None = None
        self._error: BaseException | None = None

    def perform(self) -> bool:
        """Return whether the function has nothing more to do."""
        try:
            self._value = self._function()
        except BaseException as error:  # noqa: BLE001  # handed to the task that waits
            self._error = error
        return self._error is not None or self._value is not AGAIN

    def wake(self) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop has ended meanwhile: nobody waits
            self._wake()

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # set whenever there is no error


def waker(callback: Callable[[], object]) -> Callable[[], object]:
    """Return a function that runs `callback` on the current event loop, from any thread."""
    native = anyio.lowlevel.current_token().native_token
    schedule = getattr(native, "call_soon_threadsafe", None) or native.run_sync_soon  # type: ignore[attr-defined]
    return lambda: schedule(callback)
