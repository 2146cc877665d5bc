"""Text as the words that a keyword search compares.

Above: stop_words.py, and whoever reads tools or queries. Below: the Snowball stemmer. Names are split at case and
separators, accents are dropped, English words are stemmed, and scripts written without spaces are cut into pairs
of characters. Text of any kind gives words; nothing here raises.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import Stemmer  # type: ignore[import-not-found]  # publishes no types

from codegen.normal_form import normalised

_WORD = re.compile(r"[a-z]+|[A-Z](?:[a-z]+|[A-Z]+s(?![a-z])|[A-Z]*(?![a-z]))|[0-9]+|[^\W\d_A-Za-z]+")
_ABBREVIATIONS = re.compile(r"[b-df-hj-np-tv-z]{2,4}(?<!s)s")
_APOSTROPHES = re.compile(r"['\u2019](?<=\w.)(?=\w)")
_LATIN = {"\u0131": "i", "ø": "o", "ł": "l", "đ": "d", "ß": "ss", "æ": "ae", "œ": "oe"}
_OWN_LETTERS = re.compile(f"[{''.join(_LATIN)}]")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")

_STEMMER = Stemmer.Stemmer("english", 0)  # without its own cache: `stem` has one


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, in order, not stemmed."""
    return [word.lower() for word in written_words(text)]


def written_words(text: str) -> list[str]:
    """Return the words of a text in order, in upper or lower case as written."""
    if not text.isascii():
        text = _plain(text)
    if "'" in text or "\u2019" in text:
        text = _APOSTROPHES.sub("", text)
    found: list[str] = _WORD.findall(text)
    return found if text.isascii() else [piece for word in found for piece in _pieces(word)]


def stems(text: str) -> list[str]:
    """Return the words of a text, each as its stem."""
    return [stem(word) for word in words(text)]


@lru_cache(maxsize=1 << 17)
def stem(word: str) -> str:
    """Return what a word has in common with its other forms."""
    if _ABBREVIATIONS.fullmatch(word):
        return word[:-1]  # the stemmer leaves "vms" as it is, because it sees no vowel
    return str(_STEMMER.stemWord(word))


def _plain(text: str) -> str:
    """Drop accents: `NFKD` splits letters from their marks, which are then left out."""
    split = normalised("NFKD", _OWN_LETTERS.sub(lambda letter: _LATIN[letter[0]], text))
    return normalised("NFC", _BEYOND_ASCII.sub(_without_marks, split))


def _without_marks(run: re.Match[str]) -> str:
    return "".join(character for character in run[0] if unicodedata.category(character) != "Mn")


def _pieces(word: str) -> list[str]:
    if word.isascii() or not _UNSPACED.fullmatch(word) or len(word) < 3:  # noqa: PLR2004 - a pair is a word itself
        return [word]
    return [word[start : start + 2] for start in range(len(word) - 1)]
