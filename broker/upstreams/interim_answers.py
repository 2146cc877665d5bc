"""Ends a connection on which a server sends interim answers (1xx) instead of the one that is asked for.

Above: http_client.py. Below: the network of httpcore2, which takes all of them that have come before others have their
turn: thousands, each an event of h11, on a stream without end for ever.
"""

from __future__ import annotations

from typing import Any

import httpcore2

MAX_AT_ONCE = 16
"""How many answers may begin in what is read at once; no JSON and no event has a line that begins as they do."""

_BEGINNING = b"\nHTTP/"


class WatchedNetwork(httpcore2.AsyncNetworkBackend):
    """A network whose streams are watched."""

    def __init__(self, network: httpcore2.AsyncNetworkBackend) -> None:
        """Take the network itself."""
        self._network = network

    async def connect_tcp(self, *given: Any, **named: Any) -> httpcore2.AsyncNetworkStream:
        """Connect."""
        return _Stream(await self._network.connect_tcp(*given, **named))

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await self._network.sleep(seconds)


class _Stream(httpcore2.AsyncNetworkStream):
    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109  # as httpcore2 has it
        piece = await self._stream.read(max_bytes, timeout)
        if piece.count(_BEGINNING) > MAX_AT_ONCE:
            raise httpcore2.ReadError("too many interim answers")
        return piece

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109  # as above
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(self, *given: Any, **named: Any) -> httpcore2.AsyncNetworkStream:
        return _Stream(await self._stream.start_tls(*given, **named))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
