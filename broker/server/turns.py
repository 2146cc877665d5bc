"""Decides whose run begins next: that of the principal with the fewest runs.

Above: runs.py. Below: anyio. Among equals, the principal goes first that had no turn for longest. Where nobody is
authenticated all are one principal, and begin in the order they came in.
"""

from __future__ import annotations

from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass(slots=True, eq=False)
class _Waiting:
    principal: str
    has_turn: anyio.Event = field(default_factory=anyio.Event)


class Turns:
    """Turns of principals, so many of them at once."""

    def __init__(self, at_once: int) -> None:
        """Give the first ones to whoever comes."""
        self._free = at_once
        self._waiting: list[_Waiting] = []
        self._taken: Counter[str] = Counter()
        self._given = 0
        self._last: dict[str, int] = {}

    @asynccontextmanager
    async def turn(self, principal: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it for the time of a block."""
        if self._free:
            self._free -= 1
            self._take(principal)
        else:
            await self._wait(principal)
        try:
            yield
        finally:
            self._pass_on(principal)

    async def _wait(self, principal: str) -> None:
        waiting = _Waiting(principal)
        self._waiting.append(waiting)
        try:
            await waiting.has_turn.wait()
        except anyio.get_cancelled_exc_class():
            if waiting.has_turn.is_set():
                self._pass_on(principal)
            else:
                self._waiting.remove(waiting)
            raise

    def _take(self, principal: str) -> None:
        self._given += 1
        self._taken[principal] += 1
        self._last[principal] = self._given

    def _pass_on(self, principal: str) -> None:
        self._taken[principal] -= 1
        if not self._waiting:
            self._free += 1
        else:
            following = min(
                self._waiting, key=lambda one: (self._taken[one.principal], self._last.get(one.principal, 0))
            )
            self._waiting.remove(following)
            self._take(following.principal)
            following.has_turn.set()
        self._taken += Counter()  # without those that have none
        for name in self._last.keys() - self._taken.keys() - {one.principal for one in self._waiting}:
            del self._last[name]
