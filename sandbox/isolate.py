"""What the driver needs of a guest, and the guest in this process that provides it.

A step is one message in and one out, so a worker process can stand behind the same interface.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from sandbox.host_messages import encode_references, encode_resume, encode_start
from sandbox.pace import Pace
from sandbox.step_reading import is_whole, read_references, step_of
from sandbox.terms import BEFORE_ANY_RUN
from sandbox.threads import AGAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from sandbox.entry import Entry
    from sandbox.guest_messages import Step
    from sandbox.instance import Instance
    from sandbox.outcome import Raised, Reference, Stopped
    from sandbox.pool import Spares
    from sandbox.terms import Terms
    from sandbox.threads import WasmThreads


class Isolate(Protocol):
    """One script's guest. A cancelled method ends the guest and waits until it has."""

    @property
    def elapsed_ns(self) -> int:
        """The run's clock."""

    @property
    def cpu_seconds(self) -> float:
        """Processor time inside the guest so far."""

    @property
    def output_bytes(self) -> int:
        """Printed text so far, as UTF-8."""

    @property
    def is_whole(self) -> bool:
        """Whether no script is going on in it, and none has broken it, so that it can take on a run."""

    def take_on(self, terms: Terms, on_output: Callable[[int, str], None]) -> None:
        """Makes it the guest of a run."""

    async def references(self, script: str, unimported: Iterable[str]) -> tuple[Reference, ...] | Raised | Stopped:
        """Returns which tools the script names, instead of running it; with these names also without an import."""

    async def start(self, script: str, filename: str, manifest: Mapping[str, Any], seconds: float) -> Step:
        """Begins the script; the guest has `seconds` until it must have returned."""

    async def resume(self, completions: Iterable[str], now_ns: int, seconds: float) -> Step:
        """Hands in encoded completions at `now_ns` of the run's clock."""

    def close(self) -> None:
        """Frees the instance."""


class ThreadIsolate:
    """A guest in this process.

    A step begins on the event loop's own thread, because handing it to another one costs more than most steps take;
    a step that is not over when its time is up goes on on a thread, and so does the one after it.
    """

    def __init__(self, instance: Instance, threads: WasmThreads, spares: Spares) -> None:
        """Wraps an instance that belongs to no run yet; `spares` frees it."""
        self.is_whole = True
        self._instance = instance
        self._threads = threads
        self._spares = spares
        self._terms = BEFORE_ANY_RUN
        self._is_quick = True
        self._pace = Pace()

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
        """Makes it the guest of a run; arguments as of `Instance`."""
        self._terms = terms
        self._instance.take_on(terms, on_output)

    async def references(self, script: str, unimported: Iterable[str]) -> tuple[Reference, ...] | Raised | Stopped:
        """Returns which tools the script names."""
        asked = encode_references(script, unimported)
        answer = await self._enter("references", asked, self._terms.limits.wall_seconds)
        return read_references(answer, self._terms.limits)

    async def start(self, script: str, filename: str, manifest: Mapping[str, Any], seconds: float) -> Step:
        """Begins the script; the guest has `seconds` until it must have returned."""
        return await self._step("start", encode_start(script, filename, manifest, self._terms), seconds)

    async def resume(self, completions: Iterable[str], now_ns: int, seconds: float) -> Step:
        """Hands in encoded completions at `now_ns` of the run's clock."""
        self._instance.clock.advance_to(now_ns)
        return await self._step("resume", encode_resume(completions), seconds)

    def close(self) -> None:
        """Frees the instance."""
        self._spares.free(self._instance)

    async def _step(self, export: str, message: str, seconds: float) -> Step:
        answer = await self._enter(export, message, seconds)
        step = await step_of(answer, self._terms)
        self.is_whole = is_whole(answer, step)
        return step

    async def _enter(self, export: str, argument: str, seconds: float) -> str | Raised | Stopped:
        self.is_whole = False
        entry = self._instance.enter(export, argument, seconds)
        if self._is_quick and entry.advance():
            if self._pace.is_due:
                await self._pace.give_way()
        else:
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
