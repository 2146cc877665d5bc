"""Waits awake, where that is worth it: waking a process that sleeps takes longer than many answers do.

Above: worker.py, which waits for the host, and worker_line.py, which waits for a worker. On a busy machine the core is
better left to others: one of them may be who is waited for. So what did not pay is tried less often.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

POLLED_SECONDS = 0.0008
"""How long a wait is awake: a server of the host's own process answers sooner, on a slow machine too, and one in a
process of its own later."""

BRIEF_SECONDS = POLLED_SECONDS / 2
"""What may take so long that a wait for it pays: waking up the other one comes on top."""

LOST_SECONDS = 0.00005
"""How long others may have had the core in a wait that paid."""

MAX_LEFT_OUT = 255
"""Waits that are not tried between two that are."""


class BusyPolling:
    """The waits for one source, with a backoff: all are tried as long as they pay, after each failure half as many."""

    def __init__(self) -> None:
        """Try the first."""
        self._interval = 0
        self._left_out = 0

    def poll(self, receive: Callable[[], T | None]) -> T | None:
        """Return what comes within a moment; None if nothing does, or if this wait is not tried.

        Args:
            receive: Returns what has come, None for nothing.
        """
        if self._left_out:
            self._left_out -= 1
            return None
        began, computed = time.monotonic(), time.thread_time()
        while (received := receive()) is None and time.monotonic() < began + POLLED_SECONDS:
            pass
        lost = time.monotonic() - began - (time.thread_time() - computed)
        if received is None or lost > LOST_SECONDS:
            self._interval = self._left_out = min(2 * self._interval + 1, MAX_LEFT_OUT)
        else:
            self._interval //= 2
        return received
