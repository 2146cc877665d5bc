"""Frames from a worker are hostile: whatever comes, it is a frame that may come or a protocol error."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.sandbox import fuzz_frames
from sandbox import Limits, ProtocolError
from sandbox.frames import (
    READING_BYTES,
    Entering,
    Frame,
    FrameReader,
    Kind,
    Reading,
    decode_entering,
    decode_reading,
    encode_entering,
    encode_frame,
    encode_reading,
)
from sandbox.seat import Seat

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
FRAMES = st.lists(st.tuples(st.sampled_from(Kind), st.integers(0, 2**32 - 1), st.binary(max_size=200)), max_size=5)


def cut(data, places):
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[begin:end] for begin, end in itertools.pairwise(edges)]


@given(FRAMES, st.lists(st.integers(0, 2_000), max_size=5))
def test_frames_survive_any_cutting_of_the_stream(frames, places):
    reader = FrameReader(lambda _kind, _run: 200)
    stream = b"".join(encode_frame(*frame) for frame in frames)
    assert [frame for piece in cut(stream, places) for frame in reader.feed(piece)] == frames


@given(ANY_TEXT, st.floats(0, 1e9), st.integers(0, 2**64 - 1), st.sampled_from(["start", "resume", "references"]))
def test_what_begins_a_step_is_read_as_it_was_written(argument, seconds, now_ns, export):
    entering = Entering(export, argument, seconds, now_ns)
    (frame,) = FrameReader(lambda _kind, _run: 2**20).feed(encode_entering(9, entering))
    assert decode_entering(frame.payload) == entering


@given(ANY_TEXT, st.floats(0, 1e9), st.integers(0, 2**64 - 1))
def test_what_ends_a_step_is_read_as_it_was_written(text, cpu_seconds, elapsed_ns):
    reading = Reading(cpu_seconds, elapsed_ns, text)
    (frame,) = FrameReader(lambda _kind, _run: 2**20).feed(encode_reading(Kind.ANSWER, 1, reading))
    assert decode_reading(frame.payload) == reading


@given(st.binary(max_size=500))
def test_an_ending_of_arbitrary_bytes_is_a_reading_or_a_protocol_error(payload):
    try:
        reading = decode_reading(payload)
    except ProtocolError:
        return
    assert reading.cpu_seconds >= 0


@given(st.one_of(st.binary(max_size=300), FRAMES.map(lambda frames: b"".join(encode_frame(*f) for f in frames))))
def test_a_stream_of_anything_is_what_may_come_or_a_protocol_error(stream):
    printed = []
    limits = Limits(output_bytes=100)
    seat = Seat(1, lambda _output, text: printed.append(text))
    seat.take_on(limits)

    def allowed(kind, run):
        if run != 1 or seat.answer is not None:
            raise ProtocolError("not now")
        return seat.allowed(kind)

    try:
        for frame in FrameReader(allowed).feed(stream):
            seat.take(frame)
    except ProtocolError:
        pass
    assert len("".join(printed).encode()) <= 100
    assert seat.answer is None or seat.answer.kind in {Kind.ANSWER, Kind.STOPPED, Kind.RAISED}


def test_printed_text_may_come_as_long_as_the_limit_leaves_room():
    printed = []
    seat = Seat(1, lambda output, text: printed.append((output, text)))
    seat.take_on(Limits(output_bytes=10))
    assert seat.allowed(Kind.STDOUT) == 10
    seat.take(Frame(Kind.STDOUT, 1, b"1234567"))
    assert seat.allowed(Kind.STDERR) == 3
    seat.take(Frame(Kind.STDERR, 1, b"890"))
    assert printed == [(1, "1234567"), (2, "890")]
    with pytest.raises(ProtocolError, match="a frame that may not come now"):
        seat.allowed(Kind.STDOUT)


def test_printed_text_of_nothing_is_refused():
    seat = Seat(1, lambda _output, _text: None)
    seat.take_on(Limits())
    with pytest.raises(ProtocolError, match="the worker sent nothing as printed text"):
        seat.take(Frame(Kind.STDOUT, 1, b""))


LIMITS = Limits()
LONGEST = {
    Kind.STDOUT: LIMITS.output_bytes,
    Kind.STDERR: LIMITS.output_bytes,
    Kind.ANSWER: 4 * (LIMITS.step_bytes + 1) + READING_BYTES,
    Kind.RAISED: 1024 * 1024,
    Kind.STOPPED: 64,
}


@pytest.mark.parametrize("kind", Kind)
def test_a_seat_takes_frames_of_its_run_alone_each_up_to_its_length(kind):
    seat = Seat(1, lambda _output, _text: None)
    with pytest.raises(ProtocolError, match="a frame that may not come now"):
        seat.allowed(kind)
    seat.take_on(LIMITS)
    if kind in LONGEST:
        assert seat.allowed(kind) == LONGEST[kind]
    else:
        with pytest.raises(ProtocolError, match="a frame that may not come now"):
            seat.allowed(kind)


def test_a_worker_says_who_it_is_before_any_run():
    assert Seat(0, lambda _output, _text: None).allowed(Kind.HELLO) == 4_096


@pytest.mark.parametrize("seconds", [-1.0, math.inf, -math.inf, math.nan])
def test_processor_time_that_is_none_is_refused(seconds):
    (frame,) = FrameReader(lambda _kind, _run: 100).feed(encode_reading(Kind.ANSWER, 1, Reading(seconds, 0, "{}")))
    with pytest.raises(ProtocolError, match="a frame's processor time is not a number of seconds"):
        decode_reading(frame.payload)


def test_a_frame_that_says_it_is_too_long_is_refused_by_its_header():
    reader = FrameReader(lambda _kind, _run: 10)
    header = encode_frame(Kind.ANSWER, 1, b"x" * 11)[:9]
    with pytest.raises(ProtocolError, match="a frame of 11 bytes is too long"):
        list(reader.feed(header))


@given(st.integers(0, 2**32))
def test_valid_frames_with_a_changed_structure_are_taken_or_refused(seed):
    fuzz_frames.feed(fuzz_frames.make_frame(random.Random(seed)))  # noqa: S311
