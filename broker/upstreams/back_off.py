"""How long to wait before something that has ended is begun again: a connection, or a stream on one.

Above: upstream.py, connection.py. Below: nothing.
"""

from __future__ import annotations

import random

import anyio

FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 60.0
_STEADY_SECONDS = 30.0


class BackOff:
    """Delays that double each time that it did not last."""

    def __init__(self) -> None:
        """Begin with the shortest."""
        self.reset()

    def reset(self) -> None:
        """Forget what did not last."""
        self._delay = FIRST_DELAY_SECONDS

    async def wait(self, lasted: float) -> None:
        """Wait after it has lasted for so many seconds."""
        steady = lasted >= _STEADY_SECONDS
        self._delay = FIRST_DELAY_SECONDS if steady else min(self._delay * 2, LONGEST_DELAY_SECONDS)
        await anyio.sleep(self._delay * random.uniform(0.5, 1.0))  # noqa: S311  # jitter
