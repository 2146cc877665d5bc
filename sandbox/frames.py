"""The frames between a worker process and the process that started it: their layout, and how to read hostile ones.

A frame is a header (payload length, kind, run) and a payload. The reader says how long each frame may be, and refuses a
header that names more before it keeps anything for it. Payloads from a worker are texts of the guest, which
guest_messages.py decodes with its own budgets for depth and number of values.
"""

from __future__ import annotations

import enum
import math
import struct
from typing import TYPE_CHECKING, NamedTuple

from sandbox.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_HEADER = struct.Struct(">IBI")  # payload bytes, kind, run
_ENTRY = struct.Struct(">dQB")  # seconds, nanoseconds of the run's clock, export
_READING = struct.Struct(">dQ")  # processor seconds, nanoseconds of the run's clock

READING_BYTES = _READING.size

RECEIVE_BYTES = 256 * 1024
"""How much of the stream is received at once."""

COMPUTING = struct.Struct("=Q")
"""The memory a worker shares with its starter: the number of the run it computes at this moment, 0 for none."""

EXPORTS = ("references", "start", "resume")
"""What can be entered, by its number in an `ENTER` frame."""


class Kind(enum.IntEnum):
    """What a frame says. Workers send those from 16 on."""

    OPEN = 1
    ENTER = 2
    INTERRUPT = 3
    CLOSE = 4
    HELLO = 16
    STDOUT = 17
    STDERR = 18
    ANSWER = 19
    STOPPED = 20
    RAISED = 21


_KINDS = {kind.value: kind for kind in Kind}


class Frame(NamedTuple):
    """One message; `run` is 0 where it concerns none."""

    kind: Kind
    run: int
    payload: bytes


class Entering(NamedTuple):
    """The payload of `ENTER`: which export to call with what, and until when."""

    export: str
    argument: str
    seconds: float
    now_ns: int


class Reading(NamedTuple):
    """The payload of `ANSWER`, `STOPPED` and `RAISED`: what the run has used, and a text."""

    cpu_seconds: float
    elapsed_ns: int
    text: str


class FrameReader:
    """Cuts a stream of bytes into frames, and keeps no more of it than the frame being received."""

    def __init__(self, allowed: Callable[[Kind, int], int]) -> None:
        """Take a function from (kind, run) to the longest payload; it raises `ProtocolError` for what may not come."""
        self._allowed = allowed
        self._kept = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that `data` completes.

        Raises:
            ProtocolError: A header is not allowed; the rest of the stream is of no use.
        """
        kept = self._kept
        if kept:
            kept += data
        stream = kept or data  # a chunk of whole frames is cut where it is
        at = 0
        while len(stream) - at >= _HEADER.size:
            size, number, run = _HEADER.unpack_from(stream, at)
            kind = _KINDS.get(number)
            if kind is None:
                raise ProtocolError(f"there is no frame of kind {number}")
            if size > self._allowed(kind, run):
                raise ProtocolError(f"a frame of {size} bytes is too long")
            begins = at + _HEADER.size
            if len(stream) < begins + size:
                break
            at = begins + size
            yield Frame(kind, run, bytes(stream[begins:at]))
        if kept:
            del kept[:at]
        else:
            kept += data[at:]


def encode_frame(kind: Kind, run: int, payload: bytes = b"") -> bytes:
    """Write a frame."""
    return _HEADER.pack(len(payload), kind, run) + payload


def encode_entering(run: int, entering: Entering) -> bytes:
    """Write an `ENTER` frame."""
    export = EXPORTS.index(entering.export)
    payload = _ENTRY.pack(entering.seconds, entering.now_ns, export) + entering.argument.encode()
    return encode_frame(Kind.ENTER, run, payload)


def decode_entering(payload: bytes) -> Entering:
    """Read the payload of an `ENTER` frame, which comes from a host that is trusted."""
    seconds, now_ns, export = _ENTRY.unpack_from(payload)
    return Entering(EXPORTS[export], payload[_ENTRY.size :].decode(), seconds, now_ns)


def encode_reading(kind: Kind, run: int, reading: Reading) -> bytes:
    """Write the frame that ends a step."""
    payload = _READING.pack(reading.cpu_seconds, reading.elapsed_ns) + reading.text.encode("utf-8", "replace")
    return encode_frame(kind, run, payload)


def decode_reading(payload: bytes) -> Reading:
    """Read the payload of a frame that ends a step.

    Raises:
        ProtocolError: It is not one.
    """
    if len(payload) < _READING.size:
        raise ProtocolError("a frame is too short")
    cpu_seconds, elapsed_ns = _READING.unpack_from(payload)
    if not (math.isfinite(cpu_seconds) and cpu_seconds >= 0):
        raise ProtocolError("a frame's processor time is not a number of seconds")
    return Reading(cpu_seconds, elapsed_ns, decode_text(payload[_READING.size :]))


def decode_text(payload: bytes) -> str:
    """Read a payload that is text alone.

    Raises:
        ProtocolError: It is not UTF-8.
    """
    try:
        return payload.decode()
    except UnicodeDecodeError:
        raise ProtocolError("a frame's text is not UTF-8") from None
