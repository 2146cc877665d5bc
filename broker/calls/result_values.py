"""Brings values of servers and models into a form for scripts: valid JSON within bounds on size, depth and number.

Above: tool_results.py, extraction.py. Below: result_texts.py. Written by a server or a model; decoded already, with
what Python reads beyond JSON.
"""

from __future__ import annotations

import math
from typing import Any

from broker.errors import UnfitResultError
from broker.texts import result_texts

MAX_BYTES = 4 * 1024 * 1024
MAX_LEVELS = 60
MAX_VALUES = 200_000

_LARGEST_INTEGER_BITS = 4_096
_SMALL = 2**63


def bounded(value: Any) -> Any:
    """Return a value as valid JSON, checked before it is copied: NaN and infinities become None, lone surrogates `?`.

    Raises:
        UnfitResultError: It is over a bound, or not JSON.
    """
    return value if _is_clean(value) else _normalised(value)


def _is_clean(value: Any) -> bool:
    """Walk the value without recursion and refuse it as soon as it is over a bound.

    Tells whether the value is JSON as it is, so that it need not be copied.
    """
    size = nodes = 0
    is_clean = True
    stack = [(value, 1)]
    while stack:
        item, depth = stack.pop()
        nodes += 1
        if depth > MAX_LEVELS:
            raise UnfitResultError(result_texts.too_deep(MAX_LEVELS))
        if nodes > MAX_VALUES:
            raise UnfitResultError(result_texts.too_many_values(MAX_VALUES), is_too_large=True)
        if isinstance(item, str):
            is_ascii = item.isascii()
            is_clean = is_clean and is_ascii
            size += len(item) if is_ascii else len(item.encode("utf-8", "replace"))
        elif isinstance(item, dict):
            is_clean = is_clean and {*map(type, item)} <= {str} and all(map(str.isascii, item))
            size += sum(map(len, map(str, item)))
            stack += [(one, depth + 1) for one in item.values()]
        elif isinstance(item, list | tuple):
            is_clean = is_clean and type(item) is list
            stack += [(one, depth + 1) for one in item]
        else:
            is_clean = is_clean and (
                item is None
                or type(item) is bool
                or (type(item) is int and -_SMALL < item < _SMALL)
                or (type(item) is float and math.isfinite(item))
            )
        if size + 2 * nodes > MAX_BYTES:
            raise UnfitResultError(result_texts.too_large(MAX_BYTES), is_too_large=True)
    return is_clean


def _normalised(value: Any) -> Any:
    """Copy a value whose depth has been checked."""
    match value:
        case None | bool():
            return value
        case str():
            return value if value.isascii() else value.encode("utf-8", "replace").decode()
        case int():
            if value.bit_length() > _LARGEST_INTEGER_BITS:
                raise UnfitResultError(result_texts.too_large_an_integer(_LARGEST_INTEGER_BITS))
            return value
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {_normalised(str(key)): _normalised(item) for key, item in value.items()}
        case list() | tuple():
            return [_normalised(item) for item in value]
    raise UnfitResultError(result_texts.NOT_JSON)
