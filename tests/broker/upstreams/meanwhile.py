"""What the others notice while a server misbehaves: calls of another server, and the memory of the broker."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from broker import Grant
from tests.processes import resident_bytes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from broker import Broker

_BETWEEN_SECONDS = 0.05
_CODE = "from tools import other\nawait other.echo(text='ok')"


class Meanwhile:
    """What was seen so far.

    Attributes:
        answered: How many calls of the other server were answered.
        resident_bytes: The most resident memory of this process after any of them.
    """

    answered = 0
    resident_bytes = 0


@asynccontextmanager
async def calls_meanwhile(broker: Broker) -> AsyncIterator[Meanwhile]:
    """Call the tool `other.echo` again and again for the time of a block; the last call is waited for."""
    seen = Meanwhile()
    ended = anyio.Event()

    async def call() -> None:
        session = broker.session(grants=[Grant("*")])
        await session.get_tool_details(["other.echo"])
        await session.execute_code("1")  # the broker's first sandbox
        while not ended.is_set():
            result = await session.execute_code(_CODE, check="off")
            assert (result.error, result.value) == (None, "ok")
            seen.answered += 1
            seen.resident_bytes = max(seen.resident_bytes, resident_bytes())
            with anyio.move_on_after(_BETWEEN_SECONDS):
                await ended.wait()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        yield seen
        ended.set()
