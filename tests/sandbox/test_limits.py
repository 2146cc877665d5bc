"""Limits are checked when they are made, and the text names the field."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest

from sandbox import Completed, Limits
from sandbox.guest_messages import decode_step
from sandbox.limits import BATCH_BYTES, LEAST_MEMORY_BYTES, MAX_DEPTH, MIB

FIELDS = [field.name for field in dataclasses.fields(Limits)]
WHOLE = [name for name in FIELDS if not name.endswith("_seconds")]


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("value", [0, -1, math.inf, -math.inf, math.nan, None, "1", True, [1]])
def test_a_limit_must_be_a_positive_number(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be "):
        Limits(**{name: value})


@pytest.mark.parametrize("name", WHOLE)
def test_counts_and_sizes_are_integers(name):
    with pytest.raises(ValueError, match=f"^{name} must be an integer, not 1000000000.0$"):
        Limits(**{name: 1e9})  # type: ignore[arg-type]


def test_memory_has_room_for_the_interpreter():
    with pytest.raises(ValueError, match=f"^memory_bytes must be at least {LEAST_MEMORY_BYTES}"):
        Limits(memory_bytes=LEAST_MEMORY_BYTES - 1)
    assert Limits(memory_bytes=LEAST_MEMORY_BYTES).memory_bytes == LEAST_MEMORY_BYTES


def test_depth_is_bounded_by_what_the_host_can_go_through():
    with pytest.raises(ValueError, match=f"^depth must be at most {MAX_DEPTH}"):
        Limits(depth=MAX_DEPTH + 1)
    value: list[object] = []
    for _ in range(MAX_DEPTH - 1):
        value = [value]
    text = json.dumps({"calls": [], "cancelled": [], "outcome": {"completed": value}})
    assert decode_step(text, Limits(depth=MAX_DEPTH)).outcome == Completed(value)


def test_a_step_has_room_for_a_value_a_call_or_a_batch_of_calls_whichever_is_longest():
    assert Limits(value_bytes=1, argument_bytes=1).step_bytes == BATCH_BYTES + MIB
    assert Limits(value_bytes=9 * MIB, argument_bytes=1).step_bytes == 10 * MIB
    assert Limits(value_bytes=1, argument_bytes=9 * MIB).step_bytes == 10 * MIB


def test_every_limit_has_a_finite_default_and_none_can_be_changed():
    limits = Limits()
    assert all(0 < getattr(limits, name) < math.inf for name in FIELDS)
    with pytest.raises(dataclasses.FrozenInstanceError):
        limits.calls = 5  # type: ignore[misc]
