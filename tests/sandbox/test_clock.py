"""The clocks of a run."""

from __future__ import annotations

from sandbox import Stopwatch
from sandbox.clock import READING_NS, LogicalClock


def test_the_logical_clock_moves_with_readings_and_never_back():
    clock = LogicalClock(wall_ns=1_000_000_000)
    assert clock.read_monotonic_ns() == READING_NS
    assert clock.read_wall_ns() == 1_000_000_000 + 2 * READING_NS
    clock.advance_to(5_000_000)
    clock.advance_to(1)
    assert clock.elapsed_ns == 5_000_000


def test_a_paused_stopwatch_stands_still_until_the_last_pause_ends():
    watch = Stopwatch()
    with watch.paused():
        first = watch.elapsed
        with watch.paused():
            pass
        assert watch.is_paused
        assert watch.elapsed == first
    assert watch.elapsed >= first


def test_a_stopwatch_is_not_paused_by_itself():
    assert not Stopwatch().is_paused
