"""A wait is tried as long as that pays, and seldom otherwise."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from sandbox.busy_polling import MOST_LEFT_OUT, BusyPolling


def tried(polling: BusyPolling, waits: int) -> list[int]:
    """Which of so many waits for what does not come are tried, by their numbers."""
    numbers: set[int] = set()
    for number in range(waits):
        polling.poll(partial(numbers.add, number))
    return sorted(numbers)


def test_what_comes_meanwhile_is_received(monkeypatch):
    monkeypatch.setattr("sandbox.busy_polling.POLLED_SECONDS", 60)
    answers = iter([None, None, b"data"])
    assert BusyPolling().poll(lambda: next(answers)) == b"data"


def test_an_end_of_the_stream_is_something_that_came():
    assert BusyPolling().poll(lambda: b"") == b""


def test_every_wait_is_tried_as_long_as_something_comes():
    polling = BusyPolling()
    assert all(polling.poll(lambda: b"data") for _ in range(1_000))


def test_after_each_failure_half_as_many_are_tried_and_never_none_for_long():
    numbers = tried(BusyPolling(), 2_000)
    gaps = [after - before - 1 for before, after in pairwise(numbers)]
    assert gaps[:8] == [1, 3, 7, 15, 31, 63, 127, 255]
    assert set(gaps[8:]) == {MOST_LEFT_OUT}


def test_what_pays_again_makes_up_for_the_failures_before():
    polling = BusyPolling()
    tried(polling, 600)
    while polling.poll(lambda: b"data") is None:
        pass
    for _ in range(8):
        polling.poll(lambda: b"data")
    assert tried(polling, 3) == [0, 2]
