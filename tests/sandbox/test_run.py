"""The driver of a run, on both event loops: calls beside each other, timers, cancellation, and every limit."""

from __future__ import annotations

import threading

import anyio.lowlevel
import anyio.to_thread
import pytest

from sandbox import Completed, Failed, Limits, Raised, Returned, SkippingStopwatch, Stopped, pace
from sandbox.limits import MIB
from sandbox.run import OPEN_BYTES
from tests.loop_turns import counted_turns
from tests.processes import resident_bytes

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


class Tools:
    """Answers calls, and lets a test see and steer them."""

    def __init__(self) -> None:
        self.began: list[object] = []
        self.ended: list[object] = []
        self.cancelled: list[object] = []
        self.most_at_once = 0
        self.first = anyio.Event()
        self.second = anyio.Event()

    async def answer(self, call):
        text = call.arguments.get("text")
        self.began.append(text)
        self.most_at_once = max(self.most_at_once, len(self.began) - len(self.ended) - len(self.cancelled))
        self.first.set()
        if len(self.began) == 2:
            self.second.set()
        try:
            if text == "wait":
                await anyio.sleep_forever()
            if text == "together":
                await self.second.wait()
            if text == "yield":
                await anyio.lowlevel.checkpoint()
        except anyio.get_cancelled_exc_class():
            self.cancelled.append(text)
            raise
        self.ended.append(text)
        return Failed("ToolError", "no") if text == "fail" else Returned(text)


@pytest.fixture
def tools():
    return Tools()


async def test_calls_of_a_gather_are_answered_at_the_same_time(run, tools):
    script = """
        import asyncio
        from tools import good
        await asyncio.gather(good.echo(text="together"), good.echo(text="together"))
    """
    result = await run(script, answer=tools.answer)
    assert result.outcome == Completed(["together", "together"])
    assert result.usage.calls == 2
    assert result.usage.steps <= 3


async def test_a_task_group_cancels_the_calls_beside_one_that_fails(run, tools):
    script = """
        import asyncio
        from tools import good, ToolError
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(good.echo(text="wait"))
                tasks.create_task(good.echo(text="fail"))
        except* ToolError as group:
            print([str(error) for error in group.exceptions])
        await good.echo(text="after")
    """
    result = await run(script, answer=tools.answer)
    assert result.outcome == Completed("after")
    assert result.stdout == "['no']\n"
    assert tools.cancelled == ["wait"]


async def test_a_call_that_the_script_gives_up_is_cancelled_on_the_host(run, tools):
    script = """
        import asyncio
        from tools import good
        try:
            await asyncio.wait_for(good.echo(text="wait"), 0.01)
        except TimeoutError:
            print("too long")
        await good.echo(text="yield")
    """
    result = await run(script, answer=tools.answer)
    assert result.outcome == Completed("yield")
    assert result.stdout == "too long\n"
    assert tools.cancelled == ["wait"]


async def test_calls_behind_one_that_the_script_gives_up_are_made(run, tools):
    script = """
        import asyncio
        from tools import good
        async def give_up():
            try:
                await asyncio.wait_for(good.echo(text="wait"), 0.01)
            except TimeoutError:
                return "too long"
        await asyncio.gather(give_up(), good.echo(text="yield"), give_up(), good.echo(text="last"))
    """
    result = await run(script, answer=tools.answer, limits=Limits(calls_in_flight=1))
    assert result.outcome == Completed(["too long", "yield", "too long", "last"])
    assert tools.most_at_once == 1


async def test_a_call_that_is_withdrawn_before_it_leaves_never_leaves(run, tools):
    script = """
        import asyncio
        from tools import good
        task = asyncio.ensure_future(good.echo(text="never"))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        task.cancelled()
    """
    result = await run(script, answer=tools.answer)
    assert result.outcome == Completed(value=True)
    assert tools.began == []


async def test_calls_that_are_withdrawn_before_their_turn_take_no_memory(run, tools):
    script = """
        import asyncio
        from tools import good
        first = asyncio.ensure_future(good.echo(text="wait"))
        await asyncio.sleep(0.001)
        for _ in range(100):
            task = asyncio.ensure_future(good.echo(text="x" * 1_000_000))
            await asyncio.sleep(0.001)
            task.cancel()
            await asyncio.sleep(0.001)
    """
    await run("1")
    before = resident_bytes()
    result = await run(script, answer=tools.answer, limits=Limits(calls_in_flight=1))
    assert result.outcome == Completed(None)
    assert (tools.began, result.usage.calls) == (["wait"], 101)
    assert resident_bytes() - before < 64 * MIB


