"""Ends the connection of a client that reads nothing of a waiting answer for too long.

Above: slow_requests.py, and http.py for its sockets. Below: asyncio. What is measured is progress, so that whoever
reads slowly, and a run or a stream that has nothing to say, may last. A system that takes over megabytes which nobody
reads would hide progress: for that `hand_over_little` bounds what it takes.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

_UNSENT_BYTES = 64 * 1024


def hand_over_little(listening: socket.socket) -> None:
    """Let the system take what it can send at once and little more, for all connections of a listening socket."""
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)


class WatchedTransport:
    """The transport of a connection, ended when nothing of what was written to it has gone out for so long."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        """Take the transport itself, which does everything else, and the time."""
        self._transport = transport
        self._loop = loop
        self._seconds = seconds
        self._written = 0
        self._is_watched = False

    def __getattr__(self, name: str) -> Any:
        """Return what the transport has."""
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write, and watch what does not go out at once."""
        self._written += len(data)
        self._transport.write(data)
        self._watch()

    def _watch(self) -> None:
        if not self._is_watched and self._transport.get_write_buffer_size():
            self._is_watched = True
            self._loop.call_later(self._seconds, self._look, self._gone_out())

    def _look(self, before: int) -> None:
        self._is_watched = False
        if self._transport.get_write_buffer_size() and self._gone_out() == before:
            self._transport.abort()  # closing it would wait for the client
        else:
            self._watch()

    def _gone_out(self) -> int:
        return self._written - self._transport.get_write_buffer_size()
