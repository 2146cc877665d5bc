"""The second pass of a ranking: what adding up words cannot see, for the best of the first.

Above: the index. Below: postings, documents, queries, actions and synonyms.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from broker.search.synonyms import near_stems
from broker.search.words import stems

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from broker.search.documents import Document
    from broker.search.postings import Postings
    from broker.search.queries import Terms
    from broker.search.short_forms import Wording
    from broker.search.weights import Ranking

_BEST_OF_SERVER = 3
_FIRST_OF_SERVER = 4


@dataclass(frozen=True, slots=True)
class KnownTerms:
    """The whole of a query, or a part, in words that the index knows.

    Attributes:
        weights: Each word with how much it counts.
        all_weights: These, and the words of other forms of what is said.
        terms: What it was read from.
    """

    weights: Mapping[str, float]
    all_weights: Mapping[str, float]
    terms: Terms


@dataclass(frozen=True, slots=True)
class KnownQuery:
    """A query in words that the index knows, with what it gives values for and what it writes as names."""

    whole: KnownTerms
    parts: Sequence[KnownTerms]
    given: frozenset[str]
    names: frozenset[str]


def look_again(
    query: KnownQuery, documents: Mapping[int, Document], postings: Postings, ranking: Ranking
) -> dict[int, float]:
    """Return the final scores of the documents of the first pass."""
    table = _Table(documents, postings, query.whole.all_weights, ranking)
    scores = table.scores(query.whole)
    if query.parts:
        best = map(max, zip(*[table.scores(part).values() for part in query.parts], strict=True))
        scores = {
            document: (1 - ranking.part) * score + ranking.part * of_part
            for (document, score), of_part in zip(scores.items(), best, strict=True)
        }
    needs = _Needs(query, postings, ranking)
    servers = {number: document.spec.server for number, document in documents.items()}
    named = {
        server: 1 + ranking.server_name * _share(query.names, server, postings) for server in set(servers.values())
    }
    fitting = {
        number: score * needs.factor(documents[number]) * named[servers[number]] for number, score in scores.items()
    }
    near = _with_neighbours(fitting, servers, ranking.server)
    return _uncrowded(near, best_first(near, documents), servers, ranking.crowd)


class _Table:
    """What each document says of each word of the query. All scores come in the order of the documents."""

    def __init__(
        self,
        documents: Mapping[int, Document],
        postings: Postings,
        weights: Mapping[str, float],
        ranking: Ranking,
    ) -> None:
        self._documents = documents
        self._ranking = ranking
        self._rarity = postings.rarity
        impacts: dict[str, dict[int, float]] = {word: {} for word in weights}
        named: dict[str, list[int]] = defaultdict(list)
        self._impacts, self._named = impacts, named
        self._beside = cache(self._side_by_side)  # the whole and a part of it have the same pairs
        self._name = cache(self._name_rarity)
        asked = weights.keys()
        for number, document in documents.items():
            said = document.impacts
            for word in asked & said.keys():
                impacts[word][number] = said[word]
            for word in asked & document.name_stems:
                named[word].append(number)

    def scores(self, asked: KnownTerms) -> dict[int, float]:
        said = self._said(asked)
        if asked.terms.action.is_unknown:
            return said
        fit = _Fit(asked.terms, self._rarity, self._ranking)
        return {number: score and score * fit.factor(self._documents[number]) for number, score in said.items()}

    def _said(self, asked: KnownTerms) -> dict[int, float]:
        scores = self._in_words(asked)
        for form, others in asked.terms.forms:
            for number, amount in self._in_other_words(form, others):
                scores[number] += amount
        for first, second in asked.terms.pairs:
            if first in self._impacts and second in self._impacts:
                amount = (self._rarity[first] + self._rarity[second]) / 2 * self._ranking.pair
                for number in self._beside(first, second):
                    scores[number] += amount
        for number, amount in self._naming(asked.all_weights):
            scores[number] += self._ranking.name * amount
        return scores

    def _side_by_side(self, first: str, second: str) -> list[int]:
        pair = f" {first} {second} "
        return [number for number in self._impacts[first] if pair in self._documents[number].head]

    def _name_rarity(self, number: int) -> float:
        return sum(map(self._rarity.__getitem__, self._documents[number].name_stems))

    def _in_words(self, asked: KnownTerms) -> dict[int, float]:
        scores = dict.fromkeys(self._documents, 0.0)
        worth = {word: weight * self._rarity[word] for word, weight in asked.weights.items() if word in self._impacts}
        for word, *alike in _groups(worth, asked.terms):
            if alike:
                for number, amount in self._most([word, *alike], worth):
                    scores[number] += amount
            else:
                weight = worth[word]
                for number, impact in self._impacts[word].items():
                    scores[number] += weight * impact
        return scores

    def _most(self, group: Sequence[str], worth: Mapping[str, float]) -> Iterable[tuple[int, float]]:
        """Return what documents say of words that mean the very same: who says two of them says no more."""
        most: dict[int, float] = {}
        for word in group:
            for number, impact in self._impacts[word].items():
                most[number] = max(most.get(number, 0.0), worth[word] * impact)
        return most.items()

    def _in_other_words(self, form: Wording, others: Sequence[Wording]) -> Iterable[tuple[int, float]]:
        """Return what documents say of the other forms, beyond what they say of this one: who says two says no more."""
        rarity = self._rarity
        said: dict[int, float] = defaultdict(float)
        for word in form:
            for number, impact in self._impacts.get(word, {}).items():
                said[number] += rarity[word] * impact
        most: dict[int, float] = {}
        for other in others:
            worth = self._ranking.form * max(sum(map(rarity.__getitem__, form)), *map(rarity.__getitem__, other))
            for number, share in self._saying(other).items():
                most[number] = max(most.get(number, 0.0), worth * share - said.get(number, 0.0))
        return most.items()

    def _saying(self, form: Wording) -> Mapping[int, float]:
        """Return how much documents say of all these words, between 0 and 1; twice as much of each counts twice."""
        whole = sum(map(self._rarity.__getitem__, form))
        amounts: dict[int, float] = defaultdict(float)
        shares: dict[int, float] = defaultdict(float)
        for word in form:
            for number, impact in self._impacts.get(word, {}).items():
                amounts[number] += self._rarity[word] * impact / whole
                shares[number] += self._rarity[word] / whole
        return {number: amount * shares[number] for number, amount in amounts.items()}

    def _naming(self, weights: Mapping[str, float]) -> Iterable[tuple[int, float]]:
        """Return what of each name was asked for, times the share of the name that it is."""
        rarity: dict[int, float] = defaultdict(float)
        asked: dict[int, float] = defaultdict(float)
        for word, weight in weights.items():
            for number in self._named.get(word, ()):
                rarity[number] += self._rarity[word]
                asked[number] += weight * self._rarity[word]
        return [(number, asked[number] * some / self._name(number)) for number, some in rarity.items() if some]


class _Fit:
    """How well what a tool does fits what is asked."""

    def __init__(self, terms: Terms, rarity: Mapping[str, float], ranking: Ranking) -> None:
        self._action = terms.action
        self._near = {word: _with_near(word) for word in terms.action.thing}
        for form, others in terms.forms:
            for word in self._near.keys() & set(form):
                self._near[word] = self._near[word].union(*others)
        self._nearly = frozenset().union(*self._near.values())
        self._near_head = self._near.get(terms.action.head, frozenset())
        self._rarity = rarity
        self._asked = self._sum(self._near)
        self._ranking = ranking

    def factor(self, document: Document) -> float:
        """Return what to multiply the score of a tool by."""
        done = document.action
        agrees = self._action.verb in document.name_stems or self._action.kinds_agree(done)
        named = self._named(done.thing)
        factor = 1 + self._ranking.thing * named
        if self._is_head(done.head):
            factor += self._ranking.head
        if agrees is not None:
            factor += self._ranking.action if agrees else -self._ranking.action
        if agrees and named and (agrees := self._action.numbers_agree(done)) is not None:
            factor += self._ranking.number if agrees else -self._ranking.number
        return factor

    def _is_head(self, word: str) -> bool:
        """Tell whether this ends a name as the thing that is asked for ends, maybe in one word: "testresource"."""
        return word in self._near_head or bool(word and self._action.head and word.endswith(self._action.head))

    def _named(self, thing: frozenset[str]) -> float:
        """Return how much of the thing asked for is in a name, times how much of the name it is."""
        if not self._asked or thing.isdisjoint(self._nearly):
            return 0.0
        both = thing & self._nearly
        has = [word for word, near in self._near.items() if not both.isdisjoint(near)]
        every = self._sum(thing)
        return self._sum(has) / self._asked * self._sum(both) / every if every else 0.0

    def _sum(self, words: Iterable[str]) -> float:
        return sum(map(self._rarity.__getitem__, words))


class _Needs:
    """How well the parameters of a tool fit what the query says."""

    def __init__(self, query: KnownQuery, postings: Postings, ranking: Ranking) -> None:
        self._words = frozenset(query.whole.all_weights)
        self._given = query.given
        self._rarity = postings.rarity
        self._values = self._sum(query.given)
        self._ranking = ranking

    def factor(self, document: Document) -> float:
        """Return what to multiply a tool's score by: more if the query names what it requires, or has values for it."""
        needs = document.needs
        met = 1 - sum(map(self._words.isdisjoint, needs)) / len(needs) if needs else 1.0
        if self._values:
            met += self._sum(self._given & document.takes) / self._values
        return 1 + self._ranking.parameters * met

    def _sum(self, words: Iterable[str]) -> float:
        return sum(map(self._rarity.__getitem__, words))


