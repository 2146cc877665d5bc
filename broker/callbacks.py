"""What escapes from code of the embedding program: its functions, servers, models, ranker, and whoever answers.

Above: everything that awaits such code. Below: nothing. It runs in the task of a script's run. There,
`sys.exit()` or a panic of an extension would end the program, and a cancelled task that was awaited look like a
cancellation of the run; each is a failure like any other.
"""

from __future__ import annotations

import asyncio
import math
from contextlib import contextmanager
from inspect import isawaitable
from typing import TYPE_CHECKING, TypeVar

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

_Result = TypeVar("_Result")


class EscapedError(Exception):
    """Stands for what would have escaped from such code, which is its `__cause__`."""


class NoReplyError(Exception):
    """Whoever was asked over a connection gave no usable reply.

    The text is ours: what the other end has said may forge lines of a log, and act on the terminal that shows it.
    """


@contextmanager
def failing_alone() -> Iterator[None]:
    """Await such code in this block: what is no `Exception`, and not meant for this task, is raised as one.

    Raises:
        EscapedError: The code exits or panics, or has awaited a task that was cancelled.
    """
    try:
        yield
    except Exception:
        raise
    except BaseException as error:
        if not is_failure(error):
            raise
        raise EscapedError(type(error).__name__) from error


async def awaited(name: str, returned: Awaitable[_Result]) -> _Result:
    """Return the result of such code, given what its function of that name has returned.

    Raises:
        TypeError: The function is a plain `def`.
    """
    if not isawaitable(returned):
        raise TypeError(f"{name} is an `async def` function; this one returned a {type(returned).__name__}")
    return await returned


def is_failure(error: BaseException) -> bool:
    """Tell whether an exception is a failure of the code, not a cancellation of this task, or Ctrl-C."""
    if isinstance(error, anyio.get_cancelled_exc_class()):
        return isinstance(error, asyncio.CancelledError) and not _is_cancelled()
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_failure, error.exceptions))
    return not isinstance(error, KeyboardInterrupt | GeneratorExit)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return (task is not None and task.cancelling() > 0) or anyio.current_effective_deadline() == -math.inf
