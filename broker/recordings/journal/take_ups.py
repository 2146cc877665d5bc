"""The recorded runs that are taken up in this process: who comes for one of them later waits for its result.

Above: recorder.py, which has them, and sessions.py. Below: anyio. Nobody waits for a run that was taken up in the
background, so its result is kept until the client comes that had asked for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from broker.runs.envelope import ExecutionResult

MOST_KEPT = 100
"""Results that nobody has come for; the oldest are dropped."""

_Key: TypeAlias = tuple[str, str]
"""The run and the principal."""


@dataclass(slots=True, eq=False)
class _TakenUp:
    ended: anyio.Event = field(default_factory=anyio.Event)
    result: ExecutionResult | None = None


class TakeUps:
    """The runs that one process takes up, each with the principal for whom it does: nobody else is told of it."""

    def __init__(self) -> None:
        """Start with none."""
        self._live: dict[_Key, _TakenUp] = {}
        self._kept: dict[_Key, ExecutionResult] = {}

    async def perform(
        self, run_id: str, principal: str, work: Callable[[], Awaitable[ExecutionResult]]
    ) -> ExecutionResult:
        """Do the work of a run, for all who come for it meanwhile."""
        key, taken_up = (run_id, principal), _TakenUp()
        self._live.setdefault(key, taken_up)
        try:
            taken_up.result = await work()
        finally:
            if self._live.get(key) is taken_up:
                del self._live[key]
            taken_up.ended.set()
        return taken_up.result

    def keep(self, result: ExecutionResult, principal: str) -> None:
        """Keep the result of a run that nobody has waited for."""
        self._kept[result.run_id, principal] = result
        for key in list(self._kept)[: max(0, len(self._kept) - MOST_KEPT)]:
            del self._kept[key]

    async def result(self, run_id: str, principal: str) -> ExecutionResult | None:
        """Return what a run came to that was taken up here, once; None where it was not, or can go on from there."""
        key = run_id, principal
        live = self._live.get(key)
        if live is not None:
            await live.ended.wait()
        kept = self._kept.pop(key, None)
        result = kept if live is None or live.result is None else live.result
        return None if result is None or result.outcome == "parked" else result
