"""How the host waits for a step: awake after a brief one, as long as the worker is awake too."""

from __future__ import annotations

import socket
import time
from types import SimpleNamespace

import pytest

from sandbox import Limits, worker_line
from sandbox.busy_polling import BRIEF_SECONDS
from sandbox.engine import QUICK_SECONDS
from sandbox.frames import Kind, Reading, encode_reading
from sandbox.seat import Seat
from sandbox.worker_line import WorkerLine

pytestmark = pytest.mark.anyio

MINUTE = 60.0


@pytest.fixture
def seat():
    seat = Seat(1, lambda _output, _text: None)
    seat.take_on(Limits())
    return seat


@pytest.fixture
def slept():
    """For how many milliseconds the host has slept, each time."""
    return []


@pytest.fixture
def line(seat, slept, monkeypatch):
    """A line on which the answer for the seat has come."""
    monkeypatch.setattr(worker_line, "POLLED_SECONDS", MINUTE)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        line = WorkerLine(ours, ours.close)
        line.open_steps[seat.number] = seat
        monkeypatch.setattr(line, "_poll", SimpleNamespace(poll=lambda seconds: slept.append(seconds) or True))
        theirs.sendall(encode_reading(Kind.ANSWER, seat.number, Reading(0.0, 0, "said")))
        yield line


@pytest.mark.parametrize(
    ("step_seconds", "silence", "is_awake"),
    [
        (0.9 * BRIEF_SECONDS, 0.0, True),
        (0.9 * BRIEF_SECONDS, 2 * MINUTE, False),
        (1.1 * BRIEF_SECONDS, 0.0, False),
        (None, 0.0, False),
    ],
)
async def test_a_step_is_waited_for_awake_after_a_brief_one_if_the_worker_is_awake(  # noqa: PLR0917  # fixtures
    line, seat, slept, step_seconds, silence, is_awake
):
    seat.step_seconds = step_seconds
    line._heard_at = time.monotonic() - silence
    assert line.answer_at_once(seat) is seat.answer is not None
    assert (slept == []) == is_awake


async def test_what_has_come_says_that_the_worker_is_awake(line, seat):
    line.answer_at_once(seat)
    assert time.monotonic() - line._heard_at < MINUTE


async def test_a_step_after_a_long_one_is_left_to_the_event_loop(line, seat, slept):
    seat.step_seconds = QUICK_SECONDS
    assert line.answer_at_once(seat) is None
    assert slept == []
