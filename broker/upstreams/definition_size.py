"""How large and how deep a tool's definition is, and its integers, found out without walking too much of it.

Above: listing.py, guidance.py. Below: nothing. Definitions were written by servers.
"""

from __future__ import annotations

from typing import Any

VALUE_BYTES = 64

INTEGER_BITS = 4_096
"""As many as results may have; Python writes none of more than 4,300 digits in decimal."""


def size_of(value: Any, most: int) -> int:
    """Return about how many bytes a JSON value takes in memory; some number over `most` where it takes more."""
    size, waiting = 0, [value]
    while waiting and size <= most:
        one = waiting.pop()
        size += VALUE_BYTES
        if isinstance(one, str):
            size += len(one)
        elif isinstance(one, dict | list):
            if size + VALUE_BYTES * len(one) > most:
                return most + 1
            if isinstance(one, dict):
                size += sum(VALUE_BYTES + len(key) for key in one)
            waiting += one.values() if isinstance(one, dict) else one
    return size


def is_deeper(value: Any, levels: int) -> bool:
    """Tell whether lists and objects are nested deeper than so many levels, without recursion."""
    level = [value]
    for _ in range(levels):
        inside = [list(one.values()) if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        level = [one for many in inside for one in many]
        if not level:
            return False
    return True


def has_large_integer(value: Any) -> bool:
    """Tell whether an integer in a JSON value has more than `INTEGER_BITS`."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, int) and one.bit_length() > INTEGER_BITS:
            return True
    return False
