"""Passes on what a server reports of a call's progress: without secrets, and no faster than the listener takes it.

Above: calls.py. Below: anyio. The SDK makes a task of each word: those of a server that says much to somebody who
listens slowly would fill the memory.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, TypeAlias

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.shared.dispatcher import ProgressFnT

_Words: TypeAlias = "tuple[float, float | None, str | None]"

MAX_WAITING = 20
"""Words that wait for a listener who is busy."""

END_SECONDS = 1.0
"""How long an answer waits for a listener who is busy with the words before it."""


class Progress:
    """The progress of one call; of the reports that come while the listener is busy, only the last are passed on."""

    def __init__(self, listener: ProgressFnT, redact: Callable[[str], str]) -> None:
        """Tell a listener."""
        self._listener = listener
        self._redact = redact
        self._waiting: deque[_Words] = deque(maxlen=MAX_WAITING)
        self._telling = anyio.Lock()

    async def tell(self, progress: float, total: float | None, message: str | None) -> None:
        """Tell how far the server says it is; a number that is not finite cannot be passed on."""
        if not math.isfinite(progress):
            return
        of = total if total is not None and math.isfinite(total) else None
        self._waiting.append((progress, of, None if message is None else self._redact(message)))
        if self._telling.locked():
            return
        async with self._telling:
            while self._waiting:
                await self._listener(*self._waiting.popleft())

    async def end(self) -> None:
        """Wait, but not long, until the reports before the answer are passed on; later ones are dropped."""
        with anyio.move_on_after(END_SECONDS):
            async with self._telling:
                pass
        self._waiting.clear()
