"""What the driver needs of a guest, and the guest in this process that provides it.

A step is one message in and one out, so a worker process can stand behind the same interface.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Protocol

import anyio.lowlevel

from sandbox.instance import Instance
from sandbox.messages import Step, encode_resume, encode_start, read_references, read_step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from sandbox.image import Image
    from sandbox.instance import Entry
    from sandbox.limits import Limits
    from sandbox.outcome import Raised, Reference, Stopped
    from sandbox.threads import WasmThreads


class Isolate(Protocol):
    """One script's guest. A cancelled method ends the guest and waits until it has."""

    @property
    def elapsed_ns(self) -> int:
        """The run's monotonic clock."""

    @property
    def cpu_seconds(self) -> float:
        """Processor time inside the guest so far."""

    @property
    def output_bytes(self) -> int:
        """Printed text so far, as UTF-8."""

    async def start(self, script: str, filename: str, manifest: Mapping[str, Any], seconds: float) -> Step:
        """Begins the script; the guest has `seconds` until it must have returned."""

    async def resume(self, completions: Iterable[str], now_ns: int, seconds: float) -> Step:
        """Hands in encoded completions at `now_ns` of the run's clock."""

    def close(self) -> None:
        """Frees the instance."""


class ThreadIsolate:
    """A guest in this process.

    A step begins on the event loop's own thread, because handing it to another one costs more than most steps take;
    a step that is not over at the next tick goes on on a thread.
    """

    def __init__(self, instance: Instance, threads: WasmThreads, limits: Limits) -> None:
        """Wraps an instance that has not run a script; `create` makes one."""
        self._instance = instance
        self._threads = threads
        self._limits = limits
        self._is_quick = False

    @classmethod
    async def create(
        cls,
        image: Image,
        threads: WasmThreads,
        limits: Limits,
        *,
        seed: int,
        wall_ns: int,
        on_output: Callable[[int, str], None],
    ) -> ThreadIsolate:
        """Instantiates the guest on one of the threads; arguments as of `Instance`."""
        make = functools.partial(Instance, image, limits, seed=seed, wall_ns=wall_ns, on_output=on_output)
        return cls(await threads.run(make), threads, limits)

    @property
    def elapsed_ns(self) -> int:
        """The run's monotonic clock."""
        return self._instance.clock.elapsed_ns

    @property
    def cpu_seconds(self) -> float:
        """Processor time inside the guest so far."""
        return self._instance.cpu_seconds

    @property
    def output_bytes(self) -> int:
        """Printed text so far, as UTF-8."""
        return self._instance.output_bytes

    async def warm(self) -> None:
        """Does the first-touch work of a run ahead of it."""
        await self._enter("warm", "", self._limits.wall_seconds)

    async def references(self, script: str) -> tuple[Reference, ...] | Raised | Stopped:
        """Returns which tools the script names."""
        answer = await self._enter("references", script, self._limits.wall_seconds)
        return read_references(answer, self._limits)

    async def start(self, script: str, filename: str, manifest: Mapping[str, Any], seconds: float) -> Step:
        """Begins the script; the guest has `seconds` until it must have returned."""
        return await self._step("start", encode_start(script, filename, self._instance.seed, manifest), seconds)

    async def resume(self, completions: Iterable[str], now_ns: int, seconds: float) -> Step:
        """Hands in encoded completions at `now_ns` of the run's clock."""
        self._instance.clock.advance_to(now_ns)
        return await self._step("resume", encode_resume(completions), seconds)

    def close(self) -> None:
        """Frees the instance."""
        self._instance.close()

    async def _step(self, export: str, message: str, seconds: float) -> Step:
        answer = await self._enter(export, message, seconds)
        return read_step(answer, self._limits)

    async def _enter(self, export: str, argument: str, seconds: float) -> str | Raised | Stopped:
        entry = self._instance.enter(export, argument, seconds)
        if self._is_quick and entry.advance():
            await anyio.lowlevel.checkpoint()
        else:
            self._is_quick = await self._threads.run(functools.partial(_advance_to_end, entry), self._interrupt)
        return entry.answer

    def _interrupt(self) -> None:
        self._instance.is_interrupted = True


def _advance_to_end(entry: Entry) -> bool:
    """Returns whether the guest was done within one tick."""
    if entry.advance():
        return True
    while not entry.advance():
        pass
    return False
