"""One worker process as its starter sees it: spawned with nothing, entered for its seats, killed when late.

Above: workers.py, and process_isolate.py for the steps. Below: spawn.py, and worker_line.py, which listens to it with
suspicion.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from typing import TYPE_CHECKING

import anyio

from sandbox.confinement import Confinement
from sandbox.errors import WorkerError
from sandbox.frames import COMPUTING, Frame, Kind, encode_frame
from sandbox.seat import Seat
from sandbox.spawn import shared_page, spawn_worker
from sandbox.system_limits import tight_limits
from sandbox.terms import drop_output
from sandbox.worker_line import WorkerLine, WorkerLostError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.compiled import CompiledFile
    from sandbox.pool import Pool
    from sandbox.terms import Terms

GRACE_SECONDS = 0.75
"""How long a step may outlive its deadline before its worker is killed."""

START_SECONDS = 30.0
"""How long a worker may take to map the image and confine itself; usually a tenth of a second."""

_STATM_BYTES = 256
IN_PROCESS = 'use Sandbox(isolation="thread") where the system allows no child processes'


def what_to_do() -> str:
    """Return the advice to somebody for whom no worker can be started."""
    tight = tight_limits()
    return f"raise the limits of this process, which are {tight}" if tight else IN_PROCESS


class WorkerProcess:
    """A process, the seats in it and the line to it."""

    def __init__(self, compiled: CompiledFile, pool: Pool | None = None) -> None:
        """Start the process; `ready` waits until it can take runs.

        Raises:
            WorkerError: The process cannot be started.
        """
        self.confinement: Confinement | None = None
        self.is_lost = False
        self.is_retired = False
        self.culprit: Seat | None = None
        self.is_late = False
        self.started_runs = 0
        self._last_seat = 0
        self.seats: dict[int, Seat] = {}
        self._starting = anyio.Lock()
        self._hello = Seat(0, drop_output)
        self._page = shared_page()
        ours, theirs = socket.socketpair()
        try:
            self._process = spawn_worker(theirs.fileno(), self._page, compiled, pool)
        except OSError as error:
            ours.close()
            os.close(self._page)
            raise WorkerError(f"no worker process can be started ({error.strerror}): {what_to_do()}") from None
        finally:
            theirs.close()
        self._memory = _open_statm(self.pid)
        self._line = WorkerLine(ours, self.kill)
        self._line.open_steps[0] = self._hello

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
        """Wait until the worker has confined itself.

        Raises:
            WorkerError: It has ended instead, or takes too long.
        """
        async with self._starting:
            if self.confinement is not None:
                return
            with anyio.move_on_after(START_SECONDS), contextlib.suppress(WorkerLostError):
                await self._line.hear(self._hello)
            if not self.is_ready():
                self.kill()
                raise WorkerError(f"a worker process ended while it started: {what_to_do()}")

    def is_ready(self) -> bool:
        """Tell whether the worker can take runs."""
        if self.confinement is None and not self.is_lost:
            if self._hello.answer is None:
                self._line.look()
            if self._hello.answer is not None:
                self._welcome(self._hello.answer.payload)
        return self.confinement is not None and not self.is_lost

    def open(self, on_output: Callable[[int, str], None]) -> Seat:
        """Give an instance a place."""
        self._last_seat += 1
        seat = Seat(self._last_seat, on_output)
        self.seats[seat.number] = seat
        return seat

    def take_on(self, seat: Seat, terms: Terms) -> None:
        """Make an instance that of a run; the worker learns it with the first step."""
        self.started_runs += 1
        seat.take_on(terms.limits)
        self._line.queue(encode_frame(Kind.OPEN, seat.number, terms.encode()))

    def close_seat(self, seat: Seat) -> None:
        """Free a run's instance. Its step must have ended."""
        if self.seats.pop(seat.number, None) is not None and not self.is_lost:
            self._line.post(encode_frame(Kind.CLOSE, seat.number))

    async def step(self, seat: Seat, frame: bytes, seconds: float) -> Frame:
        """Send the frame that begins a step and return the one that ends it. Cancelled, it ends the guest first.

        Raises:
            WorkerLostError: The worker has ended, perhaps because it was killed for being late.
        """
        seat.answer = None
        self._line.open_steps[seat.number] = seat
        try:
            self._line.post(frame)
            answer = self._line.answer_at_once(seat)
            if answer is not None:
                return answer
            with anyio.move_on_after(seconds + GRACE_SECONDS):
                return await self._line.exchange(seat)
        except anyio.get_cancelled_exc_class():
            await self._interrupt(seat)
            raise
        finally:
            self._line.open_steps.pop(seat.number, None)
        self.kill(is_late=True)
        raise WorkerLostError

    def kill(self, *, is_late: bool = False) -> None:
        """End the process at once and note which run it was computing, to which all others owe their delay."""
        if self.is_lost:
            return
        self.is_lost = True
        self.is_late = is_late
        self._process.kill()
        self._process.wait()
        self.culprit = self._line.open_steps.get(COMPUTING.unpack(os.pread(self._page, COMPUTING.size, 0))[0])
        os.close(self._page)
        self._page = -1
        if self._memory is not None:
            os.close(self._memory)
            self._memory = None
        self._line.end()

    async def _interrupt(self, seat: Seat) -> None:
        """End the guest of a cancelled step, with its worker if it must be."""
        with anyio.CancelScope(shield=True):
            if not self.is_lost and seat.answer is None:
                with anyio.move_on_after(GRACE_SECONDS), contextlib.suppress(WorkerLostError):
                    self._line.post(encode_frame(Kind.INTERRUPT, seat.number))
                    await self._line.exchange(seat)
            if seat.answer is None:
                self.kill(is_late=True)

    def _welcome(self, payload: bytes) -> None:
        try:
            self.confinement = Confinement(**json.loads(payload))
        except (TypeError, ValueError):
            self.kill()
        self._line.open_steps.pop(0, None)


def _open_statm(pid: int) -> int | None:
    """Open what the system says of a process's memory; opening it for each run costs more than reading it."""
    try:
        return os.open(f"/proc/{pid}/statm", os.O_RDONLY)
    except OSError:
        return None
