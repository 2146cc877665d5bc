"""The signals that end a command: Ctrl-C, or a cancelled job, `timeout`, a service manager, a terminal that is closed.

Above: start.py, serve.py, prompts.py. Below: asyncio, whose loop a signal wakes. A process that dies of one leaves
servers behind that ignore the end of their input.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

Request = TypeVar("Request")
Result = TypeVar("Result")

_HEEDED_SECONDS = 1.0
"""How long a signal waits for code that keeps the event loop busy; another one then interrupts that."""

_ENDED_SECONDS = 5.0
"""How long a command may take to end what it has started, as servers that ignore the end of their input."""


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
    """Return what ends a command; a signal that is ignored, as under nohup or in the background, stays so."""
    numbers = [signal.SIGINT]
    if sys.platform != "win32":
        numbers += [signal.SIGTERM, signal.SIGHUP]
    return [one for one in numbers if signal.getsignal(one) is not signal.SIG_IGN]


async def run_until_signal(command: Callable[[Request], Awaitable[Result]], request: Request) -> Result:
    """Run a command; a signal cancels it. People and programs send several: the others do not disturb its end.

    Raises:
        SignalReceived: One has come, and the command has ended.
        KeyboardInterrupt: Another one has come while the command did not end.
    """
    with anyio.CancelScope() as scope:
        ending = _Ending(scope)
        _ENDING.set(ending)
        with _handled_by(ending):
            result = await command(request)
    if ending.number is not None:
        raise SignalReceived(ending.number)
    return result


def interrupt() -> None:
    """End the command as Ctrl-C does, even if the shell has made it ignore that signal."""
    _ENDING.get()(signal.SIGINT)


class _Ending:
    """Handles the signals of one command.

    Attributes:
        number: The first that came.
    """

    def __init__(self, scope: anyio.CancelScope) -> None:
        self.number: signal.Signals | None = None
        self._scope = scope
        self._loop = asyncio.get_running_loop()
        self._since = 0.0

    def __call__(self, number: int, _frame: object = None) -> None:
        if self.number is None:
            self.number, self._since = signal.Signals(number), time.monotonic()
            self._loop.call_soon_threadsafe(self._scope.cancel)
            return
        patience = _ENDED_SECONDS if self._scope.cancel_called else _HEEDED_SECONDS
        if time.monotonic() - self._since > patience:
            raise KeyboardInterrupt


_ENDING: ContextVar[_Ending] = ContextVar("ending")


@contextmanager
def _handled_by(ending: _Ending) -> Iterator[None]:
    before = {number: signal.signal(number, ending) for number in ending_signals()}
    try:
        yield
    finally:
        if ending.number is None:  # else what is left to do at the process's end is not disturbed either
            for number, handler in before.items():
                signal.signal(number, handler)