POST = """
    import asyncio, sys
    from tools import good
    bridge = sys.modules["guest.main"]._run._bridge
    for _ in range(25):
        bridge.post("good.echo", {"text": [*range(1_000, 100_000)]})
        await asyncio.sleep(0.001)
"""


async def test_calls_around_the_stubs_take_no_more_memory_at_the_same_time_than_they_may(run):
    async def wait(_call):
        await anyio.sleep_forever()

    result = await run(POST, answer=wait, limits=Limits(calls_in_flight=1))
    assert isinstance(result.outcome, Stopped)
    assert (result.outcome.limit, result.outcome.amount) == ("open_bytes", OPEN_BYTES)
    assert result.usage.calls == 21


async def test_calls_that_are_answered_take_none_of_the_memory_for_those_that_are_open(run):
    result = await run(POST, limits=Limits(calls_in_flight=1))
    assert (result.outcome, result.usage.calls) == (Completed(None), 25)


async def test_a_failed_call_raises_where_the_script_waits(run, tools):
    script = """
        from tools import good
        await good.echo(text="fail")
    """
    outcome = (await run(script, answer=tools.answer)).outcome
    assert isinstance(outcome, Raised)
    assert (outcome.type, outcome.message) == ("ToolError", "no")


async def test_no_more_calls_than_allowed_are_in_flight_and_the_others_wait_their_turn(run, tools):
    script = """
        import asyncio
        from tools import good
        len(await asyncio.gather(*[good.echo(text="yield") for _ in range(40)]))
    """
    result = await run(script, answer=tools.answer, limits=Limits(calls_in_flight=3))
    assert result.outcome == Completed(40)
    assert tools.most_at_once == 3


async def test_a_waiting_script_holds_no_thread(run, tools):
    script = """
        import asyncio
        from tools import good
        await asyncio.gather(good.echo(text="together"), asyncio.sleep(0.01))
        'done'
    """
    ends = []
    threads = threading.active_count()

    async def one() -> None:
        ends.append((await run(script, answer=tools.answer)).outcome)

    async with anyio.create_task_group() as tasks:
        for _ in range(50):
            tasks.start_soon(one)
    assert ends == [Completed("done")] * 50
    assert threading.active_count() - threads < 40


async def test_sleeping_tasks_wake_in_order_and_time_passes(run):
    script = """
        import asyncio, time
        began = time.monotonic()
        async def wake(after):
            await asyncio.sleep(after)
            print(after)
        await asyncio.gather(wake(0.03), wake(0.01), wake(0.02))
        time.monotonic() - began >= 0.03
    """
    result = await run(script)
    assert result.outcome == Completed(value=True)
    assert result.stdout == "0.01\n0.02\n0.03\n"
    assert result.usage.wall_seconds >= 0.03


async def test_time_sleep_passes_on_the_runs_clock_and_then_really(run):
    result = await run("import time\nt = time.time()\ntime.sleep(0.05)\nround(time.time() - t, 2)\n")
    assert result.outcome == Completed(0.05)


async def test_calls_still_open_when_the_script_ends_are_cancelled(run, tools):
    script = """
        import asyncio
        from tools import good
        task = asyncio.create_task(good.echo(text="wait"))
        await good.echo(text="yield")
    """
    result = await run(script, answer=tools.answer)
    assert result.outcome == Completed("yield")
    assert tools.cancelled == ["wait"]


async def test_a_call_that_takes_past_the_deadline_to_be_cancelled_leaves_the_outcome_as_it_was(run):
    stopwatch = SkippingStopwatch()
    ended = []

    async def answer(call):
        if call.arguments["text"] == "stay":
            try:
                await anyio.sleep_forever()
            finally:
                with anyio.CancelScope(shield=True):
                    await stopwatch.wait(60)
                    ended.append("stay")
        await anyio.lowlevel.checkpoint()
        return Returned("done")

    script = """
        import asyncio
        from tools import good
        task = asyncio.create_task(good.echo(text="stay"))
        await good.echo(text="pass")
    """
    result = await run(script, answer=answer, stopwatch=stopwatch)
    assert (result.outcome, ended) == (Completed("done"), ["stay"])


