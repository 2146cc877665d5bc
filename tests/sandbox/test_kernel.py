"""A kernel: what a script leaves is there for the next one, until one is stopped."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import textwrap

import anyio
import anyio.lowlevel
import pytest

from sandbox import Completed, KernelGoneError, Limits, Raised, Returned, RunResult, Sandbox, Stopped
from sandbox.limits import MIB

from .conftest import entry

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


@pytest.fixture
async def kernel(sandbox):
    with anyio.fail_after(120):
        async with sandbox.kernel(seed=1) as kernel:
            yield kernel


async def echo(call):
    await anyio.lowlevel.checkpoint()
    return Returned(call.arguments["text"])


async def value(kernel, script, **options):
    result = await kernel.run(textwrap.dedent(script), **options)
    assert isinstance(result.outcome, Completed), result
    return result.outcome.value


async def test_names_imports_and_definitions_live_on(kernel):
    await kernel.run(
        "import math\nfrom dataclasses import dataclass\nradius = 2\ndef area(): return math.pi * radius ** 2"
    )
    await kernel.run("radius = 1\n@dataclass\nclass Point:\n    x: int\npoint = Point(3)")
    assert await value(kernel, "[round(area(), 2), point.x, isinstance(point, Point)]") == [3.14, 3, True]


async def test_an_exception_that_was_told_in_part_is_whole_in_the_next_script(kernel):
    chain = (
        "last = None\nfor n in range(1_000):\n    error = KeyError(n)\n    error.__context__ = last\n    last = error"
    )
    assert isinstance((await kernel.run(f"{chain}\nraise last")).outcome, Raised)
    count = "count = 0\nwhile error is not None:\n    error, count = error.__context__, count + 1\n"
    assert await value(kernel, f"{count}[count, last.__suppress_context__]") == [1_000, False]


async def test_each_script_has_its_own_outcome_output_and_usage(kernel):
    first = await kernel.run("print('one'); 1")
    second = await kernel.run("import sys\nprint('two', file=sys.stderr)\nreturn 2")
    assert (first.outcome, first.stdout, first.stderr, first.usage.output_bytes) == (Completed(1), "one\n", "", 4)
    assert (second.outcome, second.stdout, second.stderr, second.usage.output_bytes) == (Completed(2), "", "two\n", 4)


@pytest.mark.parametrize(
    ("script", "kind"),
    [("kept = 2\n1 / 0", "ZeroDivisionError"), ("x = = 1", "SyntaxError"), ("import sys\nsys.exit(3)", "SystemExit")],
)
async def test_a_script_that_raises_leaves_the_kernel_usable(kernel, script, kind):
    await kernel.run("kept = 1")
    result = await kernel.run(script)
    assert isinstance(result.outcome, Raised)
    assert result.outcome.type == kind
    assert not kernel.is_gone
    assert await value(kernel, "kept") == (2 if "kept" in script else 1)


async def test_a_value_that_is_too_large_leaves_the_kernel_usable(kernel):
    result = await kernel.run("big = 'x' * 2_000_000", limits=Limits(value_bytes=100))
    assert result.outcome == Completed(None)
    assert (await kernel.run("big", limits=Limits(value_bytes=100))).outcome == Stopped("value_bytes", 100)
    assert await value(kernel, "len(big)") == 2_000_000


@pytest.mark.parametrize(
    ("script", "stopped"),
    [("for _ in range(99): kept = [kept]\nkept", "depth"), ("kept = [[]] * 600_000\nkept", "values")],
)
async def test_a_value_that_is_too_deep_or_has_too_many_leaves_the_kernel_usable(kernel, script, stopped):
    outcome = (await kernel.run(f"kept = []\n{script}")).outcome
    assert isinstance(outcome, Stopped)
    assert outcome.limit == stopped
    assert await value(kernel, "len(kept) > 0")


async def test_memory_that_runs_out_takes_nothing_from_the_kernel(kernel):
    await kernel.run("kept = 'here'")
    result = await kernel.run("def fill():\n    x = []\n    while True: x.append(bytearray(1 << 20))\nfill()")
    assert isinstance(result.outcome, Raised)
    assert result.outcome.type == "MemoryError"
    assert await value(kernel, "kept") == "here"


async def test_a_traceback_shows_the_lines_of_the_script_that_defined_the_function(kernel):
    await kernel.run("def divide(x):\n    return 1 / x  # here")
    result = await kernel.run("\n\ndivide(0)  # from there")
    assert isinstance(result.outcome, Raised)
    assert 'File "script-1.py", line 2, in divide\n    return 1 / x  # here\n' in result.outcome.traceback
    assert 'File "script-2.py", line 3, in <module>\n    divide(0)  # from there\n' in result.outcome.traceback


async def test_functions_that_call_tools_go_on_calling_them(kernel, manifest):
    calls = []

    async def answer(call):
        calls.append((call.id, call.function))
        return Returned(call.arguments["text"])

    options = {"manifest": manifest, "answer": answer}
    await kernel.run("from tools import good\nasync def say(text): return await good.echo(text=text)", **options)
    assert await value(kernel, "[await say('a'), await good.echo(text='b')]", **options) == ["a", "b"]
    assert await value(kernel, "await say('c')", **options) == "c"
    assert calls == [(1, "good.echo"), (2, "good.echo"), (1, "good.echo")]


async def test_a_tool_described_since_is_known_to_what_was_imported_before(kernel, manifest):
    result = await kernel.run("from tools import good\nawait good.hidden()", manifest=manifest, answer=echo)
    assert isinstance(result.outcome, Raised)
    assert result.outcome.type == "ToolDescriptionRequired"
    functions = manifest["good"]["functions"] | {"hidden": entry("text")}
    described = {"good": {"doc": "", "functions": functions}, "new": {"doc": "", "functions": {}}}
    assert await value(kernel, "await good.hidden(text=5)", manifest=described, answer=echo) == 5
    assert await value(kernel, "import tools\n[tools.new.__name__, tools.good is good]", manifest=described) == [
        "tools.new",
        True,
    ]
    gone = await kernel.run("import tools\ntools.new", manifest=manifest)
    assert isinstance(gone.outcome, Raised)
    assert gone.outcome.type == "ToolNotFoundError"


async def test_a_server_that_a_script_does_not_name_stays_as_the_catalog_has_it(kernel, manifest):
    options = {"manifest": manifest, "answer": echo}
    await kernel.run("from tools import good as kept\ndef hidden(): return kept.hidden(text=6)", **options)
    functions = manifest["good"]["functions"] | {"hidden": entry("text")}
    options["manifest"] = {"good": {"doc": "", "functions": functions}}
    assert await value(kernel, "await hidden()", **options) == 6
    assert await value(kernel, "list(map(str, dir(tools)))", manifest={"other": {"functions": {}}}) == ["other"]
    gone = await kernel.run("from tools import good", manifest={})
    assert isinstance(gone.outcome, Raised)
    assert "there is no server 'good' in tools" in gone.outcome.message


async def test_tasks_and_open_calls_end_with_their_script_and_its_queues_can_be_used_again(kernel, manifest):
    script = """
        import asyncio
        from tools import good
        queue, lock, seen = asyncio.Queue(), asyncio.Lock(), []
        async def late():
            try:
                await good.echo(text='never')
            except asyncio.CancelledError:
                seen.append('cancelled')
                await asyncio.sleep(1000)
        task = asyncio.create_task(late())
        waiting = asyncio.create_task(queue.get())
        forgotten = good.echo(text='later')
        asyncio.get_running_loop().call_later(0.02, seen.append, 'called')
    """
    await kernel.run(textwrap.dedent(script), manifest=manifest, answer=echo)
    script = """
        async with lock:
            getting = asyncio.create_task(queue.get())
            await asyncio.sleep(0.05)
            await queue.put(1)
            got = await getting
        [got, seen, waiting.cancelled(), await good.echo(text='a'), await forgotten]
    """
    assert await value(kernel, script, manifest=manifest, answer=echo) == [1, ["cancelled"], True, "a", "later"]


async def test_the_clocks_of_a_kernel_go_on(kernel):
    first = await value(
        kernel, "import time\nbefore = (time.monotonic(), time.time())\ntime.sleep(0.1)\ntime.monotonic()"
    )
    later = await value(
        kernel,
        "import asyncio\nnow = (time.monotonic(), time.time())\nawait asyncio.sleep(0.05)\n"
        "[*before, *now, time.monotonic()]",
    )
    assert first >= 0.1
    assert later[2] >= later[0] + 0.1
    assert later[3] >= later[1] + 0.1
    assert later[4] >= later[2] + 0.05
    assert abs((later[3] - later[1]) - (later[2] - later[0])) < 0.01


async def test_a_sleep_may_take_the_wall_seconds_of_its_own_script(kernel):
    limits = Limits(wall_seconds=2)
    for _ in range(3):
        assert (await kernel.run("import time\ntime.sleep(0.8)", limits=limits)).outcome == Completed(None)


async def test_random_numbers_are_a_function_of_the_seed_and_of_the_scripts(sandbox):
    drawn = []
    for seed in (5, 5, 6):
        async with sandbox.kernel(seed=seed) as kernel:
            await kernel.run("import random, uuid")
            drawn.append([await value(kernel, "[random.random(), str(uuid.uuid4())]") for _ in range(2)])
    assert drawn[0] == drawn[1]
    assert drawn[0][0] != drawn[0][1]
    assert drawn[0] != drawn[2]


async def test_what_a_script_puts_in_the_place_of_a_function_of_random_is_there_for_the_next(kernel):
    await kernel.run("import random\nrandom.random()\nrandom.choice = max")
    assert await value(kernel, "[random.choice([1, 5, 2]), 0 <= random.random() < 1]") == [5, True]


@pytest.mark.parametrize(
    ("script", "limits", "reason"),
    [
        ("while True: pass", Limits(cpu_seconds=0.1), "script-2.py was stopped at the limit cpu_seconds=0.1"),
        ("import asyncio\nawait asyncio.sleep(9)", Limits(wall_seconds=0.1), "stopped at the limit wall_seconds=0.1"),
        ("print('x' * 99)", Limits(output_bytes=9), "script-2.py was stopped at the limit output_bytes=9"),
        ("import os\nos.abort()", Limits(), r"script-2.py broke the interpreter \(SandboxTrap\)"),
        (
            "from tools import good\nx = []\nfor _ in range(99): x = [x]\nawait good.echo(text=x)",
            Limits(),
            "at the limit depth=64",
        ),
        ("import wit_world\nwit_world.write(1, 'x' * 70_000)", Limits(), r"broke the interpreter \(ProtocolError\)"),
    ],
)
async def test_after_a_stop_or_a_trap_the_kernel_is_gone_and_says_why(  # noqa: PLR0917  # a case and its kernel
    kernel, sandbox, manifest, script, limits, reason
):
    await kernel.run("x = 1")
    assert not isinstance((await kernel.run(script, limits=limits, manifest=manifest)).outcome, Completed)
    assert kernel.is_gone
    for _ in range(2):
        with pytest.raises(KernelGoneError, match=f"the kernel is gone: .*{reason}"):
            await kernel.run("x")
    assert (await sandbox.run("1")).outcome == Completed(1)


@pytest.mark.parametrize("script", ["while True: pass", "from tools import good\nawait good.echo(text=1)"])
async def test_a_cancelled_script_takes_its_kernel_with_it(kernel, manifest, script):
    began = anyio.Event()

    async def answer(_call):
        began.set()
        await anyio.sleep_forever()

    async def run():
        await kernel.run(
            f"print('on')\n{script}", manifest=manifest, answer=answer, on_output=lambda _name, _text: began.set()
        )

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await began.wait()
        tasks.cancel_scope.cancel()
    with pytest.raises(KernelGoneError, match=r"script-1.py was cancelled"):
        await kernel.run("1")


async def test_scripts_that_come_at_once_take_turns(kernel, manifest):
    await kernel.run("order = []")
    script = "from tools import good\norder.append('begin')\nawait good.echo(text=1)\norder.append('end')"
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(lambda: kernel.run(script, manifest=manifest, answer=echo))
    assert await value(kernel, "order") == ["begin", "end"] * 3


async def test_kernels_and_runs_share_nothing(sandbox):
    async with sandbox.kernel() as one, sandbox.kernel() as other:
        await one.run("import builtins, json\nbuiltins.secret = json.secret = 1")
        script = "import json\n[hasattr(json, 'secret'), 'secret' in dir(__builtins__)]"
        assert await value(other, script) == [False, False]
        assert (await sandbox.run(script)).outcome == Completed([False, False])


async def test_a_kernel_is_of_no_use_after_its_block(sandbox):
    async with sandbox.kernel() as kernel:
        await kernel.run("1")
    with pytest.raises(KernelGoneError, match="its `async with` block has ended"):
        await kernel.run("1")


async def test_limits_hold_for_each_script_anew(kernel):
    limits = Limits(output_bytes=10, cpu_seconds=1, calls=1, steps=5)
    for _ in range(4):
        assert (await kernel.run("print('x' * 9)\nsum(range(1_000_000))", limits=limits)).outcome == Completed(
            499999500000
        )
    wide = await kernel.run("len(bytearray(300 << 20))", limits=Limits(memory_bytes=512 * MIB))
    assert wide.outcome == Completed(300 * MIB)


@pytest.fixture
async def in_process(image):
    async with Sandbox(cache=image.compiled.parent) as sandbox:
        with anyio.fail_after(120):
            yield sandbox


def kill_home(sandbox):
    for worker in sandbox._workers.processes:
        if worker.seats:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker.pid, signal.SIGKILL)


async def test_a_kernel_outlives_its_worker_between_scripts(in_process, manifest):
    called, printed = [], []

    async def answer(call):
        called.append(call.arguments["text"])
        return Returned(call.arguments["text"])

    options = {"manifest": manifest, "answer": answer, "on_output": lambda _name, text: printed.append(text)}
    async with in_process.kernel(seed=3) as kernel:
        await kernel.run(
            "import random, time\nfrom tools import good\nkept = [random.random(), time.time_ns()]", **options
        )
        await kernel.run("print('first')\nkept.append(await good.echo(text='a'))", **options)
        assert len(await value(kernel, "kept")) == 3
        before = await value(kernel, "kept")
        kill_home(in_process)
        result = await kernel.run("print('second')\n[*kept, random.random()]", **options)
        assert result.stdout == "second\n"
        assert result.outcome.value[:3] == before
        kill_home(in_process)
        assert await value(kernel, "await good.echo(text='b')", **options) == "b"
    assert called == ["a", "b"]
    assert printed == ["first\n", "second\n"]


async def test_a_kernel_goes_on_when_its_worker_dies_while_a_script_waits(in_process, manifest):
    async def answer(call):
        kill_home(in_process)
        return Returned(call.arguments["text"])

    async with in_process.kernel() as kernel:
        await kernel.run("from tools import good\nkept = 1\nprint('once')", manifest=manifest)
        script = "print('twice')\n[kept, await good.echo(text=2), await good.echo(text=3)]"
        result = await kernel.run("from tools import good\n" + script, manifest=manifest, answer=answer)
        assert (result.outcome, result.stdout) == (Completed([1, 2, 3]), "twice\n")


async def test_a_kernel_that_brings_its_worker_down_is_gone(in_process):
    async with in_process.kernel() as kernel:
        loop = "print('on')\nwhile True: pass"
        result = await kernel.run(loop, on_output=lambda _name, _text: kill_home(in_process))
        assert result.outcome == Stopped("worker", 1)
        with pytest.raises(KernelGoneError, match="stopped at the limit worker=1"):
            await kernel.run("1")


@pytest.mark.parametrize("seed", range(3))
async def test_under_load_workers_die_at_any_moment_and_kernels_lose_nothing_and_call_nothing_twice(
    in_process, manifest, seed
):
    draw = random.Random(seed)  # noqa: S311
    fatal = set(draw.sample(range(100), 4))
    called: list[tuple[int, int, int]] = []
    ended: dict[int, list[RunResult]] = {}
    deaths = 0

    async def answer(call):
        nonlocal deaths
        if len(called) in fatal:
            deaths += 1
            with contextlib.suppress(ProcessLookupError):
                os.kill(draw.choice(in_process._workers.processes).pid, signal.SIGKILL)
        called.append(tuple(call.arguments["text"]))
        for _ in range(draw.randrange(3)):
            await anyio.lowlevel.checkpoint()
        return Returned(call.arguments["text"][2])

    async def use(number):
        ended[number] = []
        async with in_process.kernel() as kernel:
            options = {"manifest": manifest, "answer": answer}
            for part in range(4):
                script = f"""
                    import asyncio
                    from tools import good
                    total = globals().get("total", 0)
                    total += sum(await asyncio.gather(*(good.echo(text=[{number}, {part}, i]) for i in range(3))))
                    print({part})
                    sum(range(20_000))
                    total
                """
                ended[number].append(await kernel.run(textwrap.dedent(script), **options))
                if kernel.is_gone:
                    return

    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(use, number)
    assert deaths == sum(index < len(called) for index in fatal) >= 2  # a kernel that is blamed makes no more calls
    assert len(called) == len(set(called))
    stopped = [number for number, results in ended.items() if results[-1].outcome == Stopped("worker", 1)]
    assert len(stopped) <= deaths
    for number, results in ended.items():
        whole = results[:-1] if number in stopped else results
        assert [result.outcome for result in whole] == [Completed(3 * (part + 1)) for part in range(len(whole))]
        assert [result.stdout for result in whole] == [f"{part}\n" for part in range(len(whole))]
        assert len(whole) == 4 or number in stopped