def best_first(scores: Mapping[int, float], documents: Mapping[int, Document]) -> list[int]:
    """Return the documents in the order of their scores, and of their names where these are equal."""
    if len(set(scores.values())) == len(scores):
        return sorted(scores, key=scores.__getitem__, reverse=True)
    return sorted(scores, key=lambda number: (-scores[number], documents[number].spec.qualified_name))


def _share(names: frozenset[str], server: str, postings: Postings) -> float:
    """How much of a server's name is among these names."""
    of_server = _server_stems(server)
    both = sum(map(postings.rarity.__getitem__, of_server & names))
    return both and both / sum(map(postings.rarity.__getitem__, of_server))


@lru_cache(maxsize=4_096)
def _with_near(word: str) -> frozenset[str]:
    return near_stems(word) | {word}


@lru_cache(maxsize=4_096)
def _server_stems(server: str) -> frozenset[str]:
    return frozenset(stems(server))


def _groups(words: Iterable[str], terms: Terms) -> Iterable[list[str]]:
    """Return the words of a query, each with those that stand for it."""
    groups: dict[str, list[str]] = defaultdict(list)
    for word in words:
        groups[word if word in terms.weights else terms.stands_for.get(word, word)].append(word)
    return groups.values()


def _with_neighbours(scores: Mapping[int, float], servers: Mapping[int, str], share: float) -> dict[int, float]:
    """Raise tools whose server has other tools that fit: a task often needs several of one server."""
    of_server: dict[str, list[float]] = defaultdict(list)
    for number, score in scores.items():
        of_server[servers[number]].append(score)
    best = {
        server: sum(sorted(found, reverse=True)[:_BEST_OF_SERVER]) / _BEST_OF_SERVER
        for server, found in of_server.items()
    }
    return {number: score + share * best[servers[number]] for number, score in scores.items()}


def _uncrowded(
    scores: dict[int, float], ranked: Iterable[int], servers: Mapping[int, str], share: float
) -> dict[int, float]:
    """Lower tools that come after several of their server: among the first few, another server is seen too.

    The tools of one server keep their order.
    """
    before: dict[str, int] = defaultdict(int)
    for number in ranked:
        server = servers[number]
        if before[server] >= _FIRST_OF_SERVER:
            scores[number] *= (1 - share) ** (before[server] - _FIRST_OF_SERVER + 1)
        before[server] += 1
    return scores
