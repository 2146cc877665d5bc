"""The recorded runs that this process has resumed, with their results for clients that come for them later.

Above: recorder.py, which has them, and sessions.py. Below: anyio. Nobody waits for a run that was resumed in the
background, so its result is kept until the client comes that had asked for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from broker.runs.envelope import ExecutionResult

MAX_KEPT = 100
"""Results that nobody has come for; the oldest are dropped."""

_Key: TypeAlias = tuple[str, str]
"""The run and the principal."""


@dataclass(slots=True, eq=False)
class _Resumption:
    ended: anyio.Event = field(default_factory=anyio.Event)
    result: ExecutionResult | None = None


class Resumptions:
    """The runs that one process resumes, each with the principal for whom it does: nobody else is told of it."""

    def __init__(self) -> None:
        """Start with none."""
        self._live: dict[_Key, _Resumption] = {}
        self._kept: dict[_Key, ExecutionResult] = {}

    async def perform(
        self, run_id: str, principal: str, work: Callable[[], Awaitable[ExecutionResult]]
    ) -> ExecutionResult:
        """Resume a run, for everyone who comes for it meanwhile."""
        key, resumed = (run_id, principal), _Resumption()
        self._live.setdefault(key, resumed)
        try:
            resumed.result = await work()
        finally:
            if self._live.get(key) is resumed:
                del self._live[key]
            resumed.ended.set()
        return resumed.result

    def keep(self, result: ExecutionResult, principal: str) -> None:
        """Keep the result of a run that nobody has waited for."""
        self._kept[result.run_id, principal] = result
        for key in list(self._kept)[: max(0, len(self._kept) - MAX_KEPT)]:
            del self._kept[key]

    async def result(self, run_id: str, principal: str) -> ExecutionResult | None:
        """Return what a run came to that was resumed here, once; None where it was not, or can go on from there."""
        key = run_id, principal
        live = self._live.get(key)
        if live is not None:
            await live.ended.wait()
        kept = self._kept.pop(key, None)
        result = kept if live is None or live.result is None else live.result
        return None if result is None or result.outcome == "parked" else result
