"""Words of a query that no tool says, as words that tools do say.

Above: the index. Below: the words of the index. In this order: two known words written as one, one wrong letter
(missing, extra, other or swapped), the beginning of a known word.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import islice, takewhile
from string import ascii_lowercase
from typing import TYPE_CHECKING

from broker.search.words import stem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker.search.postings import Postings

_SHORTEST_TYPO = 5
_SHORTEST_HALF = 3
_LONGEST = 30
_PREFIX_WORDS = 12


class Vocabulary:
    """The words that an index knows, for words that it does not know."""

    def __init__(self, postings: Postings) -> None:
        """Read the words of `postings` when first needed."""
        self._postings = postings
        self._sorted: list[str] | None = None

    def forget(self) -> None:
        """Read the words again next time: they have changed."""
        self._sorted = None

    def nearest(self, word: str) -> tuple[str, ...]:
        """Return the words that an unknown one may stand for, the likeliest first; empty when there are none."""
        if len(word) > _LONGEST or not word.isascii() or not word.isalpha():
            return ()
        halves = self._halves(word)
        if halves:
            return halves
        if len(word) >= _SHORTEST_TYPO and (near := set(self._known(_edits(word)))):
            return (max(near, key=lambda other: (other[:1] == word[0], self._count(other), other)),)
        return self.beginning(word) if len(word) >= _SHORTEST_HALF else ()

    def beginning(self, prefix: str) -> tuple[str, ...]:
        """Return words that begin so, at most twelve, the commonest first."""
        if self._sorted is None:
            self._sorted = sorted(self._postings.words())
        found = islice(self._sorted, bisect_left(self._sorted, prefix), None)
        matches = list(takewhile(lambda word: word.startswith(prefix), found))
        return tuple(sorted(matches, key=lambda word: (-self._count(word), word))[:_PREFIX_WORDS])

    def _halves(self, word: str) -> tuple[str, ...]:
        """The best way to see two known words in one; "" when there is none."""
        cuts = [(word[:at], word[at:]) for at in range(_SHORTEST_HALF, len(word) - _SHORTEST_HALF + 1)]
        known = [tuple(map(stem, cut)) for cut in cuts]
        return max(
            (cut for cut in known if all(part in self._postings for part in cut)),
            key=lambda cut: min(map(self._count, cut)),
            default=(),
        )

    def _known(self, candidates: Iterable[str]) -> Iterator[str]:
        return (word for word in candidates if word in self._postings)

    def _count(self, word: str) -> int:
        posting = self._postings.get(word)
        return posting.count if posting is not None else 0


def _edits(word: str) -> Iterator[str]:
    """Every text that one slip turns into `word`; about 54 for each letter."""
    cuts = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    for left, right in cuts:
        if right:
            yield left + right[1:]
            yield from (left + letter + right[1:] for letter in ascii_lowercase)
        if len(right) > 1:
            yield left + right[1] + right[0] + right[2:]
        yield from (left + letter + right for letter in ascii_lowercase)
