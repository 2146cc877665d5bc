"""When a script lets others use the event loop."""

from __future__ import annotations

import threading
import time

import pytest

from sandbox.engine import QUICK_SECONDS
from sandbox.pace import Pace


@pytest.fixture
def now(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    return clock


def test_a_turn_is_over_after_a_while_and_begins_anew_when_somebody_has_waited(now):
    kept = Pace()
    seen = [kept.is_due]
    now[0] = QUICK_SECONDS
    seen.append(kept.is_due)
    kept.note_wait()
    seen.append(kept.is_due)
    assert seen == [False, True, False]


def test_a_wait_on_one_thread_gives_nobody_a_turn_on_another(now):
    kept = Pace()
    now[0] = QUICK_SECONDS
    other = threading.Thread(target=kept.note_wait)
    other.start()
    other.join()
    assert kept.is_due
