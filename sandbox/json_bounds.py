"""How many values a JSON text holds and how deep they are nested, found without decoding it.

Above: guest_messages.py, which decodes what is within bounds, and host_messages.py. The text is hostile: each question
takes a few passes over it, none of them in Python.
"""

from __future__ import annotations

import re

# Possessive, and without a closing quote it still matches: a text of escaped quotes costs one pass, not one for each.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?')
_QUOTED = re.compile(rb'"[^"]*+"?')
_AS_LISTS = bytes.maketrans(b"{}", b"[]")
VALUE_BYTES = 60
"""Of a number or a short text in a list; a list or an object counts as four."""

_LONG = 100
_NO_STRUCTURE = bytes(set(range(256)) - set(b'[]{}"'))


def has_more_values(text: str, most: int) -> bool:
    """Whether JSON holds more values than so many; a list or an object counts as four."""
    # No character counts for more than four: a short text needs no look at it.
    return 4 * len(text) > most and _weight(text) > most and _weight(_STRING.sub("", text)) > most


def decoded_bytes(text: str) -> int:
    """Returns what JSON takes once it is decoded, at most about."""
    # Commas within texts count for nothing where that matters and is found fast: in few texts, and so long ones.
    is_of_long_texts = text.count('"') * _LONG < len(text)
    return len(text) + VALUE_BYTES * _weight(_STRING.sub("", text) if is_of_long_texts else text)


def is_within_depth(text: str, max_depth: int) -> bool:
    """Whether JSON is nested no deeper than so many levels; text that is none may be either."""
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


def _weight(text: str) -> int:
    return text.count(",") + 4 * _openings(text)


def _openings(text: str) -> int:
    return text.count("[") + text.count("{")


def _brackets(text: str) -> bytes:
    """Returns the brackets of JSON outside its strings, all as those of lists.

    Each pass is one of C over the whole text; a pattern for strings would stop at each of thousands.
    """
    data = text.encode("utf-8", "surrogatepass")
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Two quotes with nothing between them change nothing about what is inside a string.
    data = data.translate(_AS_LISTS, _NO_STRUCTURE).replace(b'""', b"")
    return _QUOTED.sub(b"", data)
