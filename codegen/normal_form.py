"""Brings hostile texts into a Unicode normal form in time proportional to their length.

Above: whoever compares names as Python does, and paths as servers may. Below: nothing. `unicodedata` sorts marks that
follow each other with an insertion sort, and keeps the interpreter meanwhile: a script of a million marks would hold
all runs for an hour. No name or path has a hundred characters beyond ASCII in a row whose marks are out of order.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

MOST_TOGETHER = 100
"""The most characters beyond ASCII that are normalised at once."""

# What comes before ASCII never joins with it or trades places with it, so that a text may be cut there.
_PIECE = re.compile(rf"[\x00-\x7f]?[^\x00-\x7f]{{1,{MOST_TOGETHER}}}")
_LONG = re.compile(rf"[^\x00-\x7f]{{{MOST_TOGETHER + 1}}}")


def normalised(form: Literal["NFC", "NFKC", "NFKD"], text: str) -> str:
    """Return a text in a normal form; in longer runs of characters beyond ASCII, each hundred by itself."""
    if text.isascii():
        return text
    if _LONG.search(text) is None:
        return unicodedata.normalize(form, text)
    return _PIECE.sub(lambda piece: unicodedata.normalize(form, piece[0]), text)
