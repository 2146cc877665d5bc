"""A request that somebody answers later, while others wait for the answer.

Above: question_box.py, for questions and forms of servers; server/asking.py, for the requests that a client comes for.
Below: anyio.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Answerable(Generic[T]):
    """A request that is answered once; the first answer counts."""

    _answer: T = field(init=False, repr=False)
    _answered: anyio.Event = field(init=False, repr=False, default_factory=anyio.Event)
    _thread: int = field(init=False, repr=False, default_factory=threading.get_ident)

    @property
    def is_answered(self) -> bool:
        """Whether somebody has answered; whoever waits for that may not have taken note yet."""
        return self._answered.is_set()

    def reply(self, answer: T, /) -> bool:
        """Answer it; return whether this was the first answer.

        Raises:
            RuntimeError: This is another thread than that of the event loop, which would not notice.
        """
        if threading.get_ident() != self._thread:
            raise RuntimeError("reply on the event loop's thread: loop.call_soon_threadsafe(asked.reply, answer)")
        if self._answered.is_set():
            return False
        self._answer = answer
        self._answered.set()
        return True

    async def answer(self) -> T:
        """Wait for the answer."""
        await self._answered.wait()
        return self._answer
