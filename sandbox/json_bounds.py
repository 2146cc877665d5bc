"""Counts the values in a JSON text and their nesting without decoding it.

Above: guest_messages.py, which decodes what is within bounds, host_messages.py, and what in the broker reads JSON of
strangers. The text is hostile: each question takes a few passes over it, none of them in Python.
"""

from __future__ import annotations

import re

# Possessive, and without a closing quote it still matches.
_QUOTED = re.compile(rb'"[^"]*+"?')
_AS_LISTS = bytes.maketrans(b"{}", b"[]")
VALUE_BYTES = 60
"""Memory of a number or a short text in a list, decoded; a list or an object counts as four."""

_LONG = 100


def has_more_values(text: str, most: int) -> bool:
    """Tell whether JSON holds more than `most` values; a list or an object counts as four."""
    # No character counts for more than four: a short text needs no look at it.
    return 4 * len(text) > most and _weight(text) > most and _weight_outside(text) > most


def decoded_bytes(text: str) -> int:
    """Return about the most memory that JSON takes once it is decoded."""
    # Commas within texts count for nothing where that matters and is found fast: in few texts, and so long ones.
    is_of_long_texts = text.count('"') * _LONG < len(text)
    return len(text) + VALUE_BYTES * (_weight_outside(text) if is_of_long_texts else _weight(text))


def is_within_depth(text: str, max_depth: int) -> bool:
    """Tell whether JSON is nested at most `max_depth` levels deep; of text that is not JSON, either may be told."""
    if _openings(text) <= max_depth:
        return True
    brackets = _brackets(text)
    for _ in range(max_depth):
        # Takes away the innermost level everywhere.
        outer = brackets.replace(b"[]", b"")
        if len(outer) == len(brackets):
            break  # nothing is left, or what is left never closes and is no JSON
        brackets = outer
    return brackets.count(b"[") <= (0 if b"[]" in brackets else max_depth)


def outside_of_strings(data: bytes, wanted: bytes) -> bytes:
    """Return which of the wanted characters JSON has outside of its strings.

    Each pass is one of C over the whole text; a pattern for strings would stop at each of a million, and keep what lies
    between them.
    """
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Two quotes with nothing between them change nothing about what is inside a string.
    return _QUOTED.sub(b"", data.translate(None, bytes(set(range(256)) - {*wanted, *b'"'})).replace(b'""', b""))


def _weight(text: str) -> int:
    return text.count(",") + 4 * _openings(text)


def _weight_outside(text: str) -> int:
    return _weight(outside_of_strings(_encoded(text), b",[{").decode())


def _openings(text: str) -> int:
    return text.count("[") + text.count("{")


def _brackets(text: str) -> bytes:
    """Return the brackets of JSON outside its strings, all as those of lists."""
    return outside_of_strings(_encoded(text), b"[]{}").translate(_AS_LISTS)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
