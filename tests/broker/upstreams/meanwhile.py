"""What the others notice while a server misbehaves: calls of another server, and the memory of the broker."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from broker import Grant
from tests.processes import resident_bytes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from broker import Broker, Session

_BETWEEN_SECONDS = 0.05
_CODE = "from tools import other\nawait other.echo(text='ok')"


class Meanwhile:
    """What was seen so far.

    Attributes:
        begun: How many scripts with a call of the other server were begun.
        answered: How many of them got its answer.
        longest_seconds: The longest time that any of them took.
        resident_bytes: The most resident memory of this process after any of them.
    """

    begun = 0
    answered = 0
    longest_seconds = 0.0
    resident_bytes = 0

    def __init__(self) -> None:
        """Start with nothing seen."""
        self._answer = anyio.Event()

    async def calls(self, number: int) -> None:
        """Wait until so many more were begun and answered."""
        last = self.begun + number
        while self.answered < last:
            await self._answer.wait()

    async def call(self, session: Session) -> None:
        """Call once; anything but the right answer fails."""
        self.begun += 1
        began = anyio.current_time()
        result = await session.execute_code(_CODE, check="off")
        assert (result.error, result.value) == (None, "ok")
        self.longest_seconds = max(self.longest_seconds, anyio.current_time() - began)
        self.resident_bytes = max(self.resident_bytes, resident_bytes())
        self.answered += 1
        answer, self._answer = self._answer, anyio.Event()
        answer.set()


@asynccontextmanager
async def calls_meanwhile(broker: Broker, seen: Meanwhile) -> AsyncIterator[None]:
    """Call the tool `other.echo` again and again for the time of a block; the last call is waited for."""
    ended = anyio.Event()

    async def call() -> None:
        session = broker.session(grants=[Grant("*")])
        await session.get_tool_details(["other.echo"])
        await session.execute_code("1")  # the broker's first sandbox
        while not ended.is_set():
            await seen.call(session)
            with anyio.move_on_after(_BETWEEN_SECONDS):
                await ended.wait()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        yield
        ended.set()
