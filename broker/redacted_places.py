"""Where fixed texts stand in another one: as they are, or with any of their characters percent-encoded.

Above: redaction.py. Below: nothing. No expression is compiled: for a token of 16,384 characters that takes seconds.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MARK = "[redacted]"

_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}")
_ESCAPE_SAVES = 2
_HEAD_CHARACTERS = 8
_CONTINUATIONS = range(0x80, 0xC0)
"""Octets that begin no character."""


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
        self._data = text.encode("utf-8", "surrogatepass")
        self.octets = unquote_to_bytes(self._data).decode("latin-1")

    def places(self, found: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return where in the text some of the octets are, in one walk over it; none of the places is empty."""
        pairs = list(found)
        if not pairs:
            return []
        wanted = sorted({octet for begin, end in pairs for octet in (begin, end - 1)})
        characters = dict(zip(wanted, self._characters(wanted), strict=True))
        return [(characters[begin][0], characters[end - 1][1]) for begin, end in pairs]

    def _characters(self, wanted: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Yield where the character or escape begins and ends that an octet comes from, for each, in their order."""
        escapes = (escape.start() for escape in _ESCAPE.finditer(self._data))
        escape = next(escapes, None)
        saved = 0  # octets that the escapes before have more than what they stand for
        at = count = 0  # octets and characters before the last one that was found
        for octet in wanted:
            while escape is not None and escape - saved < octet:
                escape, saved = next(escapes, None), saved + _ESCAPE_SAVES
            begin = octet + saved
            if begin == escape:
                size = _ESCAPE_SAVES + 1
            else:
                while self._data[begin] in _CONTINUATIONS:
                    begin -= 1
                size = 1
            count += len(self._data[at:begin].decode("utf-8", "surrogatepass"))
            at = begin
            yield count, count + size
