"""Finds text from one server's results in the arguments of a call to another. It detects, and proves nothing.

Above: flow.py. Below: nothing. Texts are compared by letters and digits alone, so that other spacing, case and
punctuation hide nothing; encoding, translating or cutting in small pieces does. What is kept are hashes, not texts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    # The server, and the tool of it.
    _Origin: TypeAlias = tuple[str, str]
    # The place around it and the key in that: a pointer for each of many values under a long key would fill the memory.
    _Place: TypeAlias = tuple["_Place", str | int] | tuple[()]

SHINGLE_CHARACTERS = 24
"""Length of the pieces that are compared, in letters and digits."""
STRIDE = 8
"""Every so many characters a piece of a result is kept: common text of 31 characters is always found."""
LEAST_CHARACTERS = 8
"""Shorter values are not compared when they stand alone: they would be found everywhere."""
MAX_HASHES = 200_000
RESULT_CHARACTERS = 256 * 1024
ARGUMENT_CHARACTERS = 256 * 1024

_NOT_ALPHANUMERIC = re.compile(r"[\W_]+")
_WORD = re.compile(r"\S{8,200}")
_SAMPLE_CHARACTERS = 60
_MAX_COPIES = 5


@dataclass(frozen=True, slots=True)
class Copy:
    """Text that a call shares with a result: which tool returned it, its place in the arguments, how it begins."""

    source: str
    argument: str
    sample: str


@dataclass(slots=True, eq=False)
class Fingerprints:
    """The results of one run, by hash; those beyond `MAX_HASHES` are not kept."""

    # Each piece with two servers that gave it, the first ones: one of them is another than the server of any call.
    _first: dict[int, _Origin] = field(default_factory=dict)
    _second: dict[int, _Origin] = field(default_factory=dict)

    def add(self, server: str, source: str, value: Any) -> None:
        """Keep the fingerprints of a result."""
        origin = (server, source)
        for _, text in _texts(value, RESULT_CHARACTERS):
            normal = _normal(text)
            if len(self._first) + len(self._second) > MAX_HASHES:
                return
            if LEAST_CHARACTERS <= len(normal) <= SHINGLE_CHARACTERS + STRIDE:
                self._keep(normal, origin)
            for word in _WORD.findall(text) if len(normal) > LEAST_CHARACTERS else ():
                if any(character.isdigit() for character in word) or len(word) > SHINGLE_CHARACTERS:
                    self._keep(_normal(word), origin)
            for start in range(0, len(normal) - SHINGLE_CHARACTERS + 1, STRIDE):
                self._keep(normal[start : start + SHINGLE_CHARACTERS], origin)

    def find(self, server: str, arguments: Any) -> tuple[Copy, ...]:
        """Return what arguments for `server` have in common with results of the others, at most one for each value."""
        found: list[Copy] = []
        for place, text in _texts(arguments, ARGUMENT_CHARACTERS) if self._first else ():
            copy = self._common(server, text)
            if copy is not None:
                source, sample = copy
                found.append(Copy(source, _pointer(place), sample))
            if len(found) == _MAX_COPIES:
                break
        return tuple(found)

    def _keep(self, piece: str, origin: _Origin) -> None:
        first = self._first.setdefault(hash(piece), origin)
        if first[0] != origin[0]:
            self._second.setdefault(hash(piece), origin)

    def _source(self, server: str, piece: str) -> str:
        """Return which tool of another server gave a piece; empty where none did."""
        found = self._first.get(hash(piece))
        if found is not None and found[0] == server:
            found = self._second.get(hash(piece))
        return "" if found is None else found[1]

    def _common(self, server: str, text: str) -> tuple[str, str] | None:
        """Return the source of a text, or of a piece of it, and how what was found begins."""
        normal = _normal(text)
        if len(normal) >= LEAST_CHARACTERS and (source := self._source(server, normal)):
            return source, text[:_SAMPLE_CHARACTERS]
        for word in _WORD.findall(text):
            if source := self._source(server, _normal(word)):
                return source, word[:_SAMPLE_CHARACTERS]
        for start in range(len(normal) - SHINGLE_CHARACTERS + 1):
            if source := self._source(server, normal[start : start + SHINGLE_CHARACTERS]):
                return source, normal[start : start + _SAMPLE_CHARACTERS]
        return None


def _normal(text: str) -> str:
    return _NOT_ALPHANUMERIC.sub("", text.casefold())


def _texts(value: Any, characters: int) -> Iterator[tuple[_Place, str]]:
    """Yield the texts in a JSON value with their places, as many as fit."""
    stack: list[tuple[_Place, Any]] = [((), value)]
    while stack and characters > 0:
        place, item = stack.pop()
        if isinstance(item, str):
            yield place, item[:characters]
            characters -= len(item)
        elif isinstance(item, dict):
            stack += [((place, key), one) for key, one in item.items()]
        elif isinstance(item, list):
            stack += [((place, index), one) for index, one in enumerate(item)]
        elif isinstance(item, int | float) and not isinstance(item, bool) and len(text := str(item)) > LEAST_CHARACTERS:
            yield place, text


def _pointer(place: _Place) -> str:
    parts: list[str] = []
    while place:
        place, part = place
        parts.append(f"/{str(part)[:_SAMPLE_CHARACTERS]}")
    return "".join(reversed(parts))
