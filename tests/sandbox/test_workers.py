"""Runs in worker processes: the same results as in this one, and nothing lost or repeated when a worker dies."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import textwrap
from dataclasses import replace
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from sandbox import (
    Completed,
    ImageError,
    Limits,
    Pool,
    Raised,
    Reference,
    Returned,
    Sandbox,
    SandboxClosedError,
    Stopped,
    WorkerError,
    frames,
    spawn,
    worker_line,
    worker_process,
    workers,
)
from sandbox.compiled import CompiledFile, CompiledImage
from sandbox.compiled_cache import proofs_folder
from sandbox.image_loading import compiled_path
from sandbox.limits import MIB
from sandbox.worker_process import WorkerProcess
from tests.processes import resident_bytes

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


@pytest.fixture
async def in_process(image):
    async with Sandbox(isolation="process", cache=image.compiled.parent) as sandbox:
        with anyio.fail_after(120):
            yield sandbox


@pytest.fixture(scope="module")
async def both(image):
    """One of each isolation."""
    folder = image.compiled.parent
    async with Sandbox(isolation="thread", cache=folder) as here, Sandbox(isolation="process", cache=folder) as there:
        yield here, there


def processes(sandbox):
    return sandbox._workers.processes


def home_of(sandbox, number=0):
    """The process that has runs; with several, one of them."""
    return [worker for worker in processes(sandbox) if worker.seats][number]


def kill(worker):
    with contextlib.suppress(ProcessLookupError):
        os.kill(worker.pid, signal.SIGKILL)


async def echo(call):
    await anyio.lowlevel.checkpoint()
    return Returned(call.arguments["text"])


ENDLESS, LONG = "while True: pass", "10 ** 10 ** 8"
SCRIPTS = {
    "a value": "print('out'); {'a': [1, 2.5, None, 'é']}",
    "an exception": "print('before')\n1 / 0",
    "a syntax error": "x = = 1",
    "random numbers": "import random, uuid, os\n[random.random(), str(uuid.uuid4()), os.urandom(4).hex(), hash('a')]",
    "calls": "import asyncio\nfrom tools import good\nawait asyncio.gather(*[good.echo(text=i) for i in range(20)])",
    "both outputs": "import sys\nprint('a'); print('b', file=sys.stderr); print('c')",
    "printed without end": "while True: print('x' * 100)",
    "a value too large": "'x' * 200_000",
    "a value too deep": "x = []\nfor _ in range(100): x = [x]\nx",
    "too many calls": "from tools import good\nfor i in range(200): await good.echo(text='')",
    "a message too long": "from tools import good\nawait good.echo(text='x' * 200_000)",
    "a loop": ENDLESS,
    "a bytecode that takes long": LONG,
    "recursion in C": "x = []\nfor _ in range(100_000): x = [x]\nrepr(x)",
    "surrogates": "print('\\ud800'); '\\ud800'",
    "an exit": "import sys\nsys.exit(3)",
}
LIMITS = Limits(wall_seconds=20, cpu_seconds=1, value_bytes=100_000, argument_bytes=100_000, calls=100)


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=list(SCRIPTS))
async def test_a_script_ends_the_same_in_both_isolations(script, both, manifest):
    limits = replace(LIMITS, cpu_seconds=0.2) if script in {ENDLESS, LONG} else LIMITS
    options = {"manifest": manifest, "answer": echo, "limits": limits, "seed": 7}
    with anyio.fail_after(120):
        here, there = [await sandbox.run(script, **options) for sandbox in both]
    assert (there.outcome, there.stdout, there.stderr) == (here.outcome, here.stdout, here.stderr)
    assert (there.usage.calls, there.usage.steps) == (here.usage.calls, here.usage.steps)
    assert there.usage.output_bytes == here.usage.output_bytes


async def test_what_a_script_has_used_is_known_though_its_deadline_ended_it(in_process):
    result = await in_process.run("while True: pass", limits=Limits(wall_seconds=0.5))
    assert result.outcome == Stopped("wall_seconds", 0.5)
    assert result.usage.cpu_seconds > 0


async def test_references_are_found_in_a_worker(in_process):
    assert await in_process.references("from tools import git\ngit.git_log()") == (Reference("git", "git_log", 2),)
    assert isinstance(await in_process.references("x = = 1"), Raised)


async def test_a_run_that_outlives_its_sandbox_starts_no_worker(image, manifest):
    left, asked = anyio.Event(), anyio.Event()

    async def answer(_call):
        asked.set()
        await left.wait()
        return Returned("")

    async def run() -> None:
        with pytest.raises(SandboxClosedError, match="was closed while a script ran"):
            await sandbox.run("from tools import good\nawait good.echo(text='')", manifest=manifest, answer=answer)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            async with Sandbox(cache=image.compiled.parent) as sandbox:
                tasks.start_soon(run)
                await asked.wait()
                started = sandbox._workers
            left.set()
    assert started is not None
    assert not started.processes


async def test_an_isolation_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match='isolation must be "process" or "thread", not \'vm\''):
        Sandbox(isolation="vm")  # type: ignore[arg-type]


async def test_a_number_is_no_pool_and_a_dict_is_no_limits(in_process):
    with pytest.raises(TypeError, match=r"the pool is a Pool, as Pool\(size=4\), or None, not 4"):
        Sandbox(pool=4)  # type: ignore[arg-type]
    limits: Any = {"wall_seconds": 5}
    with pytest.raises(TypeError, match=r"limits are a sandbox.Limits, as Limits\(wall_seconds=5\), not a dict"):
        Sandbox(limits=limits)
    with pytest.raises(TypeError, match="not a dict"):
        await in_process.run("1", limits=limits)
    async with in_process.kernel() as kernel:
        with pytest.raises(TypeError, match="not a dict"):
            await kernel.run("1", limits=limits)
        assert (await kernel.run("1")).outcome == Completed(1)


async def test_workers_are_started_when_there_are_runs_for_them_and_share_these(in_process, manifest):
    assert len(processes(in_process)) == 1
    arrived, release = 0, anyio.Event()

    async def answer(_call):
        nonlocal arrived
        arrived += 1
        await release.wait()
        return Returned(None)

    async with anyio.create_task_group() as tasks:
        for number in range(2 * workers._cores()):
            tasks.start_soon(_run, in_process, manifest, answer)
            while arrived <= number:
                await anyio.lowlevel.checkpoint()
            for worker in processes(in_process):
                await worker.ready()
        spread = [len(worker.seats) for worker in processes(in_process)]
        release.set()
    assert len(spread) == workers._cores()
    assert sum(spread) == 2 * workers._cores()
    assert max(spread) - min(spread) <= 1


async def test_where_there_are_no_processes_the_error_names_the_other_isolation(image, monkeypatch):
    monkeypatch.setattr(workers, "_WITHOUT_PROCESSES", (sys.platform,))
    with pytest.raises(WorkerError, match=r'no worker processes on .*: use Sandbox\(isolation="thread"\)'):
        async with Sandbox(cache=image.compiled.parent):
            pass


async def _run(sandbox, manifest, answer):
    script = "from tools import good\nawait good.echo(text=1)"
    result = await sandbox.run(script, manifest=manifest, answer=answer)
    assert result.outcome == Completed(None)


async def test_a_run_that_waits_while_its_worker_dies_goes_on_in_another(in_process, manifest):
    called, printed = [], []

    async def answer(call):
        called.append(call.arguments["text"])
        if len(called) in (2, 3):
            kill(home_of(in_process))
        return Returned(call.arguments["text"])

    script = """
        import random, time
        from tools import good
        kept = [random.random(), time.time_ns()]
        for i in range(4):
            print("before", i)
            kept.append(await good.echo(text=i))
        [*kept, random.random()]
    """
    result = await in_process.run(
        textwrap.dedent(script),
        manifest=manifest,
        answer=answer,
        seed=3,
        on_output=lambda _stream, text: printed.append(text),
    )
    assert isinstance(result.outcome, Completed), result
    assert result.outcome.value[2:6] == [0, 1, 2, 3]
    assert called == [0, 1, 2, 3]
    assert result.stdout == "".join(printed) == "".join(f"before {i}\n" for i in range(4))
    again = await in_process.run("import random\n[random.random(), random.random()]", seed=3)
    assert again.outcome == Completed([result.outcome.value[0], result.outcome.value[6]])


async def test_a_run_that_is_brought_to_where_it_was_lets_others_have_their_turn(in_process, manifest, monkeypatch):
    monkeypatch.setattr(worker_line, "QUICK_SECONDS", 20)  # no answer is waited for with the event loop
    numbers = iter(range(1, 1_001))
    seen: set[float | None] = set()
    lost, there = anyio.Event(), anyio.Event()

    async def answer(_call):
        number = next(numbers)
        if number == 999:
            kill(home_of(in_process))
            lost.set()
            await anyio.lowlevel.checkpoint()
        if number == 1_000:
            there.set()
        return Returned("")

    async def look():
        await lost.wait()
        while not there.is_set():
            seen.update(seat.step_seconds for worker in processes(in_process) for seat in worker.seats.values())
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(look)
        script = "from tools import good\nfor i in range(1_000): await good.echo(text='')"
        result = await in_process.run(script, manifest=manifest, answer=answer)
    assert result.outcome == Completed(None)
    assert len(seen) > 5


async def test_only_the_run_that_computes_ends_with_its_worker(in_process, manifest, monkeypatch):
    monkeypatch.setattr(in_process._workers, "_count", 1)
    loops, waits = anyio.Event(), anyio.Event()
    results = {}

    async def answer(call):
        waits.set()
        await loops.wait()
        return Returned(call.arguments["text"])

    async def run(name, script):
        results[name] = await in_process.run(
            script, manifest=manifest, answer=answer, on_output=lambda _stream, _text: loops.set()
        )

    for worker in processes(in_process)[1:]:
        worker.kill()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, "neighbour", "from tools import good\nawait good.echo(text='kept')")
        await waits.wait()
        tasks.start_soon(run, "culprit", "print('on', flush=True)\nwhile True: pass")
        await loops.wait()
        kill(home_of(in_process))
    assert results["culprit"].outcome == Stopped("worker", 1)
    assert results["culprit"].stdout == "on\n"
    assert results["neighbour"].outcome == Completed("kept")


async def test_a_worker_that_hangs_is_killed_at_the_deadline_and_its_neighbour_goes_on(in_process, manifest):
    for worker in processes(in_process)[1:]:
        worker.kill()
    in_process._workers._count = 1
    waits, hung = anyio.Event(), anyio.Event()
    results = {}

    async def answer(call):
        if call.arguments["text"] == "hang":
            os.kill(home_of(in_process).pid, signal.SIGSTOP)
            hung.set()
        waits.set()
        await hung.wait()
        return Returned(call.arguments["text"])

    async def run(name, seconds):
        script = f"from tools import good\nawait good.echo(text={name!r})"
        limits = Limits(wall_seconds=seconds)
        results[name] = await in_process.run(script, manifest=manifest, answer=answer, limits=limits)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, "wait", 60)
        await waits.wait()
        tasks.start_soon(run, "hang", 0.5)
    assert results["hang"].outcome == Stopped("wall_seconds", 0.5)
    assert results["wait"].outcome == Completed("wait")


@pytest.mark.parametrize("seed", range(3))
async def test_under_load_workers_die_at_any_moment_and_nothing_is_lost_or_called_twice(in_process, manifest, seed):
    draw = random.Random(seed)  # noqa: S311
    fatal = set(draw.sample(range(120), 4))
    called: list[tuple[int, int]] = []
    deaths = 0
    results = {}

    async def answer(call):
        nonlocal deaths
        due = sum(number <= len(called) for number in fatal)
        if deaths < due and (alive := processes(in_process)):  # after a death there may be none for a moment
            deaths += 1
            kill(draw.choice(alive))
        called.append(tuple(call.arguments["text"]))
        for _ in range(draw.randrange(3)):
            await anyio.lowlevel.checkpoint()
        return Returned(call.arguments["text"][1])

    async def run(number):
        script = f"""
            import asyncio
            from tools import good
            total = 0
            for i in range(0, 10, 2):
                total += sum(await asyncio.gather(good.echo(text=[{number}, i]), good.echo(text=[{number}, i + 1])))
                print(i)
                sum(range(20_000))
            total
        """
        results[number] = await in_process.run(textwrap.dedent(script), manifest=manifest, answer=answer)

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(run, number)
    stopped = [number for number, result in results.items() if result.outcome == Stopped("worker", 1)]
    assert deaths == 4
    assert len(stopped) <= deaths
    assert len(called) == len(set(called))
    for number, result in results.items():
        if number not in stopped:
            assert result.outcome == Completed(45), (number, result)
            assert result.stdout == "0\n2\n4\n6\n8\n"
            assert sorted(made for made in called if made[0] == number) == [(number, i) for i in range(10)]


async def test_a_worker_ends_after_its_number_of_runs_and_is_reaped(in_process, monkeypatch):
    monkeypatch.setattr(workers, "RUNS_A_WORKER", 2)
    first = {worker.pid for worker in processes(in_process)}
    for _ in range(2 * len(first) + 1):
        assert (await in_process.run("1")).outcome == Completed(1)
    assert not first & {worker.pid for worker in processes(in_process)}
    for pid in first:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_a_worker_whose_memory_grew_ends_with_its_last_run(in_process, monkeypatch):
    monkeypatch.setattr(workers, "IDLE_GROWTH_BYTES", -64 * MIB)
    before = {worker.pid for worker in processes(in_process)}
    await in_process.run("1")
    assert len(before - {worker.pid for worker in processes(in_process)}) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of another process is read as Linux tells it")
async def test_a_worker_does_not_end_for_the_instances_that_its_pool_has_made(image, monkeypatch):
    monkeypatch.setattr(workers, "IDLE_GROWTH_BYTES", 32 * MIB)
    monkeypatch.setattr(workers, "_cores", lambda: 1)
    async with Sandbox(cache=image.compiled.parent, isolation="process", pool=Pool(size=12)) as sandbox:
        [worker] = processes(sandbox)
        before = resident_bytes(worker.pid)
        await sandbox.run("1")
        with anyio.fail_after(60):
            while resident_bytes(worker.pid) < before + 64 * MIB:
                await anyio.lowlevel.checkpoint()
        assert (await sandbox.run("1")).outcome == Completed(1)
        assert processes(sandbox) == (worker,)


async def test_a_compiled_image_that_another_process_replaced_is_found_by_the_next_worker(image, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    proofs_folder().mkdir(parents=True)
    place = CompiledImage(compiled_path(image.digest, tmp_path), proofs_folder())
    code = image.compiled.read_bytes()
    place.write(code)
    async with Sandbox(isolation="process", cache=tmp_path) as sandbox:
        place.remove()
        place.write(code)
        for worker in processes(sandbox):
            worker.kill()
        with anyio.fail_after(60):
            assert (await sandbox.run("1")).outcome == Completed(1)


async def test_a_compiled_image_that_is_replaced_while_the_first_worker_starts_is_found(image, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    proofs_folder().mkdir(parents=True)
    place = CompiledImage(compiled_path(image.digest, tmp_path), proofs_folder())
    code = image.compiled.read_bytes()
    place.write(code)
    started: list[CompiledFile] = []

    def start(compiled, pool):
        if not started:
            place.remove()
            place.write(code)
        started.append(compiled)
        return WorkerProcess(compiled, pool)

    monkeypatch.setattr(workers, "WorkerProcess", start)
    async with Sandbox(isolation="process", cache=tmp_path) as sandbox:
        assert (await sandbox.run("1")).outcome == Completed(1)
    assert len({compiled.identity for compiled in started}) == 2


async def test_an_emptied_cache_holds_up_no_run_that_has_a_worker(image, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    proofs_folder().mkdir(parents=True)
    place = CompiledImage(compiled_path(image.digest, tmp_path), proofs_folder())
    place.write(image.compiled.read_bytes())
    asked = []

    def compiling(_unkept):
        asked.append("again")
        raise ImageError("not in a test")

    async with Sandbox(isolation="process", cache=tmp_path, compiling=compiling) as sandbox:
        compiled_path(image.digest, tmp_path).unlink()
        assert (await sandbox.run("1")).outcome == Completed(1)
        assert asked == []
        for worker in processes(sandbox):
            worker.kill()
        with pytest.raises(ImageError, match="not in a test"):
            await sandbox.run("1")
        place.write(image.compiled.read_bytes())
        assert (await sandbox.run("1")).outcome == Completed(1)


async def test_runs_that_are_told_much_and_print_much_do_not_wait_for_each_other(image, manifest, monkeypatch):
    monkeypatch.setattr(workers, "_cores", lambda: 1)
    script = "from tools import good\nheard = await good.echo(text='')\nprint('x' * 900_000)\nlen(heard)"
    asked = []
    all_asked = anyio.Event()
    outcomes = []

    async def answer(call):
        asked.append(call)
        if len(asked) == 2:
            all_asked.set()
        await all_asked.wait()
        return Returned("x" * 6_000_000)

    async def run(sandbox):
        options = {"answer": answer, "manifest": manifest, "limits": Limits(wall_seconds=20)}
        outcomes.append((await sandbox.run(script, **options)).outcome)

    with anyio.fail_after(60):
        async with (
            Sandbox(isolation="process", cache=image.compiled.parent) as sandbox,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(run, sandbox)
            tasks.start_soon(run, sandbox)
    assert outcomes == [Completed(6_000_000)] * 2


async def test_leaving_the_sandbox_ends_its_workers(image):
    async with Sandbox(isolation="process", cache=image.compiled.parent) as sandbox:
        pids = [worker.pid for worker in processes(sandbox)]
    assert pids
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_a_cancelled_sandbox_ends_its_workers(image):
    with anyio.CancelScope() as scope:
        async with Sandbox(isolation="process", cache=image.compiled.parent) as sandbox:
            pids = [worker.pid for worker in processes(sandbox)]
            scope.cancel()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_a_cancelled_run_leaves_its_worker_to_the_others(in_process):
    before = {worker.pid for worker in processes(in_process)}
    began = anyio.Event()
    async with anyio.create_task_group() as tasks:
        loop = "print('on')\nwhile True: pass"
        tasks.start_soon(lambda: in_process.run(loop, on_output=lambda _stream, _text: began.set()))
        await began.wait()
        tasks.cancel_scope.cancel()
    assert {worker.pid for worker in processes(in_process)} == before
    assert all(not worker.seats for worker in processes(in_process))
    assert (await in_process.run("1")).outcome == Completed(1)


TAKEN_OVER = """
import struct
from sandbox import frames
def serve(self):
    while True:
        data = self._connection.recv(65536)
        if not data:
            return
        self._connection.sendall(ANSWER)
