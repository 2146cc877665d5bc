"""The signals that end a command: of a cancelled job, `timeout`, a service manager, a terminal that is closed.

Above: start.py, serve.py. Below: anyio. A process that dies of one leaves servers behind that ignore the end of their
input.
"""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, TypeVar

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Request = TypeVar("Request")
Result = TypeVar("Result")


class SignalReceived(Exception):  # noqa: N818  # not an error: somebody wants the command to end
    """A command was ended by a signal, and has cleaned up.

    Attributes:
        number: The signal.
    """

    def __init__(self, number: signal.Signals) -> None:
        """Keep which one it was."""
        super().__init__(number.name)
        self.number = number


def ending_signals() -> list[signal.Signals]:
    """Return what ends a command beside Ctrl-C; one that is ignored, as under nohup, stays so."""
    if sys.platform == "win32":
        return []
    return [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) is not signal.SIG_IGN]


async def run_until_signal(command: Callable[[Request], Awaitable[Result]], request: Request) -> Result:
    """Run a command; a signal cancels it, and another one kills the process.

    Raises:
        SignalReceived: One has come, and the command has ended.
    """
    received: list[signal.Signals] = []

    async def cancel() -> None:
        with anyio.open_signal_receiver(*ending_signals()) as signals:
            async for number in signals:
                received.append(number)
                break
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancel)
        result = await command(request)
        tasks.cancel_scope.cancel()
    if received:
        raise SignalReceived(received[0])
    return result
