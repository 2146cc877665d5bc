"""Feeds what reads a worker's frames with hostile ones: `python -m benchmarks.sandbox --frames 1000000`.

Frames are made from valid ones by changing their structure (kind, run, length, JSON shape, nesting, numbers, bytes) and
go the whole way: header, place of the run, reading, step. Anything but a frame or a protocol error is a finding.
"""

from __future__ import annotations

import json
import random
import resource
import struct
import time
from typing import Any

from sandbox import Limits, ProtocolError
from sandbox.frames import FrameReader, Kind, decode_reading, encode_frame
from sandbox.guest_messages import decode_references, decode_step
from sandbox.seat import Seat

LIMITS = Limits(value_bytes=65_536, argument_bytes=65_536)
STEP: dict[str, Any] = {"calls": [], "cancelled": [], "timer": None, "outcome": None}
CALL = {"id": 1, "function": "good.echo", "arguments": {"text": "x"}}
VALUES: list[Any] = [
    None, True, 0, -1, 2**63, 10**400, 1e308, 0.5, "", "x" * 300, "\ud800", "\x00\x1b[31m", [], {}, [[]], [CALL],
    {"completed": 1}, {"completed": [1] * 200}, {"raised": {"type": "E", "message": "m", "traceback": "t"}},
    {"stopped": "memory_bytes"}, {"stopped": 1}, {"raised": []},
]  # fmt: skip
RAW = [
    "",
    "x",
    "[" * 50_000,
    '{"calls":' * 500,
    '"' + "\\" * 1_001,
    "NaN",
    "1e999",
    "9" * 5_000,
    "[1," * 9_000,
    "\ufeff{}",
]


def make_text(draw: random.Random) -> str:
    """Return the text of an answer: mostly a step with a few fields replaced."""
    if draw.random() < 0.1:  # noqa: PLR2004  # a tenth is no JSON of ours at all
        return draw.choice(RAW)
    message: dict[str, Any] = dict(STEP)
    if draw.random() < 0.5:  # noqa: PLR2004  # half make a call
        message["calls"] = [CALL | {draw.choice(list(CALL)): draw.choice(VALUES)} for _ in range(draw.randrange(4))]
    for _ in range(draw.randrange(3)):
        message[draw.choice([*STEP, "raised", "references", "more"])] = draw.choice(VALUES)
    text = json.dumps(message)
    if draw.random() < 0.3:  # noqa: PLR2004  # a third is damaged
        place = draw.randrange(len(text))
        text = text[:place] + draw.choice(["", "{", "]", '"', "\\", "\udfff", "é", ",,"]) + text[place + 1 :]
    return text


def make_frame(draw: random.Random) -> bytes:
    """Return the bytes of one frame, or of something like it."""
    reading = struct.pack(">dQ", draw.choice([0.0] * 9 + [-1.0, float("nan"), float("inf")]), draw.getrandbits(64))
    payload = reading + make_text(draw).encode("utf-8", "surrogatepass")
    kind = draw.choice([*Kind, *[Kind.ANSWER] * 30, Kind.RAISED])
    frame = bytearray(encode_frame(kind, draw.choice([1] * 20 + [0, 2, 2**32 - 1]), payload))
    for _ in range(draw.choice([0, 0, 0, 1, 2])):
        frame[draw.randrange(len(frame))] = draw.getrandbits(8)
    return bytes(frame)


def feed(data: bytes) -> bool:
    """Take a frame the way the host does; return whether it was accepted."""
    seat = Seat(1, lambda _output, _text: None)
    seat.take_on(LIMITS)

    def allowed(kind: Kind, run: int) -> int:
        if run != 1 or seat.answer is not None:
            raise ProtocolError("not now")
        return seat.allowed(kind)

    try:
        for frame in FrameReader(allowed).feed(data):
            seat.take(frame)
        if seat.answer is not None:
            reading = decode_reading(seat.answer.payload)
            decode = decode_references if seat.answer.kind is Kind.RAISED else decode_step
            decode(reading.text, LIMITS)
    except ProtocolError:
        return False
    return seat.answer is not None


def fuzz(count: int, seed: int) -> dict[str, float]:
    """Feed `count` frames; return how many were accepted, the slowest in milliseconds, and the growth in KiB."""
    draw = random.Random(seed)  # noqa: S311  # a finding must come again
    accepted, slowest = 0, 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(count):
        frame = make_frame(draw)
        began = time.perf_counter()
        accepted += feed(frame)
        slowest = max(slowest, time.perf_counter() - began)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"seed": seed, "frames": count, "accepted": accepted, "slowest_ms": slowest * 1e3, "grown_kib": grown}
