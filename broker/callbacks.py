"""What escapes from code of the embedding program: its functions, servers, models, ranker, and whoever answers.

Above: everything that awaits such code. Below: nothing. It runs in the task of a script's run. There,
`sys.exit()` would end the program, and a cancelled task that was awaited look like a cancellation of the run; either is
a failure.
"""

from __future__ import annotations

import asyncio
import math

import anyio


def is_failure(error: BaseException) -> bool:
    """Tell whether an exception is a failure of the code, not a cancellation of this task, or Ctrl-C."""
    if isinstance(error, anyio.get_cancelled_exc_class()):
        return isinstance(error, asyncio.CancelledError) and not _is_cancelled()
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_failure, error.exceptions))
    return isinstance(error, Exception | SystemExit | asyncio.CancelledError)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return (task is not None and task.cancelling() > 0) or anyio.current_effective_deadline() == -math.inf