async def test_a_run_that_is_cancelled_ends_its_guest_and_its_calls(run, sandbox, manifest, tools):
    script = "from tools import good\nawait good.echo(text='wait')"
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: sandbox.run(script, answer=tools.answer, manifest=manifest))
            await tools.first.wait()
            tasks.cancel_scope.cancel()
    assert tools.cancelled == ["wait"]
    assert (await run("1 + 1")).outcome == Completed(2)


async def test_a_computing_guest_ends_when_its_run_is_cancelled(sandbox, run):
    started = threading.Event()

    async def compute() -> None:
        await sandbox.run("print('on')\nwhile True: pass", on_output=lambda _name, _text: started.set())

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(compute)
            await anyio.to_thread.run_sync(started.wait)
            tasks.cancel_scope.cancel()
    assert (await run("1 + 1")).outcome == Completed(2)


async def test_a_script_whose_calls_are_answered_at_once_gives_way_to_others(run, monkeypatch):
    monkeypatch.setattr(pace, "QUICK_SECONDS", 0)  # each step's turn is over at once
    seen = []

    async def answer(_call):
        seen.append(turns.count)
        return Returned(None)

    async with counted_turns() as turns:
        await run("from tools import good\nfor _ in range(200):\n    await good.echo(text='x')", answer=answer)
    assert len(set(seen)) >= 100  # trio takes those who are ready in any order


async def test_what_answer_raises_comes_out_of_run(sandbox, manifest):
    async def broken(_call):
        raise LookupError("our own fault")

    async def attempt() -> None:
        await sandbox.run("from tools import good\nawait good.echo(text='a')", answer=broken, manifest=manifest)

    with anyio.fail_after(60):
        with pytest.raises(LookupError, match="our own fault"):
            await attempt()


@pytest.mark.parametrize("given", [5, {"value": 5}, True])
async def test_an_answer_that_is_none_comes_out_of_run_with_what_to_write(sandbox, manifest, given):
    async def answer(_call):
        await anyio.lowlevel.checkpoint()
        return given

    with pytest.raises(TypeError, match=r"answered by a sandbox\.Returned or Failed, as Returned\(5\), not by a "):
        await sandbox.run("from tools import good\nawait good.echo(text='a')", manifest=manifest, answer=answer)


async def test_what_one_of_many_answers_raises_comes_out_of_run_alone(sandbox, manifest):
    async def broken(call):
        if call.arguments["text"] == "wait":
            await anyio.sleep_forever()
        raise LookupError("our own fault")

    script = "import asyncio\nfrom tools import good\nawait asyncio.gather(*(good.echo(text=t) for t in ('wait', 'a')))"
    with anyio.fail_after(60):
        with pytest.raises(LookupError, match="our own fault"):
            await sandbox.run(script, answer=broken, manifest=manifest)


async def test_of_what_many_answers_raise_the_first_comes_out_of_run(sandbox, manifest):
    async def broken(call):
        text = call.arguments["text"]
        try:
            if text != "first":
                await anyio.sleep_forever()
        finally:
            raise LookupError(text)

    texts = ("a", "first", "b")
    script = f"import asyncio\nfrom tools import good\nawait asyncio.gather(*(good.echo(text=t) for t in {texts}))"
    with anyio.fail_after(60):
        with pytest.raises(LookupError, match="first"):
            await sandbox.run(script, answer=broken, manifest=manifest)


