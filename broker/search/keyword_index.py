"""The keyword index: tools by what their definitions say, best first.

Above: tool_search.py. Below: postings, documents, queries. Ranking has two passes. The first adds up BM25F over the
inverted index and keeps the best sixty. The second looks at those alone: words side by side as in the query, how much
of a tool's name was asked for, whether it does what is asked with the parameters that were named, each sentence of a
long query by itself, and servers of which several tools fit. SQLite's FTS5 was measured as the engine of the first
pass: at 100,000 tools a long query took it 290 ms (p95), since it scores every row that has any of the words.
"""

from __future__ import annotations

import heapq
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from broker.search.documents import read_tool
from broker.search.postings import Postings
from broker.search.queries import read_query
from broker.search.second_look import KnownQuery, KnownTerms, best_first, look_again
from broker.search.vocabulary import Vocabulary
from broker.search.weights import Fields, Ranking
from broker.search.words import stem, written_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from broker.search.documents import Document
    from broker.search.queries import Terms
    from codegen import ToolSpec


_SURE_LETTERS = 8

WORDS_OF_SERVER = 20_000
"""How many words that were not read before a server may bring, beside those of its tools; further ones find nothing.

Of 302 real servers the most is 5,729, of 40 tools. A word takes up to 0.7 KB.
"""

WORDS_OF_TOOL = 50
"""The same for each of its tools."""


class Scored(NamedTuple):
    """One tool found. Scores of one query can be compared, and no others."""

    spec: ToolSpec
    score: float


