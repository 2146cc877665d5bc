"""Where fixed texts stand in another one: as they are, or with any of their characters percent-encoded.

Above: redaction.py. Below: nothing. No expression is compiled: for a token of 16,384 characters that takes seconds.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MARK = "[redacted]"

_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_HEAD_CHARACTERS = 8
_CONTINUATIONS = dict.fromkeys(range(0x80, 0xC0))
"""Octets that begin no character, to be left out when characters are counted."""


def octets(text: str) -> str:
    """Return the UTF-8 of a text as characters from 0 to 255, as which it is found wherever it was encoded."""
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def places(wanted: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield where a text begins and ends in another one."""
    at = text.find(wanted)
    while at >= 0:
        yield at, at + len(wanted)
        at = text.find(wanted, at + len(wanted))


def without(text: str, found: Iterable[tuple[int, int]]) -> str:
    """Return a text with a mark for each of the places; those that overlap are one."""
    kept: list[str] = []
    begin = 0  # of what is not in a place
    for start, end in sorted(found):
        if start >= begin:
            kept += [text[begin:start], MARK]
        begin = max(begin, end)
    return "".join([*kept, text[begin:]])


def overlap(text: str, wanted: str) -> int:
    """Return how many characters at the end of a text are the beginning of another one."""
    head = wanted[:_HEAD_CHARACTERS]
    at = text.find(head, max(0, len(text) - len(wanted)))
    while at >= 0:
        if wanted.startswith(text[at:]):
            return len(text) - at
        at = text.find(head, at + 1)
    return next((count for count in range(len(head), 0, -1) if text.endswith(head[:count])), 0)


class Unescaped:
    """A text with what is percent-encoded in it decoded.

    Attributes:
        octets: The UTF-8 of that, as of the function.
    """

    def __init__(self, text: str) -> None:
        """Read a text once."""
        self._pieces: list[tuple[int, str, bool]] = []  # where in the text, what it becomes, whether it was encoded
        at = 0
        for escape in _ESCAPE.finditer(text):
            if escape.start() > at:
                self._pieces.append((at, octets(text[at : escape.start()]), False))
            self._pieces.append((escape.start(), chr(int(escape[1], 16)), True))
            at = escape.end()
        self._pieces.append((at, octets(text[at:]), False))
        self.octets = "".join(piece for _, piece, _ in self._pieces)
        self._starts: list[int] = []
        start = 0
        for _, piece, _ in self._pieces:
            self._starts.append(start)
            start += len(piece)

    def place(self, begin: int, end: int) -> tuple[int, int]:
        """Return where in the text some of the octets are; `begin` is before `end`."""
        return self._of(begin)[0], self._of(end - 1)[1]

    def _of(self, octet: int) -> tuple[int, int]:
        """Return where the character or escape begins and ends that an octet comes from."""
        number = bisect_right(self._starts, octet) - 1
        at, piece, was_encoded = self._pieces[number]
        if was_encoded:
            return at, at + len("%00")
        begun = len(piece[: octet - self._starts[number] + 1].translate(_CONTINUATIONS))
        return at + begun - 1, at + begun
