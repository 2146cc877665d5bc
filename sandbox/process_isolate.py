"""A guest in a worker process, which survives the loss of its worker.

Every message to the guest is kept. When the worker ends through the fault of another run, the messages are sent again
to a new instance in another worker. The guest is a function of its messages, so it arrives where it was; what it prints
and asks for on the way is compared with the first time and dropped.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, NamedTuple

import anyio

from sandbox.engine import MAX_WASM_STACK
from sandbox.errors import ProtocolError
from sandbox.frames import Entering, Kind, Reading, decode_reading, encode_entering
from sandbox.guest_messages import MAX_VALUES, decode_references, protocol_failure
from sandbox.isolate import Isolate
from sandbox.outcome import Raised, Stopped
from sandbox.pace import PACE
from sandbox.terms import Terms, drop_output
from sandbox.worker_line import WorkerLostError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.frames import Frame
    from sandbox.seat import Seat
    from sandbox.worker_process import WorkerProcess
    from sandbox.workers import Workers

MAX_REPLAYS = 5
"""How many workers a run may lose through no fault of its own."""

_SHORT_CHARACTERS = 256
"""Answers of a call or two are kept as they are: a digest takes 10 us where the caches have gone cold."""

MAX_RECORD = 32 * 1024 * 1024
"""Characters of messages that are kept to be sent again; a run that was sent more ends with its worker."""


class _Exchange(NamedTuple):
    """One message to the guest, and what its answer is known by."""

    export: str
    argument: str
    now_ns: int
    answer: str | bytes


class ProcessIsolate(Isolate):
    """A guest in a worker process."""

    elapsed_ns = 0
    cpu_seconds = 0.0
    output_bytes = 0

    def __init__(self, workers: Workers) -> None:
        """Take the workers; the first step finds a place in one."""
        super().__init__()
        self._workers = workers
        self._on_output: Callable[[int, str], None] = drop_output
        self._place: tuple[WorkerProcess, Seat] | None = None
        self._record: list[Terms | _Exchange] = []
        self._record_size = 0
        self._replays = 0
        self._printed = 0
        self._to_skip = 0

    def take_on(self, terms: Terms, on_output: Callable[[int, str], None]) -> None:
        """Make it the guest of a run; arguments as in `Instance.take_on`."""
        super().take_on(terms, on_output)
        self.elapsed_ns = 0
        self.cpu_seconds = 0.0
        self.output_bytes = 0
        self._on_output = on_output
        self._record.append(terms)
        if self._place is not None and not self._place[0].is_lost:
            worker, seat = self._place
            worker.take_on(seat, terms)

    def close(self) -> None:
        """Free the instance."""
        if self._place is not None:
            self._workers.release(*self._place)
            self._place = None

    async def _enter(self, export: str, argument: str, now_ns: int, seconds: float) -> str | Raised | Stopped:
        """Take a step; go on in another worker if this one is lost through no fault of the run."""
        ends = time.monotonic() + seconds
        while True:
            try:
                if self._place is None or self._place[0].is_lost:
                    ended = await self._take_place(ends)
                    if ended is not None:
                        return ended
                answer = await self._converse(export, argument, now_ns, ends)
            except WorkerLostError:
                ended = self._blamed(ends)
                if ended is not None:
                    return ended
                continue
            if isinstance(answer, str):
                self._remember(export, argument, now_ns, answer)
            return answer

    async def _take_place(self, ends: float) -> Raised | Stopped | None:
        """Bring a new instance to where the run is; return how the run ends if that cannot be done."""
        if self._record_size > MAX_RECORD:
            return _LOST
        self.close()
        self._to_skip = self._printed
        worker, seat = self._place = await self._workers.open(self._print)
        for one in self._record:
            if isinstance(one, Terms):
                worker.take_on(seat, one)
                continue
            answer = await self._converse(one.export, one.argument, one.now_ns, ends)
            if isinstance(answer, Stopped):
                return answer
            if isinstance(answer, Raised) or _known_by(answer) != one.answer:
                return _LOST
        return None

    async def _converse(self, export: str, argument: str, now_ns: int, ends: float) -> str | Raised | Stopped:
        if PACE.is_due:  # also between the steps that are taken again
            await PACE.give_way()
        seconds = ends - time.monotonic()
        if seconds <= 0 or self._place is None:
            return Stopped("wall_seconds", self._terms.limits.wall_seconds)
        worker, seat = self._place
        frame = encode_entering(seat.number, Entering(export, argument, seconds, now_ns))
        try:
            answered = await worker.step(seat, frame, seconds)
        except anyio.get_cancelled_exc_class():
            with contextlib.suppress(ProtocolError):
                if seat.answer is not None:
                    self._use(seat.answer, seat)
            raise
        try:
            return self._read(answered.kind, self._use(answered, seat))
        except ProtocolError as error:
            worker.kill()
            return protocol_failure(str(error))

    def _use(self, answered: Frame, seat: Seat) -> Reading:
        """Note what the run has used so far, and in this step."""
        reading = decode_reading(answered.payload)
        seat.step_seconds = reading.cpu_seconds - self.cpu_seconds
        self.elapsed_ns, self.cpu_seconds = reading.elapsed_ns, reading.cpu_seconds
        return reading

    def _read(self, kind: Kind, reading: Reading) -> str | Raised | Stopped:
        if kind is Kind.STOPPED:
            return self._stopped(reading.text)
        if kind is Kind.RAISED:
            raised = decode_references(reading.text, self._terms.limits)
            if isinstance(raised, Raised):
                return raised
            raise ProtocolError("the worker sent something that is not an exception")
        return reading.text

    def _stopped(self, limit: str) -> Stopped:
        """Return the limit with its amount, which is the host's own and not the worker's word."""
        amounts = {**asdict(self._terms.limits), "stack": MAX_WASM_STACK, "values": MAX_VALUES}
        if limit not in amounts:
            raise ProtocolError("the worker sent a limit that there is not")
        return Stopped(limit, amounts[limit])

    def _blamed(self, ends: float) -> Stopped | None:
        """Return how the run ends if it caused the loss of its worker, or has lost too many."""
        self._replays += 1
        if self._place is not None:
            worker, seat = self._place
            if worker.culprit is seat:
                is_over = worker.is_late and time.monotonic() >= ends
                return Stopped("wall_seconds", self._terms.limits.wall_seconds) if is_over else _LOST
        return _LOST if self._replays > MAX_REPLAYS else None

    def _remember(self, export: str, argument: str, now_ns: int, answer: str) -> None:
        known_by = _known_by(answer)
        self._record_size += len(argument) + len(known_by)
        if self._record_size > MAX_RECORD:
            self._record.clear()
            return
        self._record.append(_Exchange(export, argument, now_ns, known_by))

    def _print(self, output: int, text: str) -> None:
        """Pass on what was not passed on before the worker was lost."""
        skipped, self._to_skip = min(self._to_skip, len(text)), max(self._to_skip - len(text), 0)
        text = text[skipped:]
        if text:
            self._printed += len(text)
            self.output_bytes += len(text.encode())
            self._on_output(output, text)


def _known_by(answer: str) -> str | bytes:
    """Return an answer, or the digest of a long one."""
    if len(answer) <= _SHORT_CHARACTERS:
        return answer
    return hashlib.sha256(answer.encode("utf-8", "surrogatepass")).digest()


_LOST = Stopped("worker", 1)