class KeywordIndex:
    """An index of tools by server, in memory: reading 10,000 tools takes seconds, a query milliseconds."""

    def __init__(self, *, ranking: Ranking | None = None) -> None:
        """Start empty."""
        self._fields = Fields()
        self._ranking = ranking or Ranking()
        self._postings = Postings()
        self._vocabulary = Vocabulary(self._postings)
        self._documents: dict[int, Document] = {}
        self._of_server: dict[str, dict[str, int]] = {}
        self._brought: dict[int, int] = {}

    def __len__(self) -> int:
        """Count the tools."""
        return len(self._documents)

    def replace(self, server: str, specs: Iterable[ToolSpec]) -> None:
        """Make these the tools of a server; only what changed is read again."""
        for _ in self.replacing(server, specs):
            pass

    def replacing(self, server: str, specs: Iterable[ToolSpec]) -> Iterator[None]:
        """Do the same in steps, one for each tool that is read; meanwhile the index lacks those that are not read yet.

        No other server's tools may be replaced meanwhile. If it is not taken to its end, it has to be done again.
        """
        held = self._of_server.setdefault(server, {})
        wanted = {spec.digest: spec for spec in specs}
        self._remove([held.pop(digest) for digest in held.keys() - wanted.keys()])
        brought = sum(self._brought[document] for document in held.values())
        self._vocabulary.room = max(0, WORDS_OF_SERVER + WORDS_OF_TOOL * len(wanted) - brought)
        repeated = cache(lambda text: self._vocabulary.read(written_words(text)))
        for digest, spec in wanted.items():
            if digest not in held:
                held[digest] = self._add(spec, repeated)
                yield
        self._vocabulary.forget()

    def rank(
        self, query: str, *, admits: Callable[[ToolSpec], bool] | None = None, count: int | None = None
    ) -> list[Scored]:
        """Return the tools that say something of a query, best first.

        Args:
            query: Words or sentences; a star at the end of a word finds all words that begin so.
            admits: Leaves out the tools for which it is false.
            count: How many are wanted; all when None, and never fewer than were looked at anyway.
        """
        read = read_query(query, self._ranking, self._vocabulary.respell)
        guesses = cache(self._guesses)  # the whole and its parts have the same words
        whole = self._known(read.whole, guesses)
        found = self._gather(whole.all_weights, None if admits else self._ranking.postings)
        held = found if admits is None and not self._postings.removed else self._admitted(found, admits)
        top = _best(held, self._ranking.candidates)
        documents = {number: self._documents[number] for number in top}
        known = KnownQuery(whole, [self._known(part, guesses) for part in read.parts], read.given, read.names)
        scores = look_again(known, documents, self._postings, self._ranking)
        ranked = best_first(scores, self._documents)
        if count is None or count > len(ranked):
            ranked += best_first({number: held[number] for number in held.keys() - scores.keys()}, self._documents)
        return [Scored(self._documents[document].spec, scores.get(document, 0.0)) for document in ranked]

    def _admitted(self, found: Mapping[int, float], admits: Callable[[ToolSpec], bool] | None) -> Mapping[int, float]:
        documents = self._documents
        held = {number: score for number, score in found.items() if number in documents}
        return {n: score for n, score in held.items() if admits(documents[n].spec)} if admits else held

    def _add(self, spec: ToolSpec, repeated: Callable[[str], list[str]]) -> int:
        room = self._vocabulary.room
        document = read_tool(spec, self._fields, self._vocabulary.read, repeated)
        number = self._postings.add(document.impacts)
        self._documents[number] = document
        self._brought[number] = room - self._vocabulary.room
        return number

    def _remove(self, documents: Iterable[int]) -> None:
        numbers = list(documents)
        self._postings.remove(numbers)
        for number in numbers:
            del self._documents[number], self._brought[number]

    def _gather(self, weights: Mapping[str, float], budget: int | None) -> dict[int, float]:
        """Add up what documents say of the words, the most telling words first.

        The commonest words decide between tools, but do not make one a candidate: they are left to the second pass.
        """
        rarity, by_word = self._postings.rarity, self._postings.by_word
        asked = [(weight * rarity[word], by_word[word]) for word, weight in weights.items()]
        asked.sort(key=lambda pair: -pair[0] * pair[1].peak)
        sums: dict[int, float] = {}
        read = 0
        for worth, posting in asked:
            read += len(posting.documents)
            if sums and budget is not None and read > budget:
                break
            held = sums.get
            for document, impact in zip(posting.documents, posting.impacts, strict=True):
                sums[document] = held(document, 0.0) + worth * impact
        return sums

    def _known(self, terms: Terms, guesses: Callable[[str], list[tuple[str, float]]]) -> KnownTerms:
        """Put a query into words of the index, with what each is worth."""
        by_word = self._postings.by_word
        asked = [*terms.weights.items(), *terms.same.items()]
        asked += [(word, self._ranking.joined) for word in terms.joined]
        asked += [(word, 1.0) for prefix in terms.prefixes for word in self._vocabulary.beginning(prefix)]
        asked += [(letters, self._ranking.acronym) for letters in terms.capitals if self._is_acronym(letters)]
        formed = {word for form, _ in terms.forms for word in form}
        for word, weight in terms.weights.items():
            if word not in by_word and word not in formed:
                asked += [(near, worth * weight) for near, worth in guesses(terms.written[word])]
        weights = self._said(asked)
        others = [(word, self._ranking.form) for _, forms in terms.forms for form in forms for word in form]
        return KnownTerms(weights, self._said([*weights.items(), *others]) if others else weights, terms)

    def _said(self, asked: Iterable[tuple[str, float]]) -> dict[str, float]:
        """Return what each of these words is worth at most, without those that no tool says."""
        weights: dict[str, float] = {}
        for word, weight in asked:
            if word in self._postings.by_word:
                weights[word] = max(weights.get(word, 0.0), weight)
        return weights

    def _is_acronym(self, letters: str) -> bool:
        """Tell whether more tools say a name with these first letters than say them as a word."""
        name, word = (self._postings.by_word.get(one) for one in (letters, stem(letters.lower())))
        return name is not None and (word is None or name.count > word.count)

    def _guesses(self, word: str) -> list[tuple[str, float]]:
        """Return what a word may stand for that no tool says, with what it is worth: short words are near to many."""
        if word.upper() in self._postings.by_word:
            return [(word.upper(), self._ranking.acronym)]
        near = self._vocabulary.spelt(word)
        if near:
            return [(one, self._ranking.spelt * min(1.0, len(word) / _SURE_LETTERS)) for one in near]
        return [(piece, self._ranking.guessed) for piece in self._vocabulary.pieces(word)]


def _best(scores: Mapping[int, float], count: int) -> list[int]:
    if len(scores) > 4 * count:
        # Most are far below the best: a cut by value costs less than a heap of all.
        cut = heapq.nlargest(count, scores.values())[-1]
        scores = {document: score for document, score in scores.items() if score >= cut}
    return heapq.nlargest(count, scores, key=scores.__getitem__)