SPENT = Limits(wall_seconds=0.5)
STOPS = {
    "a loop": ("while True: pass", SPENT, Stopped("wall_seconds", 0.5)),
    "a big power": ("10**10**8", SPENT, Stopped("wall_seconds", 0.5)),
    "a regular expression": ("import re\nre.match('(a+)+$', 'a' * 50 + 'b')", SPENT, Stopped("wall_seconds", 0.5)),
    "a loop in C": ("sum(iter(int, 1))", SPENT, Stopped("wall_seconds", 0.5)),
    "a comparison": (
        "class E:\n def __lt__(self, other):\n  while True: pass\nsorted([E(), E()])",
        SPENT,
        Stopped("wall_seconds", 0.5),
    ),
    "a blocking sleep": ("import time\ntime.sleep(1e9)", Limits(), Stopped("wall_seconds", 30.0)),
    "a select": ("import select\nselect.select([], [], [], 1e6)", Limits(), Stopped("wall_seconds", 30.0)),
    "an endless wait": ("import asyncio\nawait asyncio.sleep(1e9)", SPENT, Stopped("wall_seconds", 0.5, 3)),
    "a call": ("from tools import good\nawait good.echo(text='wait')", SPENT, Stopped("wall_seconds", 0.5, 3)),
    "swallowing": (
        "while True:\n try:\n  while True: pass\n except BaseException: pass",
        SPENT,
        Stopped("wall_seconds", 0.5),
    ),
    "a finally": ("def f():\n try:\n  while True: pass\n finally: f()\nf()", SPENT, Stopped("wall_seconds", 0.5)),
    "a destructor": (
        "class D:\n def __del__(self):\n  while True: pass\nd = D()\ndel d",
        SPENT,
        Stopped("wall_seconds", 0.5),
    ),
    "processor time": ("while True: pass", Limits(cpu_seconds=0.2), Stopped("cpu_seconds", 0.2)),
    "printing": ("while True: print('x' * 1000)", Limits(output_bytes=5_000), Stopped("output_bytes", 5_000)),
    "100 MB at once": ("print('x' * 100_000_000)", Limits(output_bytes=5_000), Stopped("output_bytes", 5_000)),
    "a value": ("'x' * 5_000", Limits(value_bytes=4_000), Stopped("value_bytes", 4_000)),
    "a huge value": ("'x' * 20_000_000", Limits(), Stopped("value_bytes", 4 * MIB)),
    "a deep value": ("x = []\nfor _ in range(99): x = [x]\nx", Limits(), Stopped("depth", 64)),
    "many values": ("[0] * 600_000", Limits(), Stopped("values", 500_000)),
    "calls": (
        "from tools import good\nfor _ in range(9): await good.echo(text='a')",
        Limits(calls=5),
        Stopped("calls", 5, 3),
    ),
    "many calls at once": (
        "import asyncio\nfrom tools import good\nawait asyncio.gather(*[good.echo(text='a') for _ in range(20_000)])",
        Limits(),
        Stopped("calls", 1_000, 4),
    ),
    "arguments": (
        "from tools import good\nawait good.echo(text='x' * 2_000)",
        Limits(argument_bytes=1_000),
        Stopped("argument_bytes", 1_000, 3),
    ),
    "huge arguments": (
        "from tools import good\nawait good.echo(text='x' * 20_000_000)",
        Limits(),
        Stopped("argument_bytes", 1 * MIB),
    ),
    "deep arguments": (
        "from tools import good\nx = []\nfor _ in range(99): x = [x]\nawait good.echo(text=x)",
        Limits(),
        Stopped("depth", 64),
    ),
    "the first of several waits": (
        (
            "import asyncio\nfrom tools import good\nasync def ask(text):\n    return await good.echo(text=text)\n"
            "await asyncio.gather(ask('a'), ask('wait'), good.echo(text='wait'))"
        ),
        SPENT,
        Stopped("wall_seconds", 0.5, 5),
    ),
    "steps": (
        "from tools import good\nfor _ in range(99): await good.echo(text='a')",
        Limits(steps=10),
        Stopped("steps", 10, 3),
    ),
    "recursion in C": ("import json\njson.loads('[' * 500_000)", Limits(), Stopped("stack", 2 * MIB)),
}


@pytest.mark.parametrize("name", STOPS)
async def test_a_limit_stops_with_its_name_amount_line_and_the_output_so_far(name, run, tools):
    script, limits, expected = STOPS[name]
    result = await run(f"print('before')\n{script}", answer=tools.answer, limits=limits)
    assert result.outcome == expected
    assert result.stdout.startswith("before\n")
    assert len(result.stdout) <= limits.output_bytes
    assert (await run("1 + 1")).outcome == Completed(2)


