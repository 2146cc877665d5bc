"""An event loop that never blocks: it runs until every task waits, then says until when.

asyncio's tasks, futures, locks, timeouts and task groups run on it unchanged. There are no file descriptors,
processes or threads in here, so those parts of `AbstractEventLoop` stay unimplemented.
"""

import asyncio
import collections
import contextvars
import heapq
import math
import time

from . import failures


class _Handle(list):
    """A callback to be run: it, its arguments and its context, or nothing once cancelled.

    A list of three is made without a line of Python; `asyncio.Handle` took as long as what most callbacks do.
    """

    __slots__ = ()

    cancel = list.clear

    def cancelled(self):
        return not self

    def get_context(self):
        return self[2]


class SansIOLoop(asyncio.AbstractEventLoop):
    """The loop of one script. `run_until_blocked` is the only thing that makes it move."""

    def __init__(self, report_exception):
        self._ready = collections.deque()
        self._timers = []
        self._report_exception = report_exception
        self._exception_handler = None
        self._task_factory = None
        self._asyncgens = []

    def run_until_blocked(self) -> float | None:
        """Run callbacks until none is ready, at the time the clock shows meanwhile; return what `next_timer` does."""
        ready = self._ready
        asyncio._set_running_loop(self)
        try:
            while True:
                if self._timers:
                    self._collect_due_timers()
                if not ready:
                    return self.next_timer() if self._timers else None
                for _ in range(len(ready)):
                    handle = ready.popleft()
                    if not handle:
                        continue
                    callback, args, context = handle
                    try:
                        if len(args) == 1:  # as of nearly all: a tuple of them takes as long as the rest
                            context.run(callback, args[0])
                        else:
                            context.run(callback, *args)
                    except (SystemExit, KeyboardInterrupt):
                        raise
                    except BaseException as error:
                        message = f"Exception in callback {failures.text_of(callback, repr)}"
                        self.call_exception_handler({"message": message, "exception": error})
        finally:
            asyncio._set_running_loop(None)

    def clear(self) -> None:
        """Forget what is still to be done."""
        self._ready.clear()
        self._timers.clear()

    def next_timer(self) -> float | None:
        """Return the monotonic time of the next timer, in seconds; None where none comes, or only infinitely late."""
        while self._timers and self._timers[0].cancelled():
            heapq.heappop(self._timers)._scheduled = False
        when = self._timers[0].when() if self._timers else math.inf
        return None if when == math.inf else when

    def _collect_due_timers(self):
        if self.next_timer() is None:
            return
        now = self.time()
        while (when := self.next_timer()) is not None and when <= now:
            timer = heapq.heappop(self._timers)
            timer._scheduled = False
            self._ready.append(_Handle((_run_timer, (timer,), _NO_CONTEXT)))

    def time(self):
        return time.monotonic()

    def call_soon(self, callback, *args, context=None):
        handle = _Handle((callback, args, contextvars.copy_context() if context is None else context))
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(self, delay, callback, *args, context=None):
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(self, when, callback, *args, context=None):
        if math.isnan(when):
            raise ValueError("the time of a timer is not a number")
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        timer._scheduled = True
        heapq.heappush(self._timers, timer)
        return timer

    def _timer_handle_cancelled(self, handle):
        pass

    def create_future(self):
        return asyncio.Future(loop=self)

    def create_task(self, coro, **kwargs):
        if self._task_factory is not None:
            return self._task_factory(self, coro, **kwargs)
        return asyncio.Task(coro, loop=self, **kwargs)

    def set_task_factory(self, factory):
        self._task_factory = factory

    def get_task_factory(self):
        return self._task_factory

    def run_in_executor(self, executor, func, *args):
        """Run the function here and now, since there are no threads; the future that is returned is done."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except BaseException as error:
            if isinstance(error, StopIteration):
                error = RuntimeError("the function raised StopIteration")
            future.set_exception(error)
        return future

    def is_running(self):
        return True

    def is_closed(self):
        return False

    get_debug = staticmethod(bool)
    """False, without a line of Python: each future and each task asks."""

    def set_debug(self, enabled):
        pass

    def run_until_complete(self, future):
        raise RuntimeError("the script already runs inside an event loop: write `await ...` instead")

    run_forever = run_until_complete

    def stop(self):
        raise RuntimeError("the script's event loop cannot be stopped: `return` ends the script")

    def close(self):
        pass

    async def shutdown_asyncgens(self):
        pass

    async def shutdown_default_executor(self, timeout=None):
        pass

    def set_exception_handler(self, handler):
        self._exception_handler = handler

    def get_exception_handler(self):
        return self._exception_handler

    def default_exception_handler(self, context):
        self._report_exception(context)

    def call_exception_handler(self, context):
        if self._exception_handler is None:
            self._report_exception(context)
            return
        try:
            self._exception_handler(self, context)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self._report_exception({"message": "Unhandled error in exception handler", "exception": error})


def _run_timer(timer):
    """Run what a timer is for, in its own context, unless it was cancelled after its time had come."""
    if not timer.cancelled():
        timer._run()


_NO_CONTEXT = contextvars.Context()
