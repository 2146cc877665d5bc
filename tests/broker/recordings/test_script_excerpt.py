"""Which lines of a recorded script are shown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from broker.recordings.showing.script_excerpt import excerpt

SCRIPT = [f"line {number}" for number in range(1, 21)]


def shown(marked, most):
    return [number if line is not None else f"{number} left out" for number, line in excerpt(SCRIPT, marked, most)]


def test_a_short_script_is_shown_whole():
    assert shown({5}, 20) == list(range(1, 21))


def test_a_long_one_is_shown_around_what_is_marked():
    assert shown({5, 7, 20}, 19) == ["1 left out", *range(2, 11), "6 left out", *range(17, 21)]


def test_no_more_than_the_most_is_shown():
    assert shown({5, 12}, 6) == ["1 left out", *range(2, 8), "13 left out"]


def test_a_long_one_without_a_place_is_shown_from_its_beginning():
    assert shown({0, 21, 10**18}, 3) == [1, 2, 3, "17 left out"]


@given(st.sets(st.integers(-5, 30)), st.integers(1, 25), st.integers(0, 20))
def test_every_line_is_shown_or_counted_once(marked, most, count):
    parts = list(excerpt(SCRIPT[:count], marked, most))
    whole = [number for number, line in parts if line is not None]
    assert [SCRIPT[number - 1] for number in whole] == [line for _, line in parts if line is not None]
    assert len(whole) + sum(number for number, line in parts if line is None) == count
    assert len(whole) <= most
    assert whole == sorted(set(whole))
