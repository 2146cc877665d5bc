"""Which lazy servers the session of the present request has used, so that they can rest when it has ended.

Above: the MCP server, which has a set for each session, and upstream.py, which adds to the present one. Below: nothing.
A run's tasks have the set of the request that began it.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_USED: ContextVar[set[str] | None] = ContextVar("used_servers", default=None)


@contextmanager
def noting_use(used: set[str]) -> Iterator[None]:
    """Add to `used` the lazy servers that are needed within the block."""
    token = _USED.set(used)
    try:
        yield
    finally:
        _USED.reset(token)


def note_use(server: str) -> bool:
    """Note that a lazy server is needed now; return whether that is in such a session, or else of this program."""
    used = _USED.get()
    if used is not None:
        used.add(server)
    return used is not None
