"""Printed text on its way to whoever watches it: the same in both isolations."""

from __future__ import annotations

import threading
import tracemalloc
from itertools import groupby

import anyio
import pytest

from sandbox import Completed, Printed, Raised, Returned, Sandbox
from sandbox.host_functions import entered
from sandbox.output import MAX_IN_TURN, MAX_PIECES, Output

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("script", ["print('x')\nprint('y')", "print('x')\nwhile True: pass"])
async def test_what_a_watcher_raises_ends_its_run_and_no_other(run, error, script):
    seen = []

    def on_output(_name, text):
        seen.append(text)
        raise error("broken")

    with pytest.raises(error, match=r"^broken$"):
        await run(script, on_output=on_output)
    [only] = seen
    assert only.startswith("x\n")
    assert entered.guest is None
    assert (await run("1 + 1")).outcome == Completed(2)


async def test_a_watcher_that_raises_leaves_the_run_beside_it_alone(run):
    waits, broken = anyio.Event(), anyio.Event()
    results = []

    async def answer(_call):
        waits.set()
        await broken.wait()
        return Returned("kept")

    def on_output(_name, _text):
        raise ValueError("broken")

    async def neighbour():
        results.append(await run("from tools import good\nawait good.echo(text=1)", answer=answer))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(neighbour)
        await waits.wait()
        with pytest.raises(ValueError, match="broken"):
            await run("print(1)", on_output=on_output)
        broken.set()
    assert results[0].outcome == Completed("kept")


async def test_text_is_passed_on_in_order_on_the_event_loops_thread_before_the_run_is_over(run):
    seen = []
    script = "for i in range(200):\n    print(i)\n    sum(range(20_000))"
    result = await run(script, on_output=lambda _name, text: seen.append((threading.get_ident(), text)))
    assert "".join(text for _, text in seen) == "".join(f"{i}\n" for i in range(200))
    assert {thread for thread, _ in seen} == {threading.get_ident()}
    assert result.stdout == "".join(text for _, text in seen)


async def test_more_text_at_once_than_a_guests_streams_hand_over_is_no_text(run):
    result = await run("import wit_world\nprint('before')\nwit_world.write(1, 'x' * 65_537)")
    message = "the guest printed more than 65536 characters at once"
    assert result.outcome == Raised("ProtocolError", message, f"ProtocolError: {message}\n")
    assert result.stdout == "before\n"


async def test_text_of_single_characters_is_kept_in_a_thousandth_of_the_pieces():
    output = Output(None)
    for number in range(100_000):
        output.add(1 + (number > 50_000), "é")
    pieces = output.take_new()
    assert len(pieces) <= 2 * MAX_PIECES
    assert [stream for stream, _ in groupby(piece.stream for piece in pieces)] == ["stdout", "stderr"]
    output.add(1, "after")
    assert output.take_new() == [Printed("stdout", "after")]
    assert output.finish() == ("é" * 50_001 + "after", "é" * 49_999)


@pytest.mark.parametrize("every", [2, 7, 1_000_000])
async def test_streams_in_turn_keep_their_order_up_to_a_bound_wherever_their_pieces_were_cut(every):
    output = Output(None)
    for number in range(2 * MAX_IN_TURN):
        for text in ("\x01", "\x02") if number % every == 0 else ("\x01\x02",):
            output.add(1 + number % 2, text)
    assert len(output._pieces) < MAX_IN_TURN * 3 // 2 + 10 * MAX_PIECES
    pieces = output.take_new()
    assert pieces[:MAX_IN_TURN] == [Printed("stdout", "\\x01\\x02"), Printed("stderr", "\\x01\\x02")] * (
        MAX_IN_TURN // 2
    )
    text = "\\x01\\x02" * (MAX_IN_TURN // 2)
    assert pieces[MAX_IN_TURN:] == [Printed("stderr", text), Printed("stdout", text)]
    assert output.finish() == (2 * text, 2 * text)


async def test_text_of_many_steps_is_kept_in_one_piece_for_each():
    output = Output(None)
    for number in range(100):
        for _ in range(MAX_PIECES // 2):
            output.add(1, f"\x01{number}")
            output.add(2, "\x02")
        assert len(output.take_new()) == MAX_PIECES
    tracemalloc.start()
    try:
        stdout, stderr = output.finish()
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most_bytes < 2 * (len(stdout) + len(stderr))
    assert stdout == "".join(f"\\x01{number}" * (MAX_PIECES // 2) for number in range(100))
    assert stderr == "\\x02" * (50 * MAX_PIECES)


async def test_what_is_printed_at_once_comes_in_few_pieces_from_a_worker(image):
    seen = []
    script = "import sys\nfor _ in range(20_000): sys.stdout.write('x')"
    async with Sandbox(isolation="process", cache=image.compiled.parent) as sandbox:
        result = await sandbox.run(script, on_output=lambda _name, text: seen.append(text))
    assert "".join(seen) == result.stdout == "x" * 20_000
    assert len(seen) < 5_000


@pytest.mark.parametrize(
    ("writes", "shown"), [(("a\r", "\nb"), "a\\x0d\nb"), (("a\r\n", "b"), "a\nb"), (("a", "\r", "\n"), "a\\x0d\n")]
)
async def test_a_line_end_in_two_pieces_is_shown_alike_in_both_isolations(run, writes, shown):
    assert (await run(f"import sys\nfor text in {writes!r}: sys.stdout.write(text)")).stdout == shown


async def test_printing_nothing_is_nothing(run):
    seen = []
    script = "import wit_world\nfor _ in range(1000): wit_world.write(1, '')\nprint('x')"
    result = await run(script, on_output=lambda _name, text: seen.append(text))
    assert seen == ["x\n"]
    assert result.stdout == "x\n"
