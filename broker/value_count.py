"""How many values a JSON text holds, counted before it is decoded: a list of empty ones takes twenty times its bytes.

Above: what reads JSON of strangers, from servers and from files. Below: sandbox/json_bounds.py.
"""

from __future__ import annotations

from sandbox.json_bounds import outside_of_strings


def values_in(text: bytes, most: int) -> int:
    """Return about how many values a text holds; its strings are left out of the count only where it is over `most`."""
    count = _weight(text)
    return count if count <= most else _weight(outside_of_strings(text, b",[{"))


def _weight(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")
