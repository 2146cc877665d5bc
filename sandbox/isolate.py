"""What the driver needs of a guest: each step is one message in and one out.

Above: run.py; thread_isolate.py and process_isolate.py, which take the messages to a guest. Below: host_messages.py,
step_reading.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from sandbox.host_messages import encode_references, encode_resume, encode_start
from sandbox.step_reading import is_reusable, read_references, step_of
from sandbox.terms import BEFORE_ANY_RUN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from sandbox.guest_messages import Step
    from sandbox.outcome import Raised, Reference, Stopped
    from sandbox.terms import Terms


class Isolate(ABC):
    """One script's guest. A cancelled method ends the guest and waits until it has."""

    def __init__(self) -> None:
        """Make a guest that belongs to no run yet."""
        self.is_reusable = True
        """Whether it can take on a run: no script is going on in it, and none has broken it."""
        self._terms = BEFORE_ANY_RUN

    @property
    @abstractmethod
    def elapsed_ns(self) -> int:
        """The run's clock."""

    @property
    @abstractmethod
    def cpu_seconds(self) -> float:
        """Processor time inside the guest so far."""

    @property
    @abstractmethod
    def output_bytes(self) -> int:
        """Printed text so far, as UTF-8."""

    @abstractmethod
    def take_on(self, terms: Terms, on_output: Callable[[int, str], None]) -> None:
        """Make it the guest of a run; arguments as in `Instance.take_on`."""
        self._terms = terms

    async def references(self, script: str, unimported: Iterable[str]) -> tuple[Reference, ...] | Raised | Stopped:
        """Return which tools the script names, instead of running it; with these names also without an import."""
        self.is_reusable = False
        asked = encode_references(script, unimported)
        answer = await self._enter("references", asked, 0, self._terms.limits.wall_seconds)
        return read_references(answer, self._terms.limits)

    async def start(self, script: str, filename: str, manifest: Mapping[str, Any], seconds: float) -> Step:
        """Begin the script; the guest has `seconds` until it must have returned."""
        return await self._step("start", encode_start(script, filename, manifest, self._terms), 0, seconds)

    async def resume(self, completions: Iterable[str], now_ns: int, seconds: float) -> Step:
        """Hand in encoded completions at `now_ns` of the run's clock."""
        return await self._step("resume", encode_resume(completions), now_ns, seconds)

    @abstractmethod
    def close(self) -> None:
        """Free the instance."""

    async def _step(self, export: str, message: str, now_ns: int, seconds: float) -> Step:
        self.is_reusable = False
        answer = await self._enter(export, message, now_ns, seconds)
        step = await step_of(answer, self._terms)
        self.is_reusable = is_reusable(answer, step)
        return step

    @abstractmethod
    async def _enter(self, export: str, argument: str, now_ns: int, seconds: float) -> str | Raised | Stopped:
        """Enter an export of the guest at `now_ns` of the run's clock; return its answer, or what ended the guest."""
