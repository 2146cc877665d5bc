"""Bounds the time in which a client must send a request: headers and body, from its first byte.

Above: http.py. Below: uvicorn's protocol over h11, which has no such bound: a client that sends a byte now and then
would hold a connection for as long as it likes; and unread_answers.py for the other direction. The time of whatever
answers a request is not bounded.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from broker.server.unread_answers import WatchedTransport

_READ_BYTES = 8 * 1024


class TimedProtocol(H11Protocol, asyncio.BufferedProtocol):
    """One connection, closed with HTTP 408 when a request takes too long to come in.

    It takes in little at a time: a body may come in pieces of one byte, each of which is an event of h11.
    """

    def __init__(self, *args: Any, request_seconds: float, answer_seconds: float, **options: Any) -> None:
        """Take how long a request may take, and how long an answer may lie; the rest is uvicorn's."""
        super().__init__(*args, **options)
        self._request_seconds = request_seconds
        self._answer_seconds = answer_seconds
        self._due: asyncio.TimerHandle | None = None
        self._read = bytearray(_READ_BYTES)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to wait: the first request is due as soon as somebody has connected."""
        super().connection_made(WatchedTransport(transport, self.loop, self._answer_seconds))  # type: ignore[arg-type]
        self._watch()

    def get_buffer(self, sizehint: int) -> bytearray:
        """Return where the next bytes go."""
        del sizehint
        return self._read

    def buffer_updated(self, nbytes: int) -> None:
        """Take the bytes that have come."""
        self.data_received(bytes(self._read[:nbytes]))

    def handle_events(self) -> None:
        """Take what has come in; see whether there is more to wait for."""
        super().handle_events()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._unwatch()
        super().connection_lost(exc)

    @property
    def _is_due(self) -> bool:
        """Whether a request has begun that is not whole, or none has begun on a new connection."""
        if self.conn.their_state is h11.IDLE:
            begun, _ = self.conn.trailing_data
            return bool(begun) or self.cycle is None
        return self.conn.their_state is h11.SEND_BODY

    def _watch(self) -> None:
        if not self._is_due:
            self._unwatch()
        elif self._due is None:
            self._due = self.loop.call_later(self._request_seconds, self._give_up)

    def _unwatch(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _give_up(self) -> None:
        self._due = None
        if self.transport.is_closing():
            return
        if self.flow.read_paused:  # it is we who do not read on
            self._watch()
            return
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self._send_408()
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()

    def _send_408(self) -> None:
        text = f"The request was not complete after {self._request_seconds:g} seconds.\n".encode()
        headers = [
            ("content-type", "text/plain; charset=utf-8"),
            ("content-length", str(len(text))),
            ("connection", "close"),
        ]
        with suppress(h11.LocalProtocolError):  # no body may follow, as after HEAD
            for event in (
                h11.Response(status_code=408, headers=headers, reason="Request Timeout"),
                h11.Data(data=text),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
