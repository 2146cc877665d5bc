"""The worker process: instances of the guest behind a socket, on one thread that gives each a tick in turn.

Started by `worker_process` with an empty environment and no descriptors but its end of a socket pair, a page of shared
memory and the compiled image, if that has no name. It maps the image, confines itself and then answers frames. It
decides nothing: what its instances say is passed on, and is as hostile as they are.
"""

from __future__ import annotations

import collections
import json
import math
import mmap
import os
import socket
import sys
from dataclasses import asdict
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from sandbox.busy_polling import BusyPolling
from sandbox.compiled import CompiledFile, map_file
from sandbox.confinement import confine, deny_files
from sandbox.engine import engine
from sandbox.frames import (
    COMPUTING,
    RECEIVE_BYTES,
    Entering,
    Frame,
    FrameReader,
    Kind,
    Reading,
    decode_entering,
    encode_frame,
    encode_reading,
)
from sandbox.host_functions import make_linker
from sandbox.image import Image
from sandbox.instance import Instance
from sandbox.outcome import Raised, Stopped
from sandbox.pool import Pool, Spares
from sandbox.terms import Terms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.entry import Entry


def main(socket_number: int, page_number: int, compiled: str, pool: str) -> None:
    """Become a worker; return when the host closes its end."""
    connection = socket.socket(fileno=socket_number)
    page = mmap.mmap(page_number, COMPUTING.size)
    os.close(page_number)
    file = CompiledFile.decode(compiled)
    # Landlock holds for a thread and those it starts, so it comes before the first instance starts the ticker.
    landlock = deny_files(readable=file.path if file.descriptor is None else None)
    component = map_file(file)
    if component is None:
        sys.exit(f"{file.path} is not the file that was proven")
    if file.descriptor is not None:
        os.close(file.descriptor)
    image = Image("", component, make_linker(engine(), component), file)
    spares = _spares(image, pool)
    confinement = confine(landlock)
    connection.sendall(encode_frame(Kind.HELLO, 0, json.dumps(asdict(confinement)).encode()))
    _Worker(connection, page, spares).serve()


def _spares(image: Image, pool: str) -> Spares:
    """Make a first instance, so that what wasmtime and Python do a first time is done before the doors close."""
    settings = json.loads(pool)
    spares = Spares(image, Pool(**settings) if settings else None, most_unfreed_seconds=math.inf)
    spares.put(Instance(image))
    return spares


class _Run:
    """One instance and the run it has taken on."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.printed: list[tuple[int, str]] = []
        self.entry: Entry | None = None

    def take_on(self, payload: bytes) -> None:
        self.instance.take_on(Terms.decode(payload), lambda output, text: self.printed.append((output, text)))

    def enter(self, entering: Entering) -> None:
        self.instance.clock.advance_to(entering.now_ns)
        self.entry = self.instance.enter(entering.export, entering.argument, entering.seconds)

    def advance(self) -> bool:
        """Let the guest compute for a tick; return whether it has returned."""
        return self.entry is None or self.entry.advance()

    def frames(self, number: int, *, is_over: bool) -> bytes:
        """Return what was printed in this tick, and how the step ended if it has."""
        parts: list[bytes] = []
        if self.printed:
            parts += [_printed(number, output, text) for output, text in _joined(self.printed)]
            self.printed.clear()
        if is_over and self.entry is not None:
            parts.append(self._end(number, self.entry.answer))
            self.entry = None
        return b"".join(parts)

    def _end(self, number: int, answer: str | Raised | Stopped) -> bytes:
        match answer:
            case str():
                # One character too many is enough for the host to see which limit was exceeded.
                kind, text = Kind.ANSWER, answer[: self.instance.step_bytes + 1]
            case Stopped(limit):
                kind, text = Kind.STOPPED, limit
            case _:
                kind, text = Kind.RAISED, json.dumps({"raised": asdict(answer)})
        return encode_reading(kind, number, Reading(self.instance.cpu_seconds, self.instance.clock.elapsed_ns, text))


def _joined(printed: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Make one of pieces for one output that follow each other: a frame costs the host more than its text."""
    for output, pieces in groupby(printed, itemgetter(0)):
        texts = [text for _, text in pieces]
        # Joined, a return and a newline of two pieces would be one end of a line.
        whole = texts if any(text.endswith("\r") for text in texts) else ["".join(texts)]
        yield from ((output, text) for text in whole)


def _printed(number: int, output: int, text: str) -> bytes:
    kind = Kind.STDERR if output == 2 else Kind.STDOUT  # noqa: PLR2004  # stderr
    return encode_frame(kind, number, text.encode()) if text else b""


class _Worker:
    """The loop: frames in, one tick for the run whose turn it is, frames out."""

    def __init__(self, connection: socket.socket, page: mmap.mmap, spares: Spares) -> None:
        self._connection = connection
        self._polling = BusyPolling()
        self._page = page
        self._spares = spares
        self._runs: dict[int, _Run] = {}
        self._computing: collections.deque[int] = collections.deque()
        self._frames = FrameReader(lambda _kind, _run: sys.maxsize)  # the host is trusted

    def serve(self) -> None:
        while self._receive():
            if self._computing:
                self._take_turn(self._computing.popleft())

    def _receive(self) -> bool:
        """Handle what has come; wait for it only if there is nothing to compute. False once the host is gone."""
        data = self._at_once() if self._computing else self._polling.poll(self._at_once)
        if data is None and self._computing:
            return True
        if data is None:
            data = self._connection.recv(RECEIVE_BYTES)
        for frame in self._frames.feed(data):
            self._handle(frame)
        return bool(data)

    def _at_once(self) -> bytes | None:
        """Return what has come, no bytes if the host is gone; None if nothing has."""
        try:
            return self._connection.recv(RECEIVE_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None

    def _take_turn(self, number: int) -> None:
        run = self._runs[number]
        self._mark(number)
        is_over = run.advance()
        frames = run.frames(number, is_over=is_over)
        if is_over:
            self._mark(0)
        else:
            self._computing.append(number)  # and it stays marked until another takes its turn
        if frames:
            self._connection.sendall(frames)

    def _handle(self, frame: Frame) -> None:
        match frame.kind:
            case Kind.ENTER:
                self._runs[frame.run].enter(decode_entering(frame.payload))
                self._computing.append(frame.run)
            case Kind.OPEN:
                self._mark(frame.run)
                if frame.run not in self._runs:
                    self._runs[frame.run] = _Run(self._spares.take())
                self._runs[frame.run].take_on(frame.payload)
                self._mark(0)
            case Kind.INTERRUPT:
                self._runs[frame.run].instance.is_interrupted = True
            case Kind.CLOSE:
                self._spares.free(self._runs.pop(frame.run).instance)
            case _:
                raise ValueError(frame.kind)

    def _mark(self, number: int) -> None:
        self._page[:] = COMPUTING.pack(number)
