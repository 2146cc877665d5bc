"""A guest in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.isolate import Isolate
from sandbox.pace import PACE
from sandbox.threads import AGAIN

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.entry import Entry
    from sandbox.instance import Instance
    from sandbox.outcome import Raised, Stopped
    from sandbox.pool import Spares
    from sandbox.terms import Terms
    from sandbox.threads import WasmThreads


class ThreadIsolate(Isolate):
    """A guest in this process.

    A step begins on the event loop's own thread, because handing it to another one costs more than most steps take;
    a step that is not over when its time is up goes on on a thread, and so does the one after it.
    """

    def __init__(self, instance: Instance, threads: WasmThreads, spares: Spares) -> None:
        """Wrap an instance that belongs to no run yet; `spares` frees it."""
        super().__init__()
        self._instance = instance
        self._threads = threads
        self._spares = spares
        self._is_quick = True

    @property
    def elapsed_ns(self) -> int:
        """The run's clock."""
        return self._instance.clock.elapsed_ns

    @property
    def cpu_seconds(self) -> float:
        """Processor time inside the guest so far."""
        return self._instance.cpu_seconds

    @property
    def output_bytes(self) -> int:
        """Printed text so far, as UTF-8."""
        return self._instance.output_bytes

    def take_on(self, terms: Terms, on_output: Callable[[int, str], None]) -> None:
        """Make it the guest of a run; arguments as in `Instance.take_on`."""
        super().take_on(terms, on_output)
        self._instance.take_on(terms, on_output)

    def close(self) -> None:
        """Free the instance."""
        self._spares.free(self._instance)

    async def _enter(self, export: str, argument: str, now_ns: int, seconds: float) -> str | Raised | Stopped:
        if PACE.is_due:
            await PACE.give_way()
        self._instance.clock.advance_to(now_ns)
        entry = self._instance.enter(export, argument, seconds)
        if not (self._is_quick and entry.advance()):
            turns = _Turns(entry)
            await self._threads.run(turns.take, self._interrupt)
            self._is_quick = turns.taken == 1
        return entry.answer

    def _interrupt(self) -> None:
        self._instance.is_interrupted = True


class _Turns:
    """A call into a guest that runs on threads, a tick at a time."""

    def __init__(self, entry: Entry) -> None:
        self.taken = 0
        self._entry = entry

    def take(self) -> object:
        self.taken += 1
        return None if self._entry.advance() else AGAIN
