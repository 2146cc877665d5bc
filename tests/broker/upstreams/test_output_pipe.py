"""Reading a child's output, over real pipes."""

from __future__ import annotations

import asyncio
import os
import sys

import anyio
import anyio.lowlevel
import pytest

from broker.upstreams.output_pipe import CHUNK_BYTES, OutputPipe

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("deadline"),
    pytest.mark.skipif(sys.platform == "win32", reason="a stream is read there"),
]


@pytest.fixture
async def ends():
    """The pipe, and the end that a child writes to."""
    reading_end, writing_end = os.pipe()
    pipe = OutputPipe(reading_end)
    with os.fdopen(writing_end, "wb", buffering=0) as child:
        yield pipe, child
    await pipe.aclose()


def never(_chunk):
    return False


async def test_what_is_taken_is_not_received(ends):
    pipe, child = ends
    asked = []

    def is_taken(chunk):
        asked.append(chunk)
        if chunk != b"third":
            child.write(b"second" if chunk == b"first" else b"third")
        return chunk != b"third"

    child.write(b"first")
    assert await pipe.receive(is_taken) == b"third"
    assert asked == [b"first", b"second", b"third"]


async def test_a_child_that_writes_much_is_read_in_chunks_and_only_when_asked(ends):
    pipe, child = ends
    os.set_blocking(child.fileno(), False)
    written = child.write(bytes(10 * CHUNK_BYTES))
    assert await pipe.receive(never) == bytes(min(written, CHUNK_BYTES))
    assert child.write(bytes(10 * CHUNK_BYTES)) <= CHUNK_BYTES


async def test_the_end_of_the_output_is_told_after_all_that_was_written(ends):
    pipe, child = ends
    child.write(b"last")
    child.close()
    assert await pipe.receive(never) == b"last"
    for _ in range(2):
        with pytest.raises(anyio.EndOfStream):
            await pipe.receive(never)


async def test_whoever_leaves_takes_nothing_along(ends):
    pipe, child = ends
    received = []

    async def receive() -> None:
        received.append(await pipe.receive(never))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive)
        await anyio.wait_all_tasks_blocked()
        child.write(b"later")
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    if not received:
        await receive()
    assert received == [b"later"]


async def test_nothing_is_watched_between_two_chunks(ends, anyio_backend):
    pipe, child = ends
    child.write(b"first")
    assert await pipe.receive(never) == b"first"
    if anyio_backend == "asyncio":
        assert not asyncio.get_running_loop().remove_reader(pipe._end)


async def test_a_closed_pipe_is_not_read(ends):
    pipe, _ = ends
    await pipe.aclose()
    with pytest.raises(anyio.ClosedResourceError):
        await pipe.receive(never)
    await pipe.aclose()


@pytest.mark.skipif(sys.platform != "linux", reason="a terminal that was hung up ends there without an error")
async def test_what_cannot_be_read_is_an_error():
    ours, theirs = os.openpty()
    os.close(theirs)
    pipe = OutputPipe(ours)
    with pytest.raises(OSError, match="Input/output error"):
        await pipe.receive(never)
    await pipe.aclose()