@pytest.mark.parametrize(
    "script",
    [
        "L = []\nwhile True: L.append('x' * 1000 + str(len(L)))",
        "bytearray(10**9)",
        "x = 'a'\nwhile True: x += x",
    ],
)
async def test_memory_that_runs_out_is_an_error_in_the_script_and_says_so(script, run):
    result = await run(f"print('before')\n{script}", limits=Limits(memory_bytes=64 * MIB))
    assert isinstance(result.outcome, Raised)
    assert result.outcome.type == "MemoryError"
    assert result.outcome.message.startswith("the script needs more memory than its run may have")
    assert result.stdout == "before\n"


async def test_memory_gone_to_the_last_byte_is_the_limit(run):
    limits = Limits(memory_bytes=64 * MIB)
    result = await run("print('before')\nd = None\nwhile True: d = [d]", limits=limits)
    assert result.outcome == Stopped("memory_bytes", 64 * MIB)
    assert result.stdout == "before\n"


async def test_memory_that_answers_fill_is_the_limit(run):
    async def answer(_call):
        return Returned("x" * 8_000_000)

    script = "from tools import good\nkept = []\nwhile True: kept.append(await good.echo(text=''))"
    result = await run(script, answer=answer, limits=Limits(memory_bytes=96 * MIB))
    assert result.outcome == Stopped("memory_bytes", 96 * MIB)


async def test_a_script_may_catch_that_memory_ran_out_and_go_on(run):
    script = "try:\n bytearray(10**9)\nexcept MemoryError:\n 'small again'\nelse:\n 'room'"
    assert (await run(script + "\n'went on'")).outcome == Completed("went on")


async def test_usage_counts_what_was_used(run):
    script = "from tools import good\nprint('héllo')\nawait good.echo(text='a')\nawait good.echo(text='b')"
    usage = (await run(script)).usage
    assert (usage.calls, usage.steps, usage.output_bytes) == (2, 3, 7)
    assert 0 < usage.cpu_seconds <= usage.wall_seconds + 0.1


@pytest.mark.parametrize(
    "sizes",
    ["[900_000] * 40", "[1] * 600 + [900_000] * 40", "[900_000, 1] * 9 + [1] * 6_000"],
    ids=["large", "large after small", "in turns"],
)
async def test_what_many_calls_carry_leaves_in_several_steps_and_takes_little_room(run, sizes):
    async def answer(call):
        return Returned([call.id, len(call.arguments["text"])])

    script = f"""
        import asyncio
        from tools import good
        text, sizes = 'x' * 900_000, {sizes}
        answers = await asyncio.gather(*[good.echo(text=text[:size]) for size in sizes])
        answers == [[n, size] for n, size in enumerate(sizes, 1)]
    """
    result = await run(script, answer=answer, limits=Limits(calls=10_000, memory_bytes=96 * MIB))
    assert result.outcome == Completed(value=True)
    assert result.usage.steps > 2


async def test_a_guest_that_uses_an_id_twice_can_not_confuse_the_host(run):
    script = """
        import sys
        from tools import good
        await good.echo(text="a")
        sys.modules["guest.main"]._run._bridge._last_id = 0
        await good.echo(text="b")
    """
    result = await run(script)
    assert isinstance(result.outcome, Raised)
    assert result.outcome.type == "ProtocolError"
    assert result.outcome.message == "a call's id does not follow the ones before it"


async def test_on_a_skipping_stopwatch_sleep_takes_no_time_and_limits_hold(run):
    script = """
        import asyncio, time
        from tools import good
        began = time.monotonic()
        async def nap(seconds):
            await asyncio.sleep(seconds)
            return await good.echo(text=seconds)
        found = await asyncio.gather(nap(20_000), nap(10_000))
        time.sleep(5_000)
        [*found, round(time.monotonic() - began)]
    """
    patient = Limits(wall_seconds=100_000)
    result = await run(script, stopwatch=SkippingStopwatch(), limits=patient)
    assert result.outcome == Completed([20_000, 10_000, 25_000])
    assert round(result.usage.wall_seconds) == 25_000
    stopped = await run(script, stopwatch=SkippingStopwatch(), limits=Limits(wall_seconds=15_000))
    assert stopped.outcome == Stopped("wall_seconds", 15_000, 8)
