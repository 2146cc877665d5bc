"""The logical clock of one run: all the time a script can observe.

Between steps it follows the caller's clock. Inside a step it stands still but for a small advance at each reading, so
that loops waiting on a clock end, and for `time.sleep`, which moves it forward at once; the driver then waits
for real time to catch up before it goes on. A run's times are thus a function of its steps alone.
"""

from __future__ import annotations

READING_NS = 20_000
"""How far one reading moves the clock, in nanoseconds: about what it costs."""


class LogicalClock:
    """Monotonic and wall-clock time in nanoseconds."""

    def __init__(self, wall_ns: int) -> None:
        """Starts at zero on the monotonic side and at `wall_ns` (Unix time) on the other."""
        self._monotonic_ns = 0
        self._wall_offset_ns = wall_ns

    @property
    def elapsed_ns(self) -> int:
        """Monotonic time, without moving the clock."""
        return self._monotonic_ns

    def advance_to(self, monotonic_ns: int) -> None:
        """Moves forward to `monotonic_ns`; never back."""
        self._monotonic_ns = max(self._monotonic_ns, monotonic_ns)

    def read_monotonic_ns(self) -> int:
        """Returns the monotonic time and moves the clock by one reading."""
        self._monotonic_ns += READING_NS
        return self._monotonic_ns

    def read_wall_ns(self) -> int:
        """Returns Unix time and moves the clock by one reading."""
        return self._wall_offset_ns + self.read_monotonic_ns()
