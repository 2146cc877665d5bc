"""Tells the clients of running scripts that time goes by: one task for all runs.

Above: app.py. Below: notices.py, which says when and what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from broker.server.notices import Notices


class Beats:
    """The runs of one lifespan that go on."""

    def __init__(self) -> None:
        """Start with none."""
        self._live: set[Notices] = set()
        self._begun = anyio.Event()

    def add(self, notices: Notices) -> None:
        """Take a run that begins."""
        self._live.add(notices)
        self._begun.set()

    def discard(self, notices: Notices) -> None:
        """Leave out a run that has ended."""
        self._live.discard(notices)

    async def run(self) -> None:
        """Tell of the time until cancelled. Runs that begin while it sleeps are due later than those it sleeps for."""
        while True:
            await self._begun.wait()
            while self._live:
                await anyio.sleep_until(min(notices.beat_at for notices in self._live))
                now = anyio.current_time()
                for notices in self._live:
                    if notices.beat_at <= now:
                        notices.beat(now)
            self._begun = anyio.Event()
