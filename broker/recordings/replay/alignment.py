"""Aligns two sequences in bounded time: which items belong together, in order.

Above: compare.py. Below: difflib, whose answer this is for as long as that has the time: items that are all alike, or
that differ at every other place, take it the square of their number or more.
"""

from __future__ import annotations

from collections import Counter
from difflib import Match, SequenceMatcher
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_PAIRS = 5_000_000
"""Pairs of items that are looked at, about a second; afterwards only equal beginnings and ends are put together."""


class Alignment(SequenceMatcher[str]):
    """Matches as difflib does, until that has taken too long.

    Attributes:
        is_complete: Whether no two items that might belong together were left apart.
    """

    def __init__(self, then: Sequence[str], now: Sequence[str]) -> None:
        """Take the two sequences."""
        super().__init__(None, then, now, autojunk=False)
        self.is_complete = True
        self._then, self._now = then, now
        equal = Counter(now)
        self._cost = [0, *accumulate(1 + equal[item] for item in then)]
        self._left = MAX_PAIRS

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Match:
        """Return the longest equal piece, or what can be had without looking for it."""
        end, other_end = len(self._then) if ahi is None else ahi, len(self._now) if bhi is None else bhi
        cost = self._cost[end] - self._cost[alo]
        if cost <= self._left:
            self._left -= cost
            return super().find_longest_match(alo, end, blo, other_end)
        then, now = self._then[alo:end], self._now[blo:other_end]
        if beginning := equal_at_start(then, now):
            return Match(alo, blo, beginning)
        if ending := equal_at_start(reversed(then), reversed(now)):
            return Match(end - ending, other_end - ending, ending)
        self.is_complete = self.is_complete and set(then).isdisjoint(now)
        return Match(alo, blo, 0)


def equal_at_start(then: Iterable[str], now: Iterable[str]) -> int:
    """Return how many items are equal before the first that are not."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(then, now, strict=False)))
