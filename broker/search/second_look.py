"""The second pass of a ranking: what adding up words cannot see, for the best of the first.

Above: the index. Below: postings, documents, queries and actions.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from broker.search.lexicon import same_stems

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from broker.search.actions import Action
    from broker.search.documents import Document
    from broker.search.postings import Postings
    from broker.search.queries import Terms
    from broker.search.weights import Ranking

_BEST_OF_SERVER = 3


@dataclass(frozen=True, slots=True)
class Asked:
    """The whole of a query, or a part, in words that the index knows."""

    weights: Mapping[str, float]
    terms: Terms


@dataclass(frozen=True, slots=True)
class Question:
    """A query in words that the index knows, with what it wants done."""

    whole: Asked
    parts: Sequence[Asked]
    action: Action


def look_again(
    question: Question, documents: Mapping[int, Document], postings: Postings, ranking: Ranking
) -> dict[int, float]:
    """Return the final scores of the documents of the first pass."""
    table = _Table(documents, postings, question.whole.weights, ranking)
    scores = table.scores(question.whole)
    if question.parts:
        best = [table.scores(part) for part in question.parts]
        for document, score in scores.items():
            scores[document] = (1 - ranking.part) * score + ranking.part * max(part[document] for part in best)
    deed = _Deed(question, postings, ranking)
    fitting = {document: score * deed.factor(documents[document].action) for document, score in scores.items()}
    return _with_neighbours(fitting, documents, ranking.server)


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


class _Deed:
    """What is asked to be done, against what tools do."""

    def __init__(self, question: Question, postings: Postings, ranking: Ranking) -> None:
        terms = question.whole.terms
        self._action = question.action
        self._asked = terms.weights.keys() | terms.same.keys()
        self._rarity_of = cache(postings.rarity_of)
        self._ranking = ranking

    def factor(self, done: Action) -> float:
        """What to multiply a tool's score by."""
        agrees = self._action.kinds_agree(done)
        factor = 1 + self._ranking.thing * self._named(done.thing)
        if agrees is not None:
            factor += self._ranking.action if agrees else -self._ranking.action
        if agrees and (agrees := self._action.numbers_agree(done)) is not None:
            factor += self._ranking.number if agrees else -self._ranking.number
        return factor

    def _named(self, thing: frozenset[str]) -> float:
        """How much of the thing asked for is in a name, times how much of the name was asked for."""
        wanted = self._action.thing
        has = {word for word in wanted if word in thing or not thing.isdisjoint(same_stems().get(word, ()))}
        return self._share(has, wanted) * self._share(thing & self._asked, thing) if has else 0.0

    def _share(self, some: Iterable[str], every: Iterable[str]) -> float:
        total = sum(map(self._rarity_of, every))
        return sum(map(self._rarity_of, some)) / total if total else 0.0


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
