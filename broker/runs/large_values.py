"""Work on the values of scripts, in a thread if they have many parts.

Above: execution.py, the surface. Below: anyio. One script's value does not keep the other sessions waiting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import anyio.to_thread

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

MANY_PARTS = 5_000
"""So many are gone through in some ten milliseconds; a thread costs a tenth of one."""


async def worked_on(value: Any, work: Callable[[], T]) -> T:
    """Do work on a JSON value, and return what it comes to."""
    if has_many_parts(value):
        return await anyio.to_thread.run_sync(work)
    return work()


def has_many_parts(value: Any) -> bool:
    """Tell whether a JSON value holds more others than are quickly gone through; looks at no more than those."""
    waiting, seen = [value], 0
    while waiting:
        one = waiting.pop()
        if isinstance(one, list | dict):
            seen += len(one)
            if seen > MANY_PARTS:
                return True
            waiting += one.values() if isinstance(one, dict) else one
    return False
