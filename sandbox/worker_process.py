"""One worker process as its starter sees it: spawned with nothing, listened to with suspicion, killed when late.

Whoever waits for a step listens for all who wait: no task and no thread belongs to a worker. Only a run whose step is
open may be spoken for, in frames no longer than its limits allow; anything else ends the worker.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import time
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel

from sandbox.confinement import Confinement
from sandbox.errors import ProtocolError, WorkerError
from sandbox.frames import COMPUTING, Frame, FrameReader, Kind, encode_frame
from sandbox.seat import Seat
from sandbox.spawn import shared_page, spawn_worker
from sandbox.system_limits import tight_limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.compiled import CompiledFile
    from sandbox.pool import Pool
    from sandbox.terms import Terms

GRACE_SECONDS = 0.75
"""How long a step may outlive its deadline before its worker is killed."""

QUICK_SECONDS = 0.001
"""How long the event loop may stand still for a step whose run took less the last time."""

START_SECONDS = 30.0
"""How long a worker may take to map the image and confine itself; usually a third of a second."""

RECEIVE_BYTES = 256 * 1024
_STATM_BYTES = 256
IN_PROCESS = 'use Sandbox(isolation="thread") where the system allows no child processes'


def what_to_do() -> str:
    """Returns the advice to somebody for whom no worker can be started."""
    tight = tight_limits()
    return f"raise the limits of this process, which are {tight}" if tight else IN_PROCESS


class WorkerLostError(Exception):
    """The worker has ended; its runs must be replayed elsewhere. Never leaves the package."""


class WorkerProcess:
    """A process and our end of the socket to it."""

    def __init__(self, compiled: CompiledFile, pool: Pool | None = None) -> None:
        """Starts the process; `ready` waits until it can take runs.

        Raises:
            WorkerError: The process can't be started.
        """
        self.confinement: Confinement | None = None
        self.is_lost = False
        self.is_retired = False
        self.culprit: Seat | None = None
        self.is_late = False
        self.started_runs = 0
        self._last_seat = 0
        self.seats: dict[int, Seat] = {}
        self._open_steps: dict[int, Seat] = {}
        self._waiting: dict[int, Seat] = {}
        self._frames = FrameReader(self._allowed)
        self._outgoing = bytearray()
        self._sending = anyio.Lock()
        self._starting = anyio.Lock()
        self._has_listener = False
        self._hello = Seat(0, lambda _output, _text: None)
        self._page = shared_page()
        self._socket, theirs = socket.socketpair()
        try:
            self._process = spawn_worker(theirs.fileno(), self._page, compiled, pool)
        except OSError as error:
            self._socket.close()
            os.close(self._page)
            raise WorkerError(f"no worker process can be started ({error.strerror}): {what_to_do()}") from None
        finally:
            theirs.close()
        self._memory = _open_statm(self.pid)
        self._socket.setblocking(False)  # noqa: FBT003  # the standard library's signature
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        self._open_steps[0] = self._hello

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def private_bytes(self) -> int:
        """Memory in RAM that is no file's; 0 where the system does not say, and once the process has ended.

        Each instance maps the image anew, and its pages are counted each time though they are there once.
        """
        if self._memory is None:
            return 0
        try:
            resident, shared = map(int, os.pread(self._memory, _STATM_BYTES, 0).split()[1:3])
        except (OSError, ValueError):
            return 0
        return (resident - shared) * os.sysconf("SC_PAGE_SIZE")

    async def ready(self) -> None:
        """Waits until the worker has confined itself.

        Raises:
            WorkerError: It has ended instead, or takes too long.
        """
        async with self._starting:
            if self.confinement is not None:
                return
            with anyio.move_on_after(START_SECONDS), contextlib.suppress(WorkerLostError):
                await self._hear(self._hello)
            if not self.is_ready():
                self.kill()
                raise WorkerError(f"a worker process ended while it started: {what_to_do()}")

    def is_ready(self) -> bool:
        """Whether the worker can take runs."""
        if self.confinement is None and not self.is_lost:
            if self._hello.answer is None and not self._has_listener:
                self._receive()
            if self._hello.answer is not None:
                self._welcome(self._hello.answer.payload)
        return self.confinement is not None and not self.is_lost

    def open(self, on_output: Callable[[int, str], None]) -> Seat:
        """Gives an instance a place."""
        self._last_seat += 1
        seat = Seat(self._last_seat, on_output)
        self.seats[seat.number] = seat
        return seat

    def take_on(self, seat: Seat, terms: Terms) -> None:
        """Makes an instance that of a run; the worker learns it with the first step."""
        self.started_runs += 1
        seat.take_on(terms.limits)
        self._outgoing += encode_frame(Kind.OPEN, seat.number, terms.encode())

    def close_seat(self, seat: Seat) -> None:
        """Frees a run's instance. Its step must have ended."""
        if self.seats.pop(seat.number, None) is not None and not self.is_lost:
            self._outgoing += encode_frame(Kind.CLOSE, seat.number)
            self._flush()

    async def step(self, seat: Seat, frame: bytes, seconds: float) -> Frame:
        """Sends the frame that begins a step and returns the one that ends it. Cancelled, it ends the guest first.

        Raises:
            WorkerLostError: The worker has ended, perhaps because it was killed for being late.
        """
        seat.answer = None
        self._open_steps[seat.number] = seat
        began = time.monotonic()
        try:
            self._post(frame)
            if self._answers_at_once(seat):
                await anyio.lowlevel.checkpoint()
            with anyio.move_on_after(seconds + GRACE_SECONDS):
                return await self._exchange(seat)
        except anyio.get_cancelled_exc_class():
            await self._interrupt(seat)
            raise
        finally:
            self._open_steps.pop(seat.number, None)
            seat.is_quick = time.monotonic() - began < QUICK_SECONDS
        self.kill(is_late=True)
        raise WorkerLostError

    def kill(self, *, is_late: bool = False) -> None:
        """Ends the process at once and notes which run it was computing, to which all others owe their delay."""
        if self.is_lost:
            return
        self.is_lost = True
        self.is_late = is_late
        self._process.kill()
        self._process.wait()
        self.culprit = self._open_steps.get(COMPUTING.unpack(os.pread(self._page, COMPUTING.size, 0))[0])
        os.close(self._page)
        self._page = -1
        if self._memory is not None:
            os.close(self._memory)
            self._memory = None
        self._close_socket()
        for seat in list(self._waiting.values()):
            self._wake(seat)

    async def _interrupt(self, seat: Seat) -> None:
        """Ends the guest of a cancelled step, with its worker if it must be."""
        with anyio.CancelScope(shield=True):
            if not self.is_lost and seat.answer is None:
                with anyio.move_on_after(GRACE_SECONDS), contextlib.suppress(WorkerLostError):
                    self._post(encode_frame(Kind.INTERRUPT, seat.number))
                    await self._exchange(seat)
            if seat.answer is None:
                self.kill(is_late=True)

    def _answers_at_once(self, seat: Seat) -> bool:
        """Waits for a moment without the event loop: most steps take less than going round through it does."""
        if self._has_listener or self._outgoing or not seat.is_quick:
            return False
        if self._poll.poll(QUICK_SECONDS * 1_000):
            self._receive()
        return seat.answer is not None

    async def _exchange(self, seat: Seat) -> Frame:
        """Sends what is left while it waits for the answer: a worker that is not listened to does not read either."""
        if not self._outgoing:
            return await self._hear(seat)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._send)
            with contextlib.suppress(WorkerLostError):
                await self._hear(seat)
            tasks.cancel_scope.cancel()  # what is still left is of others, who send it themselves
        if seat.answer is None:
            raise WorkerLostError
        return seat.answer

    async def _hear(self, seat: Seat) -> Frame:
        """Waits for a seat's answer. Whoever leaves sees that another listens: it may itself have been the one to."""
        try:
            while seat.answer is None:
                if self.is_lost:
                    raise WorkerLostError
                if self._has_listener:
                    seat.news = anyio.Event()
                    self._waiting[seat.number] = seat
                    await seat.news.wait()
                else:
                    await self._listen(seat)
            return seat.answer
        finally:
            self._waiting.pop(seat.number, None)
            if self._waiting and not self._has_listener:
                self._wake(next(iter(self._waiting.values())))

    async def _listen(self, seat: Seat) -> None:
        """Receives for all whose step is open, until `seat` has its answer."""
        self._has_listener = True
        try:
            while seat.answer is None and not self.is_lost:
                await anyio.wait_readable(self._socket)
                self._receive()
        finally:
            self._has_listener = False
            self._close_socket()

    def _receive(self) -> None:
        try:
            data = self._socket.recv(RECEIVE_BYTES)
            if not data:
                self.kill()
            for frame in self._frames.feed(data):
                seat = self._open_steps[frame.run]
                seat.take(frame)
                if seat.answer is not None:
                    self._wake(seat)
        except BlockingIOError:
            return
        except (OSError, ProtocolError):
            self.kill()

    def _wake(self, seat: Seat) -> None:
        self._waiting.pop(seat.number, None)
        seat.news.set()

    def _allowed(self, kind: Kind, run: int) -> int:
        seat = self._open_steps.get(run)
        if seat is None or seat.answer is not None:
            raise ProtocolError("the worker spoke for a run that is not computing")
        return seat.allowed(kind)

    def _post(self, frame: bytes) -> None:
        """Sends a frame, as much of it as goes, after those that are still on their way.

        Raises:
            WorkerLostError: The worker has ended.
        """
        if self.is_lost:
            raise WorkerLostError
        self._outgoing += frame
        self._flush()

    async def _send(self) -> None:
        """Sends what is left; cancelled, it goes with the next frame."""
        try:
            async with self._sending:
                while self._outgoing and not self.is_lost:
                    await anyio.wait_writable(self._socket)
                    self._flush()
        finally:
            self._close_socket()

    def _close_socket(self) -> None:
        """Closes it once the worker is lost and nobody waits for it: who does wakes by the end of the stream alone."""
        if self.is_lost and not self._has_listener and not self._sending.locked():
            self._socket.close()

    def _flush(self) -> None:
        try:
            while self._outgoing and not self.is_lost:
                del self._outgoing[: self._socket.send(self._outgoing)]
        except BlockingIOError:
            return
        except OSError:
            self.kill()

    def _welcome(self, payload: bytes) -> None:
        try:
            self.confinement = Confinement(**json.loads(payload))
        except (TypeError, ValueError):
            self.kill()
        self._open_steps.pop(0, None)


def _open_statm(pid: int) -> int | None:
    """Opens what the system says of a process's memory; opening it for each run costs more than reading it."""
    try:
        return os.open(f"/proc/{pid}/statm", os.O_RDONLY)
    except OSError:
        return None
