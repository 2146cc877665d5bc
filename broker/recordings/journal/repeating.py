"""The client's request in which a run begins. If the process dies, the same request repeated goes on with the run.

Above: the server, which says so, and recorder.py, which has it written down. Below: nothing.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_REQUEST: ContextVar[str] = ContextVar("_REQUEST", default="")


@contextmanager
def in_request(request: str) -> Iterator[None]:
    """Let runs that begin in a block, also in tasks that it starts, be known by what a client has to repeat."""
    token = _REQUEST.set(request)
    try:
        yield
    finally:
        _REQUEST.reset(token)


def present_request() -> str:
    """Return what a client has to repeat to go on with a run that begins now; empty where nobody can."""
    return _REQUEST.get()
