"""Tells when a script has to let others use the event loop.

Above: the isolates, which ask before each step, and whoever answers calls without waiting. A turn of the event loop
costs about as much as a quick step does, so not every step gives one; one after a wait for a child process, or for the
request that brought a script, gives none.
"""

from __future__ import annotations

import threading
import time

import anyio.lowlevel

from sandbox.engine import QUICK_SECONDS


class Pace(threading.local):
    """How long others have waited for the event loop of this thread."""

    def __init__(self) -> None:
        """Begin a turn, in each thread that asks."""
        self._began = time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether it is somebody else's turn."""
        return time.monotonic() - self._began >= QUICK_SECONDS

    async def keep(self) -> None:
        """Give way where that is due; raise a cancellation in any case."""
        if self.is_due:
            await self.give_way()
        else:
            await anyio.lowlevel.checkpoint_if_cancelled()

    async def give_way(self) -> None:
        """Let everybody else have a turn; a cancellation is raised here."""
        await anyio.lowlevel.checkpoint()
        self.note_wait()

    def note_wait(self) -> None:
        """Begin a turn anew: somebody has waited for what came from outside, so that all others had theirs."""
        self._began = time.monotonic()


PACE = Pace()
