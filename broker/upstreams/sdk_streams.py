"""What the SDK's dispatcher wants of a stream of messages beside reading and writing them.

Above: child_messages.py, http_messages.py. Below: the SDK's messages.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

import anyio

if TYPE_CHECKING:
    from types import TracebackType

    from mcp.shared.message import SessionMessage


class Stream:
    """What the SDK's `ReadStream` and `WriteStream` have in common."""

    async def __aenter__(self) -> Self:
        """Return it."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close nothing: what it reads from or writes to is closed elsewhere."""


class ReadingStream(Stream, ABC):
    """What there is beside `receive` in a `ReadStream`."""

    @abstractmethod
    async def receive(self) -> SessionMessage | Exception:
        """Return the next message.

        Raises:
            anyio.EndOfStream: There is none.
        """

    def __aiter__(self) -> Self:
        """Return it."""
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        """Return the next message."""
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None
