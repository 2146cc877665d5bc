"""Which documents say a word, and how much of it: an inverted index in arrays, for millions of entries.

Above: the index. Below: nothing. Documents are numbers here. A removed document stays in the arrays, and its
number unused, until a quarter of all is so; then the arrays are rewritten. Writing is not safe beside reading.
"""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_REMOVED_SHARE = 0.25


class Posting:
    """The documents that say one word, in ascending order, with the impact in each."""

    __slots__ = ("documents", "impacts", "peak", "removed")

    def __init__(self) -> None:
        """Start with no document."""
        self.documents = array("I")
        self.impacts = array("f")
        self.removed = 0
        self.peak = 0.0

    @property
    def count(self) -> int:
        """How many documents say the word now."""
        return len(self.documents) - self.removed


class Postings:
    """The inverted index of a changing set of documents.

    Attributes:
        by_word: The documents that say each word; no word that none says.
        rarity: How much each word tells documents apart (the idf of BM25, never negative); 0 when none says it.
        removed: How many removed documents the arrays still name.
    """

    def __init__(self) -> None:
        """Start empty."""
        self.by_word: dict[str, Posting] = {}
        self.rarity = _Rarity(self)
        self._words_of: dict[int, tuple[str, ...]] = {}
        self._next = 0
        self.removed = 0

    def __len__(self) -> int:
        """Count the documents."""
        return len(self._words_of)

    def add(self, impacts: Mapping[str, float]) -> int:
        """Add a document and return its number."""
        document = self._next
        self._next += 1
        by_word = self.by_word
        for word, impact in impacts.items():
            posting = by_word.get(word)
            if posting is None:
                posting = by_word[word] = Posting()
            posting.documents.append(document)
            posting.impacts.append(impact)
            if impact > posting.peak:  # noqa: PLR1730 - max() costs a third of this loop
                posting.peak = impact
        self._words_of[document] = tuple(impacts)
        self.rarity.clear()
        return document

    def remove(self, documents: Collection[int]) -> None:
        """Take documents out; their numbers are not used again."""
        for document in documents:
            words = self._words_of.pop(document)
            self.removed += 1
            for word in words:
                self.by_word[word].removed += 1
                if not self.by_word[word].count:
                    del self.by_word[word]
        self.rarity.clear()
        if self.removed > _REMOVED_SHARE * (self.removed + len(self._words_of)):
            self._rewrite()

    def _rewrite(self) -> None:
        for posting in self.by_word.values():
            if posting.removed:
                pairs = zip(posting.documents, posting.impacts, strict=True)
                held = [(document, impact) for document, impact in pairs if document in self._words_of]
                posting.documents = array("I", [document for document, _ in held])
                posting.impacts = array("f", [impact for _, impact in held])
                posting.peak = max(posting.impacts)
                posting.removed = 0
        self.removed = 0


class _Rarity(dict[str, float]):
    """Worked out when first asked for, and forgotten when documents come or go."""

    def __init__(self, postings: Postings) -> None:
        super().__init__()
        self._postings = postings

    def __missing__(self, word: str) -> float:
        posting = self._postings.by_word.get(word)
        if posting is None:
            return 0.0
        self[word] = math.log(1 + (len(self._postings) - posting.count + 0.5) / (posting.count + 0.5))
        return self[word]
