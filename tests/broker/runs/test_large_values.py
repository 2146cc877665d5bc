"""What takes as long as a value has parts keeps nobody waiting where there are many."""

from __future__ import annotations

import threading

import pytest

from broker import Broker
from broker.redaction import Redactor
from broker.runs.large_values import MANY_PARTS, has_many_parts, worked_on

pytestmark = pytest.mark.anyio

NUMBERS = list(range(MANY_PARTS))
VALUES = {
    "a text": ("x" * 1_000_000, False),
    "as many as are quickly gone through": (NUMBERS, False),
    "one more": ([*NUMBERS, 0], True),
    "members": ({str(number): number for number in [*NUMBERS, MANY_PARTS]}, True),
    "in parts": ([NUMBERS[: MANY_PARTS // 2]] * 2, True),
    "deep": ([[[{"a": [*NUMBERS, 0]}]]], True),
}


@pytest.mark.parametrize("case", VALUES)
async def test_work_on_many_parts_is_done_in_a_thread(case):
    value, is_large = VALUES[case]
    assert has_many_parts(value) == is_large
    assert (await worked_on(value, threading.get_ident) != threading.get_ident()) == is_large


async def test_the_value_of_a_script_is_redacted_in_a_thread_where_it_is_large(monkeypatch):
    threads = []

    def redacted(_self, value):
        threads.append(threading.get_ident())
        return value

    monkeypatch.setattr(Redactor, "value", redacted)
    async with Broker() as broker:
        for count in (1, 50_000):
            result = await broker.session().execute_code(f"list(range({count}))")
            assert result.value == list(range(count))
    assert [thread == threading.get_ident() for thread in threads] == [True, False]
