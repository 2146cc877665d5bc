"""A query as weighted terms, before any index has seen it.

Above: keyword_index.py. Below: phrases.py, words.py, stop_words.py, synonyms.py, short_forms.py, products.py,
questions.py, actions.py. People write queries of one word and of several sentences, each of which may want another
tool; so a query has parts, and each part is scored by itself as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from broker.search.actions import Action, action_of_query
from broker.search.phrases import plain
from broker.search.products import products_for
from broker.search.questions import asked_for
from broker.search.short_forms import other_forms
from broker.search.stop_words import stop_stems, weak_stems
from broker.search.synonyms import alike_stems, near_stems
from broker.search.words import stem, stems, words

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.search.short_forms import Wording
    from broker.search.weights import Ranking

QUERY_CHARACTERS = 2_000
_PART_CHARACTERS = 8
_PARTS = 12
_VALUES = 12
_BEFORE_CHARACTERS = 40

_BOUNDARY = re.compile(r"(?<=[.!?;])\s+|\n+|,? and then |, then ")
_VALUE = re.compile(r"<([^<>]{1,60})>|\B\"[^\"]{1,60}\"|\B'[^']{1,60}'\B")
_CAPITALS = re.compile(r"\b[A-Z]{3,6}(?=s?\b)")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z]\w+")  # not the first word of a sentence
_PREFIX = re.compile(r"(\w{2,})\*")


@dataclass(slots=True)
class Terms:
    """What one text asks for.

    Attributes:
        weights: Each stem with how much it counts, 1 for a plain word.
        written: Each of them as a word of the text.
        same: Stems that mean the same as one of those, or nearly.
        stands_for: Those that mean the very same, each with the stem of the query in whose place it stands.
        joined: Neighbouring words written as one ("event grid" as "eventgrid"); for names that do so.
        pairs: Neighbouring stems; a tool that has them side by side fits better.
        prefixes: Beginnings of words, as written with a star.
        forms: Short forms and what they are short for, kinds of products and the products: each one that is said, with
            those that may stand in its place.
        capitals: Words written in capitals alone.
        action: What it wants done; of several sentences, the first.
    """

    weights: dict[str, float] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    same: dict[str, float] = field(default_factory=dict)
    stands_for: dict[str, str] = field(default_factory=dict)
    joined: set[str] = field(default_factory=set)
    pairs: set[tuple[str, str]] = field(default_factory=set)
    prefixes: set[str] = field(default_factory=set)
    forms: list[tuple[Wording, list[Wording]]] = field(default_factory=list)
    capitals: set[str] = field(default_factory=set)
    action: Action = field(default_factory=Action)


@dataclass(frozen=True, slots=True)
class Query:
    """A query read once: all of it, and its parts when it has several.

    Attributes:
        text: The query in plain words.
        whole: All that it asks for.
        parts: What each of its sentences asks for.
        given: The stems of what it gives values for: "the queue 'orders'", "in <region>".
        names: The stems of what it writes as names are written: "in GitHub".
    """

    text: str
    whole: Terms
    parts: tuple[Terms, ...]
    given: frozenset[str]
    names: frozenset[str]


def read_query(text: str, ranking: Ranking, respell: Callable[[str], str] = str) -> Query:
    """Read a query; only its first 2,000 characters count. `respell` gives a word the spelling that tools use."""
    written = text[:QUERY_CHARACTERS]
    text = plain(written)
    pieces = [piece for piece in _BOUNDARY.split(text) if len(piece) > _PART_CHARACTERS][:_PARTS]
    parts = [_terms(piece, ranking, respell) for piece in pieces] if len(pieces) > 1 else []
    whole = _terms(text, ranking, respell)
    if text != written:  # "go back": a tool may say the phrase itself
        for word in {*stems(written)} - whole.weights.keys() - stop_stems():
            whole.same.setdefault(word, ranking.same)
    asked = tuple(part for part in parts if part.weights)
    return Query(text, whole, asked, _given(text), frozenset(stems(" ".join(_NAME.findall(written)))))


def _terms(text: str, ranking: Ranking, respell: Callable[[str], str]) -> Terms:
    terms = Terms(action=action_of_query(text, respell))
    found = words(text)
    stemmed = [stem(word) for word in found]
    silent = stop_stems()
    kept = [(said, word) for said, word in zip(stemmed, found, strict=True) if said not in silent]
    terms.weights = {said: 1.0 for said, _ in kept}
    for said, word in kept:
        terms.written.setdefault(said, word)
    terms.pairs = set(pairwise(said for said, _ in kept))
    terms.joined = {stem(first + second) for first, second in pairwise(found)}
    terms.prefixes = {prefix.lower() for prefix in _PREFIX.findall(text)}
    terms.capitals = set(_CAPITALS.findall(text))
    if not terms.weights:
        terms.written = dict(zip(stemmed, found, strict=True))
        terms.weights = dict.fromkeys(terms.written, 1.0)
    weak = weak_stems().intersection(terms.weights)
    if len(weak) < len(terms.weights):
        terms.weights |= {word: ranking.weak * terms.weights[word] for word in weak}
    terms.forms = [*other_forms(stemmed), *products_for(stemmed)]
    terms.same |= dict.fromkeys(asked_for(text) - terms.weights.keys(), ranking.asked)
    for word, weight in terms.weights.items():
        for other in near_stems(word):
            terms.same[other] = max(terms.same.get(other, 0.0), ranking.same * weight)
        for other in alike_stems(word):
            terms.same[other] = max(terms.same.get(other, 0.0), ranking.alike * weight)
            terms.stands_for[other] = word
    return terms


def _given(text: str) -> frozenset[str]:
    found: set[str] = set()
    for value in islice(_VALUE.finditer(text), _VALUES):
        before = text[max(0, value.start() - _BEFORE_CHARACTERS) : value.start()]
        found.update(stems(value[1] or ""), stems(before)[-1:])
    return frozenset(found) - stop_stems()
