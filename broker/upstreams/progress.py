"""What a server says of how far a call is, for whoever wants to know: without secrets, and no faster than it is taken.

Above: calls.py. Below: nothing. The SDK makes a task of each word: those of a server that says much to somebody who
listens slowly would fill the memory.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.shared.dispatcher import ProgressFnT

_Words: TypeAlias = "tuple[float, float | None, str | None]"


class Progress:
    """The progress of one call; of what comes while its listener is busy, the last is told."""

    def __init__(self, listener: ProgressFnT, redact: Callable[[str], str]) -> None:
        """Tell a listener."""
        self._listener = listener
        self._redact = redact
        self._latest: _Words | None = None
        self._is_busy = False

    async def tell(self, progress: float, total: float | None, message: str | None) -> None:
        """Tell how far the server says it is; a number that is not finite cannot be passed on."""
        if not math.isfinite(progress):
            return
        of = total if total is not None and math.isfinite(total) else None
        self._latest = progress, of, None if message is None else self._redact(message)
        if self._is_busy:
            return
        self._is_busy = True
        try:
            while self._latest is not None:
                words, self._latest = self._latest, None
                await self._listener(*words)
        finally:
            self._is_busy = False
