"""Counts the tokens of a text with a tokenizer if one is installed, and estimates them otherwise.

Above: the budgets of tiers.py, of `describe: auto` and of a run's output. Below: bpe-openai (the extra `tokenizer`),
which carries its vocabulary; no model's own tokenizer is the right one for all, so that the name goes with every count.
"""

from __future__ import annotations

import importlib
import re
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

BYTES_PER_TOKEN = 3.6
"""Of prose and code, which have more. Numbers and punctuation have less: these are counted. So have random letters."""

_PIECE = re.compile(
    r" ?[A-Z]?[a-z]{1,10}| ?[A-Z]{1,2}|[0-9]{1,3}|[\r\n]+|[ \t]{1,16}| ?[!-/:-@\[-`{-~]{1,2}"
    r"|[\x00-\x1f\x7f]|[\x80-\u07ff]{1,2}|[^\x00-\u07ff]"
)
# Of scripts that a vocabulary has hardly seen, each byte is a token, or nearly.
_RARE = re.compile(
    r"[\u0700-\u08ff\u0e80-\u0fff\u1100-\u177f\u1800-\u1dff\u2800-\u2dff\u3400-\u4dbf\ua000-\uabff"
    r"\U00010000-\U0001d7ff]"
)
_ENCODING = "o200k_base"
_COUNTED = 8_192
_COUNTED_CHARACTERS = 32_768
"""So many at a time: bpe-openai refuses a million characters, and more than 200,000 tokens, four for a rare one."""


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """Counts tokens.

    Attributes:
        name: By what: `o200k_base` or `estimate`.
        count: Returns the tokens of a text.
        count_once: The same, for long texts that are not counted again: it keeps none of them. `count` if None.
    """

    name: str
    count: Callable[[str], int]
    count_once: Callable[[str], int] | None = None


def estimate(text: str) -> int:
    """Return about how many tokens a text has: a bit more than o200k_base counts, of JSON and of Chinese too.

    The larger one of two numbers: its bytes divided, and its words, numbers and runs of punctuation, each of which is
    a token at least. Of random letters it is half or less.
    """
    by_bytes = -int(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)
    if text.isascii():
        return max(by_bytes, len(_PIECE.findall(text)))
    # Emoji, two tokens each, are what UTF-16 writes in two units.
    beyond = len(text.encode("utf-16-le", "surrogatepass")) // 2 - len(text)
    return max(by_bytes, len(_PIECE.findall(text)) + beyond + 2 * len(_RARE.findall(text)))


ESTIMATE = TokenCounter("estimate", estimate)


@lru_cache(maxsize=1)
def token_counter() -> TokenCounter:
    """Return the tokenizer that is installed, or the estimate; loading it takes a second the first time."""
    try:
        with warnings.catch_warnings():
            # It reads its own files in a way that Python 3.11 calls old.
            warnings.simplefilter("ignore", DeprecationWarning)
            encoding = importlib.import_module("bpe_openai").get_encoding(_ENCODING)
    except ImportError:
        return ESTIMATE

    def count_once(text: str) -> int:
        plain = text.encode("utf-8", "replace").decode()
        pieces = (plain[at : at + _COUNTED_CHARACTERS] for at in range(0, len(plain), _COUNTED_CHARACTERS))
        return sum(len(encoding.encode_ordinary(piece)) for piece in pieces)

    return TokenCounter(_ENCODING, lru_cache(maxsize=_COUNTED)(count_once), count_once)
