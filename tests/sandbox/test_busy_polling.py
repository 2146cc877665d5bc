"""A wait is tried as long as that pays, and seldom otherwise."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import pytest

from sandbox.busy_polling import LOST_SECONDS, MAX_LEFT_OUT, BusyPolling


@pytest.fixture(autouse=True)
def _nobody_takes_the_core(monkeypatch):
    monkeypatch.setattr("sandbox.busy_polling.LOST_SECONDS", math.inf)


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
    assert set(gaps[8:]) == {MAX_LEFT_OUT}


def test_what_pays_again_makes_up_for_the_failures_before():
    polling = BusyPolling()
    tried(polling, 600)
    while polling.poll(lambda: b"data") is None:
        pass
    for _ in range(8):
        polling.poll(lambda: b"data")
    assert tried(polling, 3) == [0, 2]


@pytest.mark.parametrize(("computed", "is_tried_again"), [(1.1, True), (0.9, False)])
def test_a_wait_pays_only_if_nobody_else_had_the_core_for_much_of_it(monkeypatch, computed, is_tried_again):
    began, ended = 0.0, 2 * LOST_SECONDS
    clocks = SimpleNamespace(
        monotonic=iter((began, ended)).__next__, thread_time=iter((began, computed * LOST_SECONDS)).__next__
    )
    polling = BusyPolling()
    with monkeypatch.context() as patched:
        patched.setattr("sandbox.busy_polling.time", clocks)
        patched.setattr("sandbox.busy_polling.LOST_SECONDS", LOST_SECONDS)
        assert polling.poll(lambda: b"data") == b"data"
    assert (polling.poll(lambda: b"data") is not None) == is_tried_again
