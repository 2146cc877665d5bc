"""Names as their first letters: "AOAI" for tools that say "Azure OpenAI".

Above: documents.py, which notes the first letters of the names in a tool's texts. Below: words.py. They are noted in
capitals, which no word of the index has.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import combinations, product

from broker.search.words import words

_NAME = re.compile(r"\b[A-Z]\w*(?:(?:[ -][A-Z]\w*)+(?: [a-z]+)?| [a-z]+)")
_SMALL = re.compile(r"[^A-Z]+")
_LETTERS = range(3, 7)
_WORDS = 6


def initials(text: str, server: str = "") -> set[str]:
    """Return the first letters of each name in a text, and those with that of a word of the server's name before them.

    A name is words that begin with capitals, and maybe one more. Of "OpenAI" each capital counts.
    """
    makers = _makers(server)
    found: set[str] = set()
    for name in _NAME.findall(text):
        if len(_SMALL.sub("", name)) + len(makers[-1]) + 1 < _LETTERS.start:  # "Lists queues"
            continue
        letters = [_SMALL.sub("", part) or part[0].upper() for part in name.replace("-", " ").split(" ")[:_WORDS]]
        spans = combinations(range(len(letters) + 1), 2)
        several = ["".join(letters[start:end]) for start, end in spans if end - start > 1]
        found.update(maker + short for maker, short in product(makers, several) if len(maker + short) in _LETTERS)
    return found


@lru_cache(maxsize=4_096)
def _makers(server: str) -> list[str]:
    return ["", *{word[0].upper() for word in words(server)}]
