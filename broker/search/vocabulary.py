"""Words of a query that no tool says, as words that tools do say.

Above: the index. Below: the words of the index. Words are compared as they were written, since what is left of a
misspelt word after stemming is rarely near to anything.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import takewhile
from string import ascii_lowercase
from typing import TYPE_CHECKING

from broker.search.words import stem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker.search.postings import Postings

_SHORTEST = 4
_SHORTEST_PIECE = 3
_LONGEST = 30
_PREFIX_WORDS = 12
_GUESSES = 3
_REMEMBERED = 1_000
"""How many misspelt words are remembered with what is near to them."""

_FORMS = 8
"""How many words of one stem are kept, on the average, before those that no tool says any more are dropped."""


class Vocabulary:
    """The words that tools say, as written, for words that they do not say."""

    def __init__(self, postings: Postings) -> None:
        """Know no word; `postings` tell which stems are said now."""
        self._postings = postings
        self._stems: dict[str, str] = {}
        self._written = _Written(self._stems)
        self._sorted: list[str] | None = None
        self._slipped: dict[str, list[str]] = {}

    @property
    def room(self) -> int:
        """How many words may come that were never read; further ones are passed over."""
        return self._written.room

    @room.setter
    def room(self, words: int) -> None:
        self._written.room = words

    def read(self, written: Iterable[str]) -> list[str]:
        """Return the stems of a tool's words as written, and know them from now on."""
        found = list(map(self._written.__getitem__, written))
        return found if self._written.room else list(filter(None, found))

    def forget(self) -> None:
        """Note that what is said has changed."""
        self._sorted = None
        self._slipped.clear()
        if len(self._stems) > _FORMS * (len(self._postings.by_word) + 1_000):
            self._stems = {word: said for word, said in self._stems.items() if said in self._postings.by_word}
            self._written = _Written(self._stems)

    def spelt(self, word: str) -> tuple[str, ...]:
        """Return the stems of words that one slip makes of this one, the commonest first, at most three.

        A slip is a letter missing, added, wrong, or swapped with the next.
        """
        return self._commonest(self._near(word), _GUESSES)

    def respell(self, word: str) -> str:
        """Return the commonest word that one slip makes of one that no tool says in any form; else the word itself."""
        return word if stem(word) in self._postings.by_word else max(self._near(word), key=self._count, default=word)

    def pieces(self, word: str) -> tuple[str, ...]:
        """Return the stems of the fewest known words that make this one together; else of words that begin so."""
        if len(word) > _LONGEST:
            return ()
        best: list[tuple[str, ...] | None] = [()]
        for end in range(1, len(word) + 1):
            ways = [
                (*before, piece)
                for start in range(end - _SHORTEST_PIECE + 1)
                if (before := best[start]) is not None and self._count(piece := word[start:end])
            ]
            best.append(min(ways, key=lambda way: (len(way), -min(map(self._count, way))), default=None))
        if best[-1]:
            return tuple(self._stems[piece] for piece in best[-1])
        return self.beginning(word) if len(word) >= _SHORTEST_PIECE else ()

    def beginning(self, prefix: str) -> tuple[str, ...]:
        """Return the stems of words that begin so, at most twelve, the commonest first."""
        if self._sorted is None:
            self._sorted = sorted(word for word, said in self._stems.items() if said in self._postings.by_word)
        found = map(self._sorted.__getitem__, range(bisect_left(self._sorted, prefix), len(self._sorted)))
        return self._commonest(takewhile(lambda word: word.startswith(prefix), found), _PREFIX_WORDS)

    def _near(self, word: str) -> list[str]:
        if word not in self._slipped:
            if len(self._slipped) >= _REMEMBERED:
                self._slipped.clear()
            is_word = _SHORTEST <= len(word) <= _LONGEST and word.isascii() and word.isalpha()
            near = [one for one in _slips(word) if one in self._stems and self._count(one)] if is_word else []
            self._slipped[word] = [other for other in near if other[0] == word[0]] or near
        return self._slipped[word]

    def _commonest(self, found: Iterable[str], most: int) -> tuple[str, ...]:
        said = dict.fromkeys(self._stems[word] for word in found)
        counts = {one: posting.count for one in said if (posting := self._postings.by_word.get(one)) is not None}
        return tuple(sorted(counts, key=lambda one: (-counts[one], one))[:most])

    def _count(self, word: str) -> int:
        said = self._stems.get(word)
        posting = self._postings.by_word.get(said) if said is not None else None
        return posting.count if posting is not None else 0


class _Written(dict[str, str]):
    """The stems of words as written, in upper or lower case; those of words that are new are noted.

    Without room for it, a new word has an empty stem.
    """

    def __init__(self, noted: dict[str, str]) -> None:
        super().__init__()
        self._noted = noted
        self.room = 0

    def __missing__(self, written: str) -> str:
        word = written.lower()
        if not self.room:
            return self._noted.get(word, "")
        self.room -= 1
        self[written] = self._noted[word] = stem(word)
        return self[written]


def _slips(word: str) -> Iterator[str]:
    """Every text that one slip turns into `word`; about 54 for each letter."""
    cuts = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    for left, right in cuts:
        if right:
            yield left + right[1:]
            yield from (left + letter + right[1:] for letter in ascii_lowercase)
        if len(right) > 1:
            yield left + right[1] + right[0] + right[2:]
        yield from (left + letter + right for letter in ascii_lowercase)
