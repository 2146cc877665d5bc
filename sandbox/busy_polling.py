"""Waits for a socket awake, where that is worth it: waking a process that sleeps takes longer than many answers do.

On a busy machine the core is better left to others: one of them may be who is waited for. So what did not pay is tried
less often.
"""

from __future__ import annotations

import contextlib
import socket
import time

POLLED_SECONDS = 0.0002
"""How long a wait is awake: a call that a function of the host's own process answers takes less."""

MOST_LEFT_OUT = 255
"""Waits that are not tried between two that are."""


class Backoff:
    """Which waits begin awake: all, as long as they end so; after each failure, one of twice as many."""

    def __init__(self) -> None:
        """Begins with all."""
        self._interval = 0
        self._left_out = 0

    def is_due(self) -> bool:
        """Returns whether the wait that begins now is tried."""
        if self._left_out:
            self._left_out -= 1
            return False
        return True

    def succeeded(self) -> None:
        """Notes that something came while awake."""
        self._interval //= 2

    def failed(self) -> None:
        """Notes that nothing came."""
        self._interval = self._left_out = min(2 * self._interval + 1, MOST_LEFT_OUT)


class BusyPolling:
    """A socket that is read by waiting for it."""

    def __init__(self, connection: socket.socket) -> None:
        """Takes a connected socket in blocking mode."""
        self._connection = connection
        self._backoff = Backoff()

    def receive(self, size: int) -> bytes:
        """Returns what has come, at most so many bytes; waits until something has. Empty once the other end is closed.

        Raises:
            OSError: The connection is broken.
        """
        if self._backoff.is_due():
            until = time.monotonic() + POLLED_SECONDS
            while time.monotonic() < until:
                with contextlib.suppress(BlockingIOError):
                    data = self._connection.recv(size, socket.MSG_DONTWAIT)
                    self._backoff.succeeded()
                    return data
            self._backoff.failed()
        return self._connection.recv(size)
