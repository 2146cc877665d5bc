"""The threads that Wasm runs on.

They are our own for their stack: wasmtime does not compare `max_wasm_stack` with what the thread has, and a thread
that is too small ends the process. A step is handed over and its result handed back with one wake-up each way,
which is half the price of a generic executor.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio
import anyio.lowlevel

if TYPE_CHECKING:
    from collections.abc import Callable

STACK_BYTES = 16 * 1024 * 1024
"""Stack of a thread that runs Wasm: at least four times `engine.MAX_WASM_STACK`."""

T = TypeVar("T")


class WasmThreads:
    """A fixed set of threads, started when first needed; each runs one step at a time."""

    def __init__(self, count: int) -> None:
        """Prepares `count` threads."""
        self._count = count
        self._threads: list[threading.Thread] = []
        self._jobs: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()

    async def run(self, function: Callable[[], T], interrupt: Callable[[], None] | None = None) -> T:
        """Runs `function` on one of the threads, to its end even when the caller is cancelled.

        Args:
            function: What to run.
            interrupt: Called once on cancellation, to make `function` end soon.

        Raises:
            BaseException: What `function` raised.
        """
        job = _Job(function)
        self._ensure_thread()
        self._jobs.put(job)
        try:
            await job.done.wait()
        except anyio.get_cancelled_exc_class():
            if interrupt is not None:
                interrupt()
            with anyio.CancelScope(shield=True):
                await job.done.wait()
            raise
        return job.result()

    def _ensure_thread(self) -> None:
        with self._lock:
            if len(self._threads) == self._count:
                return
            thread = threading.Thread(target=self._work, name=f"wasm-{len(self._threads)}", daemon=True)
            before = threading.stack_size(STACK_BYTES)
            try:
                thread.start()
            finally:
                threading.stack_size(before)
            self._threads.append(thread)

    def close(self) -> None:
        """Lets every thread end after the step it is in."""
        for _ in self._threads:
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job.perform()


class _Job(Generic[T]):
    """One function call on another thread, with a way to wake the task that waits for it."""

    def __init__(self, function: Callable[[], T]) -> None:
        self.done = anyio.Event()
        self._function = function
        self._wake = _waker(self.done.set)
        self._value: T | None = None
        self._error: BaseException | None = None

    def perform(self) -> None:
        try:
            self._value = self._function()
        except BaseException as error:  # noqa: BLE001  # handed to the task that waits
            self._error = error
        with contextlib.suppress(RuntimeError):  # the event loop has ended meanwhile: nobody waits
            self._wake()

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # set whenever there is no error


def _waker(callback: Callable[[], object]) -> Callable[[], object]:
    """Returns a function that runs `callback` on the current event loop, from any thread."""
    native = anyio.lowlevel.current_token().native_token
    schedule = getattr(native, "call_soon_threadsafe", None) or native.run_sync_soon  # type: ignore[attr-defined]  # asyncio, trio
    return lambda: schedule(callback)
