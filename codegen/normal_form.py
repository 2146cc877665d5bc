"""Brings hostile texts into a Unicode normal form in time proportional to their length.

Above: whoever compares names as Python does, and paths as servers may. Below: nothing. `unicodedata` sorts marks that
follow each other with an insertion sort, and keeps the interpreter meanwhile: a script of a million marks would hold
all runs for an hour. No name or path has a hundred characters beyond ASCII in a row whose marks are out of order. A
single character can become eighteen, so of a whole script only what may be an ASCII name is changed.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

MAX_TOGETHER = 100
"""The most characters beyond ASCII that are normalised at once."""

_BEYOND = "\U00020000"
"""From here on no character stands for a part of an ASCII name."""

# What comes before ASCII never joins with it or trades places with it, so that a text may be cut there.
_PIECE = re.compile(rf"[\x00-\x7f]?[^\x00-\x7f]{{1,{MAX_TOGETHER}}}")
_LONG = re.compile(rf"[^\x00-\x7f]{{{MAX_TOGETHER + 1}}}")


def normalised(form: Literal["NFC", "NFKC", "NFKD"], text: str) -> str:
    """Return a text in a normal form; in longer runs of characters beyond ASCII, each hundred by itself."""
    if text.isascii():
        return text
    if _LONG.search(text) is None:
        return unicodedata.normalize(form, text)
    return _PIECE.sub(lambda piece: unicodedata.normalize(form, piece[0]), text)


def with_ascii_names(script: str) -> str:
    """Return a script in which every name that Python reads as an ASCII one is written so.

    All other characters stay, so it becomes at most four times as long.
    """
    if script.isascii():
        return script
    forms = {ord(one): unicodedata.normalize("NFKC", one) for one in set(script) if "\x7f" < one < _BEYOND}
    return script.translate(
        {code: form for code, form in forms.items() if form.isascii() and f"a{form}".isidentifier()}
    )
