"""Tells when a script has to let others use the event loop.

Above: the isolates, which ask after each step, and whoever answers calls without waiting. A turn of the event loop
costs about as much as a quick step does, so not every step gives one.
"""

from __future__ import annotations

import time

import anyio.lowlevel

from sandbox.engine import QUICK_SECONDS


class Pace:
    """The turn of a script whose steps are quick and whose calls are answered without waiting."""

    def __init__(self) -> None:
        """Begin a turn."""
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
        self._began = time.monotonic()
