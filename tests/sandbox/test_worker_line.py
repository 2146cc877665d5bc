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
ANSWER = encode_reading(Kind.ANSWER, 1, Reading(0.0, 0, "said"))


@pytest.fixture
def seat():
    seat = Seat(1, lambda _output, _text: None)
    seat.take_on(Limits())
    return seat


@pytest.fixture
def waits():
    """How the host has waited, each time."""
    return []


@pytest.fixture
def worker():
    """The worker's end of the line."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield SimpleNamespace(line_end=ours, answers=lambda: theirs.sendall(ANSWER))


@pytest.fixture
def line(worker, seat, waits, monkeypatch):
    """A line on which the answer comes as soon as the host waits for it."""

    def wait_awake(receive):
        waits.append("awake")
        worker.answers()
        return receive()

    def sleep(_milliseconds):
        waits.append("asleep")
        worker.answers()
        return True

    monkeypatch.setattr(worker_line, "POLLED_SECONDS", MINUTE)
    line = WorkerLine(worker.line_end, worker.line_end.close)
    line.open_steps[seat.number] = seat
    monkeypatch.setattr(line, "_polling", SimpleNamespace(poll=wait_awake))
    monkeypatch.setattr(line, "_poll", SimpleNamespace(poll=sleep))
    return line


@pytest.mark.parametrize(
    ("step_seconds", "silence", "how"),
    [
        (0.9 * BRIEF_SECONDS, 0.0, "awake"),
        (0.9 * BRIEF_SECONDS, 2 * MINUTE, "asleep"),
        (1.1 * BRIEF_SECONDS, 0.0, "asleep"),
        (None, 0.0, "asleep"),
    ],
)
async def test_a_step_is_waited_for_awake_after_a_brief_one_if_the_worker_is_awake(  # noqa: PLR0917  # fixtures
    line, seat, waits, step_seconds, silence, how
):
    seat.step_seconds = step_seconds
    line._heard_at = time.monotonic() - silence
    assert line.answer_at_once(seat) is seat.answer is not None
    assert waits == [how]


async def test_an_answer_that_has_come_is_not_waited_for(line, seat, waits, worker):
    worker.answers()
    assert line.answer_at_once(seat) is seat.answer is not None
    assert waits == []


async def test_what_has_come_says_that_the_worker_is_awake(line, seat):
    line.answer_at_once(seat)
    assert time.monotonic() - line._heard_at < MINUTE


async def test_a_step_after_a_long_one_is_left_to_the_event_loop(line, seat, waits):
    seat.step_seconds = QUICK_SECONDS
    assert line.answer_at_once(seat) is None
    assert waits == []
