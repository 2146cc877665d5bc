"""Which lines of a script are shown: all of a short one, those around its calls of a long one.

Above: the terminal and the HTML page. Below: nothing. Pure.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_AROUND = 3


def around(marked: Collection[int], count: int) -> list[int]:
    """Return the numbers of the marked ones of `count` lines, and of a few before and behind each."""
    there = (one for one in marked if 1 <= one <= count)
    return sorted({near for one in there for near in range(max(1, one - _AROUND), min(count, one + _AROUND) + 1)})


def excerpt(script: Sequence[str], marked: Collection[int], most: int) -> Iterator[tuple[int, str | None]]:
    """Yield lines with their numbers, and None with how many lines are left out there.

    All of a script of at most `most` lines; of a longer one the first `most` around the marked ones, or of all if none
    is marked.
    """
    count = len(script)
    numbers = range(1, count + 1) if count <= most else (around(marked, count) or range(1, count + 1))[:most]
    for before, number in pairwise([0, *numbers, count + 1]):
        if number > before + 1:
            yield number - before - 1, None
        if number <= count:
            yield number, script[number - 1]
