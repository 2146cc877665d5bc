"""The line to one worker process: frames sent to it, and heard from it by whoever waits.

Above: worker_process.py, which says what is sent when, and kills the worker when the line breaks. Below: frames.py,
seat.py, one end of a socket pair. Whoever waits for a step listens for all who wait: no task and no thread belongs to a
line. Only a run whose step is open may be spoken for, in frames no longer than its limits allow; anything else breaks
the line.
"""

from __future__ import annotations

import contextlib
import select
import time
from functools import partial
from typing import TYPE_CHECKING

import anyio

from sandbox.busy_polling import BRIEF_SECONDS, POLLED_SECONDS, BusyPolling
from sandbox.engine import QUICK_SECONDS
from sandbox.errors import ProtocolError
from sandbox.frames import RECEIVE_BYTES, Frame, FrameReader, Kind

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from sandbox.seat import Seat


class WorkerLostError(Exception):
    """The worker has ended; its runs must be replayed elsewhere. Never leaves the package."""


class WorkerLine:
    """Our end of the socket to a worker."""

    def __init__(self, end: socket.socket, on_break: Callable[[], None]) -> None:
        """Take the socket, and what is done when the worker has hung up or sent what may not come: it calls `end`."""
        self.open_steps: dict[int, Seat] = {}
        """The seats that may be spoken for, by number."""
        self._socket = end
        self._on_break = on_break
        self._is_ended = False
        self._waiting: dict[int, anyio.Event] = {}
        self._frames = FrameReader(self._allowed)
        self._outgoing = bytearray()
        self._sending = anyio.Lock()
        self._has_listener = False
        self._heard_at = 0.0
        self._socket.setblocking(False)  # noqa: FBT003  # the standard library's signature
        self._polling = BusyPolling()
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)

    def end(self) -> None:
        """End it for all who wait: the worker is lost."""
        self._is_ended = True
        self._close_socket()
        for number in list(self._waiting):
            self._wake(number)

    def queue(self, frame: bytes) -> None:
        """Send a frame with the next one that is posted."""
        self._outgoing += frame

    def post(self, frame: bytes) -> None:
        """Send a frame, as much of it as goes, after those that are still on their way.

        Raises:
            WorkerLostError: The worker has ended.
        """
        if self._is_ended:
            raise WorkerLostError
        self._outgoing += frame
        self._flush()

    def answer_at_once(self, seat: Seat) -> Frame | None:
        """Wait for a moment without the event loop: most steps take less than going round through it does.

        Wait awake for a step that comes after a brief one (the calls of a loop are alike), if the worker is awake too:
        one that must be waked up may have to come to this core.
        """
        if self._has_listener or self._outgoing or (seat.step_seconds or 0) >= QUICK_SECONDS:
            return None
        began = time.monotonic()
        is_brief = seat.step_seconds is not None and seat.step_seconds < BRIEF_SECONDS
        is_awake = began - self._heard_at < POLLED_SECONDS
        if is_brief and is_awake and self._polling.poll(partial(self._receive_for, seat)) is not None:
            return seat.answer
        self._receive()  # the system may have run the worker on this core, and then the answer is there
        left = max(began + QUICK_SECONDS - time.monotonic(), 0)
        if seat.answer is None and not self._is_ended and self._poll.poll(left * 1_000):
            self._receive()
        return seat.answer

    def look(self) -> None:
        """Receive what has come, unless somebody is listening anyway."""
        if not self._has_listener:
            self._receive()

    async def exchange(self, seat: Seat) -> Frame:
        """Send what is left while it waits for the answer: a worker that is not listened to does not read either.

        Raises:
            WorkerLostError: The worker has ended.
        """
        if not self._outgoing:
            return await self.hear(seat)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._send)
            with contextlib.suppress(WorkerLostError):
                await self.hear(seat)
            tasks.cancel_scope.cancel()  # what is still left is of others, who send it themselves
        if seat.answer is None:
            raise WorkerLostError
        return seat.answer

    async def hear(self, seat: Seat) -> Frame:
        """Wait for a seat's answer. Whoever leaves sees that another listens: it may itself have been the one to.

        Raises:
            WorkerLostError: The worker has ended.
        """
        try:
            while seat.answer is None:
                if self._is_ended:
                    raise WorkerLostError
                if self._has_listener:
                    news = self._waiting[seat.number] = anyio.Event()
                    await news.wait()
                else:
                    await self._listen(seat)
            return seat.answer
        finally:
            self._waiting.pop(seat.number, None)
            if self._waiting and not self._has_listener:
                self._wake(next(iter(self._waiting)))

    async def _listen(self, seat: Seat) -> None:
        """Receive for all whose step is open, until `seat` has its answer."""
        self._has_listener = True
        try:
            while seat.answer is None and not self._is_ended:
                await anyio.wait_readable(self._socket)
                self._receive()
        finally:
            self._has_listener = False
            self._close_socket()

    def _receive_for(self, seat: Seat) -> Frame | None:
        self._receive()
        return seat.answer

    def _receive(self) -> None:
        try:
            data = self._socket.recv(RECEIVE_BYTES)
            self._heard_at = time.monotonic()
            if not data:
                self._on_break()
            for frame in self._frames.feed(data):
                seat = self.open_steps[frame.run]
                seat.take(frame)
                if seat.answer is not None and seat.number in self._waiting:
                    self._wake(seat.number)
        except BlockingIOError:
            return
        except (OSError, ProtocolError):
            self._on_break()

    def _wake(self, number: int) -> None:
        self._waiting.pop(number).set()

    def _allowed(self, kind: Kind, run: int) -> int:
        seat = self.open_steps.get(run)
        if seat is None or seat.answer is not None:
            raise ProtocolError("the worker spoke for a run that is not computing")
        return seat.allowed(kind)

    async def _send(self) -> None:
        """Send what is left; cancelled, it goes with the next frame."""
        try:
            async with self._sending:
                while self._outgoing and not self._is_ended:
                    await anyio.wait_writable(self._socket)
                    self._flush()
        finally:
            self._close_socket()

    def _flush(self) -> None:
        try:
            while self._outgoing and not self._is_ended:
                del self._outgoing[: self._socket.send(self._outgoing)]
        except BlockingIOError:
            return
        except OSError:
            self._on_break()

    def _close_socket(self) -> None:
        """Close it once the line has ended and nobody waits: who does wakes by the end of the stream alone."""
        if self._is_ended and not self._has_listener and not self._sending.locked():
            self._socket.close()
