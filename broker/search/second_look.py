"""The second pass of a ranking: what adding up words cannot see, for the best of the first.

Above: the index. Below: postings, documents and queries.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from broker.search.documents import Document
    from broker.search.postings import Postings
    from broker.search.queries import Terms

_BEST_OF_SERVER = 3


@dataclass(frozen=True, slots=True)
class Ranking:
    """How signs that a tool fits are weighed against each other; found on half of the benchmark's queries.

    Attributes:
        same: A word that means the same as one of the query, against that word itself.
        placeholder: A word in angle brackets.
        joined: Two words of the query, written as one by the tool.
        guessed: A word that is near to one of the query that no tool says.
        pair: Two words side by side, as in the query, against the words themselves.
        name: The share of the tool's name that was asked for.
        part: The best sentence of the query, against the whole of it.
        server: The three best tools of the same server, against the tool itself.
        candidates: How many tools the second pass looks at.
        postings: Once so many entries were read, the words that are left may only add to tools already found.
    """

    same: float = 0.15
    placeholder: float = 0.7
    joined: float = 0.35
    guessed: float = 0.5
    pair: float = 0.2
    name: float = 0.15
    part: float = 0.7
    server: float = 0.3
    candidates: int = 60
    postings: int = 3_000


@dataclass(frozen=True, slots=True)
class Asked:
    """The whole of a query, or a part, in words that the index knows."""

    weights: Mapping[str, float]
    terms: Terms


def look_again(
    whole: Asked, parts: Sequence[Asked], documents: Mapping[int, Document], postings: Postings, ranking: Ranking
) -> dict[int, float]:
    """Return the final scores of the documents of the first pass."""
    table = _Table(documents, postings, whole.weights, ranking)
    scores = table.scores(whole)
    if parts:
        best = [table.scores(part) for part in parts]
        for document, score in scores.items():
            scores[document] = (1 - ranking.part) * score + ranking.part * max(part[document] for part in best)
    return _with_neighbours(scores, documents, ranking.server)


class _Table:
    """What each document says of each word of the query."""

    def __init__(
        self,
        documents: Mapping[int, Document],
        postings: Postings,
        weights: Mapping[str, float],
        ranking: Ranking,
    ) -> None:
        self._documents = documents
        self._ranking = ranking
        self._rarity: dict[str, float] = {}
        self._impacts: dict[str, list[tuple[int, float]]] = {}
        for word in weights:
            posting = postings.get(word)
            if posting is not None:
                self._rarity[word] = postings.rarity(posting)
                self._impacts[word] = list(posting.impacts_of(documents))
        self._rarity_of = cache(postings.rarity_of)  # names share their words

    def scores(self, asked: Asked) -> dict[int, float]:
        scores = dict.fromkeys(self._documents, 0.0)
        worth = {word: weight * self._rarity[word] for word, weight in asked.weights.items() if word in self._rarity}
        for word, amount in worth.items():
            for number, impact in self._impacts[word]:
                scores[number] += amount * impact
        pairs = [
            (f" {first} {second} ", (self._rarity[first] + self._rarity[second]) / 2 * self._ranking.pair)
            for first, second in asked.terms.pairs
            if first in self._rarity and second in self._rarity
        ]
        for number, document in self._documents.items():
            for pair, amount in pairs:
                if pair in document.head:
                    scores[number] += amount
            common = document.name_stems.intersection(worth)
            if common:
                scores[number] += self._ranking.name * self._named(document, common, worth)
        return scores

    def _named(self, document: Document, common: Iterable[str], worth: Mapping[str, float]) -> float:
        """What of a name was asked for, times the share of the name that it is."""
        name = sum(map(self._rarity_of, document.name_stems))
        share = sum(self._rarity[word] for word in common) / name if name else 0.0
        return share * sum(worth[word] for word in common)


def _with_neighbours(scores: Mapping[int, float], documents: Mapping[int, Document], share: float) -> dict[int, float]:
    """Raise tools whose server has other tools that fit: a task often needs several of one server."""
    of_server: dict[str, list[float]] = defaultdict(list)
    for number, score in scores.items():
        of_server[documents[number].spec.server].append(score)
    best = {
        server: sum(sorted(found, reverse=True)[:_BEST_OF_SERVER]) / _BEST_OF_SERVER
        for server, found in of_server.items()
    }
    return {number: score + share * best[documents[number].spec.server] for number, score in scores.items()}
