"""Text as the words that a keyword search compares.

Above: the index (index.py) and queries (queries.py). Below: the Snowball stemmer. Names are split at case and
separators, accents are dropped, English words are stemmed, and scripts written without spaces are cut into pairs
of characters. Text of any kind gives words; nothing here raises.
"""

from __future__ import annotations

import importlib
import re
import unicodedata
from functools import lru_cache
from typing import Any

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")
_APOSTROPHES = re.compile(r"(?<=\w)['\u2019](?=\w)")
_LATIN = str.maketrans({"\u0131": "i", "ø": "o", "ł": "l", "đ": "d", "ß": "ss", "æ": "ae", "œ": "oe"})
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")

# Words that say nothing of what a tool does. They count only in a query that has no others.
_STOP_WORDS = """
    a able about after again all also am an and any are as at be been before being between both but by can cant could
    did do does doing dont down during each either else etc for from give had has have having he help her here hers
    him his how i id if im in into is it its ive just know let like ll may me might mine more most must my need no
    nor not of off on once only or our ours out over own per please re s same shall she should so some such t tell
    than that the their theirs them then there these they this those to too up us use used using ve very via want
    was we were what when where which while who whom whose why will with would you your yours
"""

# Words that tools and the people who look for them use for the same thing.
_SAME = """
    add create generate make new
    cancel stop
    alter change edit modify set update
    app application
    article news
    authenticate authentication authorize
    buy purchase shop
    calculate compute
    check test validate verify
    config configuration setting
    convert transform translate
    database db
    delete destroy drop erase remove
    detail describe info information
    dir directory folder
    display fetch get list read retrieve show view
    discover find locate lookup query search
    doc document
    email mail
    env environment
    execute launch run start trigger
    film movie
    id identifier
    image photo picture
    job career
    k8s kubernetes
    message msg
    org organization
    post publish send submit
    price cost
    put upload
    repo repository
"""


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, in order, not stemmed."""
    if not text.isascii():
        text = _plain(text)
    found = _WORD.findall(_APOSTROPHES.sub("", text))
    if text.isascii():
        return [word.lower() for word in found]
    return [piece for word in found for piece in _pieces(word.lower())]


def stems(text: str) -> list[str]:
    """Return the words of a text, each as its stem."""
    return [stem(word) for word in words(text)]


@lru_cache(maxsize=1 << 17)
def stem(word: str) -> str:
    """Return what a word has in common with its other forms; costs 50 µs the first time."""
    return str(_stemmer().stemWord(word))


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    # Imported when first needed: it takes a tenth of a second, and most commands search for nothing.
    return importlib.import_module("snowballstemmer").stemmer("english")


@lru_cache(maxsize=1)
def stop_stems() -> frozenset[str]:
    """Return the stems of the stop words."""
    plain = _STOP_WORDS.split()
    return frozenset([*plain, *map(stem, plain)])


@lru_cache(maxsize=1)
def same_stems() -> dict[str, frozenset[str]]:
    """Return, for each stem that has any, the stems that may stand in its place."""
    groups = [{stem(word) for word in line.split()} for line in _SAME.strip().splitlines()]
    return {word: frozenset().union(*(g for g in groups if word in g)) - {word} for group in groups for word in group}


def _plain(text: str) -> str:
    """Drop accents: `NFKD` splits letters from their marks, which are then left out."""
    split = unicodedata.normalize("NFKD", text.translate(_LATIN))
    bare = "".join(character for character in split if unicodedata.category(character) != "Mn")
    return unicodedata.normalize("NFC", bare)


def _pieces(word: str) -> list[str]:
    if word.isascii() or not _UNSPACED.fullmatch(word) or len(word) < 3:  # noqa: PLR2004 - a pair is a word itself
        return [word]
    return [word[start : start + 2] for start in range(len(word) - 1)]
