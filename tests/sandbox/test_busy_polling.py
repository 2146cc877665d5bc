"""A wait begins awake where that has paid, and everything that comes is received either way."""

from __future__ import annotations

import socket

from hypothesis import given
from hypothesis import strategies as st

from sandbox.busy_polling import MOST_LEFT_OUT, Backoff, BusyPolling


def tried(backoff: Backoff, waits: int) -> int:
    """How many of so many waits begin awake, none of them with success."""
    count = 0
    for _ in range(waits):
        if backoff.is_due():
            count += 1
            backoff.failed()
    return count


def test_every_wait_is_tried_as_long_as_something_comes():
    backoff = Backoff()
    for _ in range(1_000):
        assert backoff.is_due()
        backoff.succeeded()


def test_where_nothing_ever_comes_few_waits_are_tried():
    assert tried(Backoff(), 10_000) < 50


@given(st.lists(st.booleans(), max_size=200))
def test_whatever_came_before_a_wait_is_tried_again_soon_and_then_all_while_it_pays(comes):
    backoff = Backoff()
    for one in comes:
        if backoff.is_due():
            backoff.succeeded() if one else backoff.failed()
    assert any(backoff.is_due() for _ in range(MOST_LEFT_OUT + 1))
    backoff.succeeded()
    assert backoff.is_due()


def test_all_that_is_sent_is_received_and_then_the_end():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        polling = BusyPolling(theirs)
        ours.sendall(b"first")
        assert polling.receive(100) == b"first"
        ours.sendall(b"second")
        assert polling.receive(3) + polling.receive(3) == b"second"
        ours.close()
        assert [polling.receive(100) for _ in range(3)] == [b"", b"", b""]
