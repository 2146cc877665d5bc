"""How often descriptions may be fetched: by one session, and by one caller of a server in all its sessions.

Above: disclosure.py, tool_shelf.py. Below: nothing. Pure: whoever takes a fetch says what time it is.
"""

from __future__ import annotations

MAX_CALLERS = 1_000
"""How many callers have a rate of their own at a time; those beyond share one."""

_THE_OTHERS = ""


class FetchRate:
    """Bounds how often one may fetch: a bucket that starts full and refills within a minute."""

    def __init__(self, per_minute: int) -> None:
        """Start full."""
        self._per_second = per_minute / 60
        self._most = self._left = float(per_minute)
        self._at = 0.0

    def take(self, now: float) -> float:
        """Take one fetch; return 0, or the seconds to wait if none is left."""
        self._refill(now)
        if self._left < 1:
            return (1 - self._left) / self._per_second
        self._left -= 1
        return 0.0

    def is_full(self, now: float) -> bool:
        """Tell whether it is as good as a new one."""
        self._refill(now)
        return self._left >= self._most

    def _refill(self, now: float) -> None:
        self._left = min(self._most, self._left + (now - self._at) * self._per_second)
        self._at = now


class FetchRates:
    """The rates of callers by name, whatever sessions they begin and end. Those that nobody authenticated have one."""

    def __init__(self, per_minute: int) -> None:
        """Start with nobody."""
        self._per_minute = per_minute
        self._rates: dict[str, FetchRate] = {}

    def __len__(self) -> int:
        """Count the rates that are kept."""
        return len(self._rates)

    def take(self, caller: str, now: float) -> float:
        """Take one of a caller's fetches, the empty name's where nobody is authenticated; return as `FetchRate` does.

        Rates that are full again are forgotten when there are too many. Where that makes no room, a new caller takes
        from what those without a name share: that is less than its own, and never more.
        """
        if caller not in self._rates and len(self._rates) >= MAX_CALLERS:
            self._rates = {name: rate for name, rate in self._rates.items() if not rate.is_full(now)}
            if len(self._rates) >= MAX_CALLERS:
                caller = _THE_OTHERS
        return self._rates.setdefault(caller, FetchRate(self._per_minute)).take(now)
