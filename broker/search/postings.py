"""Which documents say a word, and how much of it: an inverted index in arrays, for millions of entries.

Above: the index. Below: nothing. Documents are numbers here. A removed document stays in the arrays, and its
number unused, until a quarter of all is so; then the arrays are rewritten. Writing is not safe beside reading.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

_REMOVED_SHARE = 0.25


class Posting:
    """The documents that say one word, in ascending order, with the impact in each."""

    __slots__ = ("count", "documents", "impacts", "peak")

    def __init__(self) -> None:
        """Start with no document."""
        self.documents = array("I")
        self.impacts = array("f")
        self.count = 0
        self.peak = 0.0

    def impacts_of(self, documents: Collection[int]) -> Iterator[tuple[int, float]]:
        """Yield those of these documents that say the word, with the impact."""
        held = self.documents
        if len(held) < 8 * len(documents):  # walking is cheaper than that many searches
            for document, impact in zip(held, self.impacts, strict=True):
                if document in documents:
                    yield document, impact
            return
        for document in documents:
            at = bisect_left(held, document)
            if at < len(held) and held[at] == document:
                yield document, self.impacts[at]


class Postings:
    """The inverted index of a changing set of documents.

    Attributes:
        removed: How many removed documents the arrays still name.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._by_word: dict[str, Posting] = {}
        self._words_of: dict[int, tuple[str, ...]] = {}
        self._next = 0
        self.removed = 0

    def __len__(self) -> int:
        """Count the documents."""
        return len(self._words_of)

    def __contains__(self, word: str) -> bool:
        """Tell whether a document says this word."""
        return self.get(word) is not None

    def get(self, word: str) -> Posting | None:
        """Return the documents that say a word; None when there is none."""
        posting = self._by_word.get(word)
        return posting if posting is not None and posting.count else None

    def known(self) -> Collection[str]:
        """Every word that a document says, and some that one said before."""
        return self._by_word.keys()

    def rarity(self, posting: Posting) -> float:
        """How much a word tells documents apart (the idf of BM25, never negative)."""
        return math.log(1 + (len(self) - posting.count + 0.5) / (posting.count + 0.5))

    def rarity_of(self, word: str) -> float:
        """How much a word tells documents apart; 0 when no document says it."""
        posting = self.get(word)
        return self.rarity(posting) if posting is not None else 0.0

    def add(self, impacts: Mapping[str, float]) -> int:
        """Add a document and return its number."""
        document = self._next
        self._next += 1
        for word, impact in impacts.items():
            posting = self._by_word.get(word)
            if posting is None:
                posting = self._by_word[word] = Posting()
            posting.documents.append(document)
            posting.impacts.append(impact)
            posting.count += 1
            posting.peak = max(posting.peak, impact)
        self._words_of[document] = tuple(impacts)
        return document

    def remove(self, documents: Collection[int]) -> None:
        """Take documents out; their numbers are not used again."""
        for document in documents:
            words = self._words_of.pop(document)
            self.removed += 1
            for word in words:
                self._by_word[word].count -= 1
        if self.removed > _REMOVED_SHARE * (self.removed + len(self._words_of)):
            self._rewrite()

    def _rewrite(self) -> None:
        for word, posting in list(self._by_word.items()):
            if not posting.count:
                del self._by_word[word]
            elif posting.count < len(posting.documents):
                pairs = zip(posting.documents, posting.impacts, strict=True)
                held = [(document, impact) for document, impact in pairs if document in self._words_of]
                posting.documents = array("I", [document for document, _ in held])
                posting.impacts = array("f", [impact for _, impact in held])
                posting.peak = max(posting.impacts)
        self.removed = 0
