"""How many values a JSON text holds, counted before it is decoded: a list of empty ones takes twenty times its bytes.

Above: what reads JSON of strangers, from servers and from files. Below: nothing.
"""

from __future__ import annotations

import re

_QUOTED = re.compile(rb'"[^"]*+"?')
_NO_STRUCTURE = bytes(set(range(256)) - set(b',[{"'))


def values_in(text: bytes, most: int) -> int:
    """Return about how many values a text holds; its strings are left out of the count only where it is over `most`."""
    count = _weight(text)
    return count if count <= most else _weight(_outside_of_strings(text))


def _weight(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _outside_of_strings(text: bytes) -> bytes:
    """Return what counts of JSON; a pattern for its strings would stop at each of a million, and keep all between."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Two quotes with nothing between them change nothing about what is inside a string.
    return _QUOTED.sub(b"", text.translate(None, _NO_STRUCTURE).replace(b'""', b""))
