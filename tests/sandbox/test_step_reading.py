"""A long message of a guest is read in a thread."""

from __future__ import annotations

import json
import threading

import pytest

from sandbox import step_reading
from sandbox.limits import Limits
from sandbox.outcome import Completed
from sandbox.step_reading import LONG_CHARACTERS, read_step, step_of
from sandbox.terms import Terms

pytestmark = pytest.mark.anyio

TERMS = Terms(Limits(), 1, 0)


@pytest.mark.parametrize(("characters", "is_long"), [(10, False), (LONG_CHARACTERS, True)])
async def test_a_long_message_is_read_in_a_thread(monkeypatch, characters, is_long):
    threads = []

    def read(answer, terms):
        threads.append(threading.get_ident())
        return read_step(answer, terms)

    monkeypatch.setattr(step_reading, "read_step", read)
    value = "x" * characters
    message: dict[str, object] = {"calls": [], "cancelled": [], "timer": None, "outcome": {"completed": value}}
    step = await step_of(json.dumps(message), TERMS)
    assert step.outcome == Completed(value)
    assert (threads != [threading.get_ident()]) == is_long
