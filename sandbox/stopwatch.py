"""The wall time of one run. It stands still while a person is asked."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Stopwatch:
    """Counts from its creation; nested and concurrent pauses count once."""

    skips = False
    """Whether waiting takes no real time."""

    def __init__(self, elapsed_seconds: float = 0.0) -> None:
        """Start at zero, or at the time that a resumed run had used."""
        self._began = time.monotonic() - elapsed_seconds
        self._paused_at: float | None = None
        self._pauses = 0
        self._listener: Callable[[], object] | None = None

    @property
    def elapsed(self) -> float:
        """Seconds so far, pauses left out."""
        return (time.monotonic() if self._paused_at is None else self._paused_at) - self._began

    @property
    def is_paused(self) -> bool:
        """Whether somebody holds a pause."""
        return self._pauses > 0

    def on_change(self, listener: Callable[[], object] | None) -> None:
        """Call `listener`, instead of the one before, whenever the time stops or goes on; nobody for None."""
        self._listener = listener

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Stand still inside the block."""
        self._pauses += 1
        if self._pauses == 1:
            self._paused_at = time.monotonic()
            self._tell()
        try:
            yield
        finally:
            self._pauses -= 1
            if self._pauses == 0 and self._paused_at is not None:
                self._began += time.monotonic() - self._paused_at
                self._paused_at = None
                self._tell()

    async def wait(self, seconds: float) -> None:
        """Wait for that many seconds."""
        await anyio.sleep(seconds)

    def _tell(self) -> None:
        if self._listener is not None:
            self._listener()


class SkippingStopwatch(Stopwatch):
    """The time of a run whose answers are known: only waiting makes it pass, and that takes no real time."""

    skips = True
    _elapsed = 0.0

    @property
    def elapsed(self) -> float:
        """Seconds so far."""
        return self._elapsed

    async def wait(self, seconds: float) -> None:
        """Add that many seconds at once."""
        self._elapsed += max(seconds, 0.0)
        self._tell()
        await anyio.lowlevel.checkpoint()
