"""Shortens a note to what is worth its tokens: nothing that the signature or the text around it says already.

Above: stub generation. Below: nothing of the package. Notes are inert text by now (plain_text.py).
"""

from __future__ import annotations

import re

_SAID_BY_SIGNATURE = re.compile(
    r"\s*\((?:optional|required)\)"
    r"|^(?:optional|required)(?:\s*[.:,;-]\s*)"
    r"|^optional\s+(?!(?:but|for|if|in|only|unless|when|with)\b)(?=\w)"
    r"|^the\s+"
    r"|[.;,]?\s*\b(?:optional|required)\.?$"
    r"|\s*\(default:? [^()]{1,24}\)"
    r"|[.;,]?\s*\bdefaults?(?: value)?(?: is| to|:)\s*[\w.'\"-]{1,24}\.?$",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z0-9]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")
_EMPTY_WORDS = frozenset(
    """
    a an and any are as at be been by for from given if in input into is it its list many must name of on one or
    optional out parameter per property required s specific specified specify that the this to unique use used
    using value when where which will with you your
    """.split()  # noqa: SIM905  # reads better than ninety quoted words
) | {"id"}


def worth_saying(note: str, *said: str) -> str:
    """Return the note without what the signature shows; nothing if every word of it is in a name around it."""
    shown = _SAID_BY_SIGNATURE.sub("", note).strip()
    if not shown:
        return ""
    if not shown.isascii():
        return shown
    known = _EMPTY_WORDS | {stem for name in said for stem in _stems(_CAMEL.sub(" ", name))}
    return shown if _stems(shown) - known else ""


def without_repeats(note: str, key: str, seen: set[tuple[str, str]]) -> str:
    """Return the note unless the same key had the same note before, which `seen` remembers."""
    if (key, note) in seen:
        return ""
    seen.add((key, note))
    return note


def _stems(text: str) -> set[str]:
    return {_stem(word) for word in _WORD.findall(text.lower())}


def _stem(word: str) -> str:
    for ending, stem in (("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) > 2:  # noqa: PLR2004  # a stem keeps three letters
            return word[: -len(ending)] + stem
    return {"identifier": "id", "ids": "id"}.get(word, word)
