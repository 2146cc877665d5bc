"""Finds text of one server's results in the arguments of a call to another one. A detector, not a proof.

Above: flow.py. Below: nothing. Texts are compared by letters and digits alone, so that other spacing, case and
punctuation hide nothing; encoding, translating or cutting in small pieces does. What is kept are hashes, not texts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

SHINGLE_CHARACTERS = 24
"""Length of the pieces that are compared, in letters and digits."""
STRIDE = 8
"""Every so many characters a piece of a result is kept: common text of 31 characters is always found."""
LEAST_CHARACTERS = 8
"""Shorter values are not compared when they stand alone: they would be found everywhere."""
MOST_HASHES = 200_000
RESULT_CHARACTERS = 256 * 1024
ARGUMENT_CHARACTERS = 256 * 1024

_NOT_ALPHANUMERIC = re.compile(r"[\W_]+")
_WORD = re.compile(r"\S{8,200}")
_SAMPLE_CHARACTERS = 60
_MOST_COPIES = 5


@dataclass(frozen=True, slots=True)
class Copy:
    """Text that a call has in common with a result: which tool gave it, where it is now, and how it begins there."""

    source: str
    argument: str
    sample: str


@dataclass(slots=True, eq=False)
class Fingerprints:
    """The results of one run, by server.

    Attributes:
        is_partial: Whether results were too many or too long to be kept whole.
    """

    is_partial: bool = False
    _by_server: dict[str, dict[int, str]] = field(default_factory=dict)
    _count: int = 0

    def add(self, server: str, source: str, value: Any) -> None:
        """Keep the fingerprints of a result."""
        hashes = self._by_server.setdefault(server, {})
        for _, text in _texts(value, RESULT_CHARACTERS):
            normal = _normal(text)
            if self._count > MOST_HASHES:
                self.is_partial = True
                return
            before = len(hashes)
            if LEAST_CHARACTERS <= len(normal) <= SHINGLE_CHARACTERS + STRIDE:
                hashes.setdefault(hash(normal), source)
            for word in _WORD.findall(text) if len(normal) > LEAST_CHARACTERS else ():
                if any(character.isdigit() for character in word) or len(word) > SHINGLE_CHARACTERS:
                    hashes.setdefault(hash(_normal(word)), source)
            for start in range(0, len(normal) - SHINGLE_CHARACTERS + 1, STRIDE):
                hashes.setdefault(hash(normal[start : start + SHINGLE_CHARACTERS]), source)
            self._count += len(hashes) - before

    def find(self, server: str, arguments: Any) -> tuple[Copy, ...]:
        """Return what arguments for `server` have in common with results of the others, at most one for each value."""
        others = [hashes for name, hashes in self._by_server.items() if name != server and hashes]
        found: list[Copy] = []
        for place, text in _texts(arguments, ARGUMENT_CHARACTERS) if others else ():
            copy = next((copy for hashes in others if (copy := _common(hashes, place, text))), None)
            if copy is not None:
                found.append(copy)
            if len(found) == _MOST_COPIES:
                break
        return tuple(found)


def _common(hashes: dict[int, str], place: str, text: str) -> Copy | None:
    normal = _normal(text)
    if len(normal) >= LEAST_CHARACTERS and (source := hashes.get(hash(normal))):
        return Copy(source, place, text[:_SAMPLE_CHARACTERS])
    for word in _WORD.findall(text):
        if source := hashes.get(hash(_normal(word))):
            return Copy(source, place, word[:_SAMPLE_CHARACTERS])
    for start in range(len(normal) - SHINGLE_CHARACTERS + 1):
        piece = normal[start : start + SHINGLE_CHARACTERS]
        if source := hashes.get(hash(piece)):
            return Copy(source, place, normal[start : start + _SAMPLE_CHARACTERS])
    return None


def _normal(text: str) -> str:
    return _NOT_ALPHANUMERIC.sub("", text.casefold())


def _texts(value: Any, characters: int) -> Iterator[tuple[str, str]]:
    """Yield the texts in a JSON value with their JSON pointers, as many as fit."""
    stack = [("", value)]
    while stack and characters > 0:
        place, item = stack.pop()
        if isinstance(item, str):
            yield place, item[:characters]
            characters -= len(item)
        elif isinstance(item, dict):
            stack += [(f"{place}/{key}", one) for key, one in item.items()]
        elif isinstance(item, list):
            stack += [(f"{place}/{index}", one) for index, one in enumerate(item)]
        elif isinstance(item, int | float) and not isinstance(item, bool) and len(text := str(item)) > LEAST_CHARACTERS:
            yield place, text
