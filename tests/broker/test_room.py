"""Which session gives way where all of them are taken."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.room import gives_way


@dataclass(frozen=True)
class Held:
    principal: str
    used_at: float
    is_busy: bool = False


CASES: dict[str, Any] = {
    "the longest idle of whoever holds the most": ({"a1": ("a", 2), "a2": ("a", 1), "b1": ("b", 0)}, "b", "a2"),
    "also for somebody who holds none": ({"a1": ("a", 2), "a2": ("a", 3), "b1": ("b", 0)}, "c", "a1"),
    "ones own, for who holds the most": ({"a1": ("a", 5), "a2": ("a", 6), "b1": ("b", 0)}, "a", "a1"),
    "ones own, for who holds as many": ({"a1": ("a", 5), "b1": ("b", 0)}, "a", "a1"),
    "none that is busy": ({"a1": ("a", 1, True), "a2": ("a", 2), "b1": ("b", 0)}, "b", "a2"),
    "ones own, when the others are busy": ({"a1": ("a", 1, True), "a2": ("a", 2, True), "b1": ("b", 9)}, "b", "b1"),
    "nobodys, when all are busy": ({"a1": ("a", 1, True), "a2": ("a", 2, True)}, "b", None),
    "nobodys of who holds as many": ({"a1": ("a", 1, True), "b1": ("b", 2)}, "a", None),
}


@pytest.mark.parametrize("case", CASES)
def test_what_gives_way_is(case):
    claims, asker, expected = CASES[case]
    assert gives_way({key: Held(*claim) for key, claim in claims.items()}, asker) == expected


@given(st.dictionaries(st.text(), st.builds(Held, st.sampled_from("abc"), st.floats(), st.booleans())))
def test_it_is_idle_and_of_whoever_asks_or_holds_more(claims):
    held = Counter(claim.principal for claim in claims.values())
    may_go = {
        key
        for key, claim in claims.items()
        if not claim.is_busy and (claim.principal == "a" or held[claim.principal] > held["a"])
    }
    key = gives_way(claims, "a")
    assert key in may_go if may_go else key is None
