"""The logical clock of one run: all the time a script can observe.

Between steps it follows the caller's clock. Inside a step it stands still but for a small advance at each reading, so
that loops waiting on a clock end, and for `time.sleep`, which moves it forward at once; the driver then waits
for real time to catch up before it goes on. So the times that a run sees depend only on its steps.
"""

from __future__ import annotations

READING_NS = 20_000
"""How far one reading moves the clock, in nanoseconds: about as long as a reading takes."""


class LogicalClock:
    """Monotonic and wall-clock time in nanoseconds."""

    def __init__(self, wall_ns: int, origin_ns: int = 0) -> None:
        """Start at `wall_ns` (Unix time); its monotonic time starts where the kernel's last script left it."""
        self.elapsed_ns = 0  # since the run began
        self.origin_ns = origin_ns
        self._wall_ns = wall_ns

    def advance_to(self, elapsed_ns: int) -> None:
        """Move forward to `elapsed_ns` after the beginning; never back."""
        self.elapsed_ns = max(self.elapsed_ns, elapsed_ns)

    def read_monotonic_ns(self) -> int:
        """Return the monotonic time and move the clock by one reading."""
        self.elapsed_ns += READING_NS
        return self.origin_ns + self.elapsed_ns

    def read_wall_ns(self) -> int:
        """Return Unix time and move the clock by one reading."""
        self.elapsed_ns += READING_NS
        return self._wall_ns + self.elapsed_ns