worker._Worker.serve = serve
"""
READING = "struct.pack('>dQ', 0.0, 0)"
HOSTILE = {
    "no frame": "b'\\\\xff' * 100",
    "an endless frame": "struct.pack('>IBI', 2**32 - 1, 19, 1)",
    "another run": "struct.pack('>IBI', 0, 19, 2)",
    "a second greeting": "struct.pack('>IBI', 2, 16, 0) + b'{}'",
    "a frame of ours": "struct.pack('>IBI', 0, 1, 1)",
    "printed text beyond the limit": "frames.encode_frame(17, 1, b'x' * 2**20) * 2",
    "printed nothing": "frames.encode_frame(17, 1)",
}
WRONG_ANSWERS = {
    "too short": ("frames.encode_frame(19, 1, b'')", "a frame is too short"),
    "no UTF-8": (f"frames.encode_frame(19, 1, {READING} + b'\\xff')", "a frame's text is not UTF-8"),
    "no JSON": (f"frames.encode_frame(19, 1, {READING} + b'x')", "the guest sent something that is not JSON"),
    "no limit": (f"frames.encode_frame(20, 1, {READING} + b'x')", "the worker sent a limit that there is not"),
    "endless time": (
        "frames.encode_frame(19, 1, struct.pack('>dQ', float('inf'), 0))",
        "a frame's processor time is not a number of seconds",
    ),
}


@pytest.fixture
async def taken_over(image, monkeypatch):
    @contextlib.asynccontextmanager
    async def taken_over(answer):
        attack = TAKEN_OVER.replace("ANSWER", answer.replace("\\\\", "\\"))
        monkeypatch.setattr(spawn, "BOOT", spawn.BOOT.replace("worker.main(", f"{attack}worker.main("))
        async with Sandbox(isolation="process", cache=image.compiled.parent) as sandbox:
            with anyio.fail_after(60):
                yield sandbox

    return taken_over


@pytest.mark.parametrize("answer", HOSTILE.values(), ids=list(HOSTILE))
async def test_a_worker_that_speaks_out_of_turn_is_killed(answer, taken_over):
    async with taken_over(answer) as sandbox:
        result = await sandbox.run("1", limits=Limits(wall_seconds=20))
    assert result.outcome == Stopped("worker", 1)


@pytest.mark.parametrize(("answer", "message"), WRONG_ANSWERS.values(), ids=list(WRONG_ANSWERS))
async def test_a_worker_that_answers_nonsense_ends_the_run_it_answers_for(answer, message, taken_over):
    async with taken_over(answer) as sandbox:
        result = await sandbox.run("1", limits=Limits(wall_seconds=20))
    assert result.outcome == Raised("ProtocolError", message, f"ProtocolError: {message}\n")


MARKED = """
import os
from sandbox import frames
def marked(kind, number, reading):
    text = reading.text.replace("{", '{"mark":"' + MARK + '",', 1)
    return frames.encode_reading(kind, number, reading._replace(text=text))
