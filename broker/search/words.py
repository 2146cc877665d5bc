"""Text as the words that a keyword search compares.

Above: stop_words.py, and whoever reads tools or queries. Below: the Snowball stemmer. Names are split at case and
separators, accents are dropped, English words are stemmed, and scripts written without spaces are cut into pairs
of characters. Text of any kind gives words; nothing here raises.
"""

from __future__ import annotations

import importlib
import re
import unicodedata
from functools import lru_cache
from typing import Any

from codegen.normal_form import normalised

_WORD = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")
_ABBREVIATIONS = re.compile(r"[b-df-hj-np-tv-z]{2,4}(?<!s)s")
_APOSTROPHES = re.compile(r"(?<=\w)['\u2019](?=\w)")
_LATIN = str.maketrans({"\u0131": "i", "ø": "o", "ł": "l", "đ": "d", "ß": "ss", "æ": "ae", "œ": "oe"})
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")


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
    if _ABBREVIATIONS.fullmatch(word):
        return word[:-1]  # the stemmer leaves "vms" as it is, because it sees no vowel
    return str(_stemmer().stemWord(word))


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    # Imported when first needed: most commands search for nothing.
    return importlib.import_module("snowballstemmer").stemmer("english")


def _plain(text: str) -> str:
    """Drop accents: `NFKD` splits letters from their marks, which are then left out."""
    split = normalised("NFKD", text.translate(_LATIN))
    bare = "".join(character for character in split if unicodedata.category(character) != "Mn")
    return normalised("NFC", bare)


def _pieces(word: str) -> list[str]:
    if word.isascii() or not _UNSPACED.fullmatch(word) or len(word) < 3:  # noqa: PLR2004 - a pair is a word itself
        return [word]
    return [word[start : start + 2] for start in range(len(word) - 1)]
