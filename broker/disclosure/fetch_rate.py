"""How often a session may fetch descriptions.

Above: disclosure.py. Below: nothing. Pure: whoever takes a fetch says what time it is.
"""

from __future__ import annotations


class FetchRate:
    """Bounds how often a session may fetch: a bucket that starts full and refills within a minute."""

    def __init__(self, per_minute: int) -> None:
        """Start full."""
        self._per_second = per_minute / 60
        self._most = self._left = float(per_minute)
        self._at = 0.0

    def take(self, now: float) -> float:
        """Take one fetch; return 0, or the seconds to wait if none is left."""
        self._left = min(self._most, self._left + (now - self._at) * self._per_second)
        self._at = now
        if self._left < 1:
            return (1 - self._left) / self._per_second
        self._left -= 1
        return 0.0