worker.encode_reading = marked
"""
MARKS = {
    "alike": ("'x'", Completed(None)),
    "alike and long": ("'x' * 400", Completed(None)),
    "other": ("str(os.getpid())", Stopped("worker", 1)),
    "other and long": ("str(os.getpid()) * 100", Stopped("worker", 1)),
}


@pytest.mark.parametrize(("mark", "outcome"), MARKS.values(), ids=list(MARKS))
async def test_a_run_goes_on_only_in_a_worker_that_answers_as_the_lost_one_did(
    mark, outcome, image, manifest, monkeypatch
):
    marked = MARKED.replace("MARK", mark)
    monkeypatch.setattr(spawn, "BOOT", spawn.BOOT.replace("worker.main(", f"{marked}worker.main("))
    async with Sandbox(isolation="process", cache=image.compiled.parent) as sandbox:

        async def answer(_call):
            kill(home_of(sandbox))
            return Returned(None)

        with anyio.fail_after(60):
            script = "from tools import good\nawait good.echo(text=1)\nNone"
            result = await sandbox.run(script, manifest=manifest, answer=answer)
    assert result.outcome == outcome


async def test_a_worker_imports_no_event_loop(image, monkeypatch):
    look = "assert {'anyio', 'asyncio', 'ssl'}.isdisjoint(sys.modules)\n"
    monkeypatch.setattr(spawn, "BOOT", spawn.BOOT.replace("worker.main(", f"{look}worker.main("))
    async with Sandbox(isolation="process", cache=image.compiled.parent) as sandbox:
        assert (await sandbox.run("1")).outcome == Completed(1)


TWO_AT_ONCE = """
from sandbox import frames
def serve(self):
    reading = frames.Reading(0.0, 0, "x")
    answer = lambda *runs: self._connection.sendall(
        b"".join(frames.encode_reading(frames.Kind.ANSWER, run, reading) for run in runs)
    )
    reader = frames.FrameReader(lambda _kind, _run: 2**20)
    while data := self._connection.recv(65536):
        for frame in reader.feed(data):
            match frame.kind, frame.run:
                case frames.Kind.ENTER, 3:
                    answer(1)
                case frames.Kind.ENTER, 4:
                    answer(4, 2)
                case frames.Kind.CLOSE, 2:
                    answer(3)
worker._Worker.serve = serve
"""


async def test_a_step_that_is_answered_before_its_turn_to_listen_passes_the_turn_on(image, monkeypatch):
    monkeypatch.setattr(spawn, "BOOT", spawn.BOOT.replace("worker.main(", f"{TWO_AT_ONCE}worker.main("))
    monkeypatch.setattr(worker_line, "QUICK_SECONDS", 10)
    worker = worker_process.WorkerProcess(image.file)
    await worker.ready()
    seats = {number: worker.open(lambda *_: None) for number in (1, 2, 3, 4)}
    answered = []

    async def step(*numbers):
        for number in numbers:
            seats[number].take_on(Limits())
            seats[number].step_seconds = 0.0 if number == 4 else 60.0
            frame = frames.encode_entering(number, frames.Entering("start", "", 30, 0))
            await worker.step(seats[number], frame, 30)
            answered.append(number)
            if number == 2:
                worker.close_seat(seats[number])

    try:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                for numbers in ((1, 4), (2,), (3,)):
                    tasks.start_soon(step, *numbers)
                    await anyio.wait_all_tasks_blocked()
    finally:
        worker.kill()
    assert sorted(answered) == [1, 2, 3, 4]
