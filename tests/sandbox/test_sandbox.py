"""The sandbox as an embedder uses it: its life, its arguments, many runs on one of it."""

from __future__ import annotations

import contextlib
import threading
from itertools import groupby

import anyio
import anyio.lowlevel
import pytest

import sandbox as package
from sandbox import Completed, ImageError, Limits, Raised, Sandbox, SandboxClosedError, SandboxError, Stopped
from sandbox import image_loading as images
from sandbox.threads import waker

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


async def test_a_sandbox_is_used_inside_its_block(image):
    closed = Sandbox(cache=image.compiled.parent)
    with pytest.raises(SandboxClosedError, match="use it inside `async with Sandbox"):
        await closed.run("1")
    async with closed:
        assert (await closed.run("1")).outcome == Completed(1)
    with pytest.raises(SandboxClosedError):
        await closed.references("1")


@pytest.mark.parametrize("isolation", ["thread", "process"])
async def test_whoever_reads_script_after_script_lets_others_have_their_turn(image, isolation):
    turns: list[int] = []

    async def count():
        while True:
            turns[-1] += 1
            await anyio.lowlevel.checkpoint()

    async with Sandbox(cache=image.compiled.parent, isolation=isolation) as sandbox, anyio.create_task_group() as tasks:
        turns.append(0)
        tasks.start_soon(count)
        for _ in range(200):
            turns.append(0)
            await sandbox.references("1")
        tasks.cancel_scope.cancel()
    longest = max(len(list(several)) for has_none, several in groupby(turns, lambda number: not number) if has_none)
    assert longest < 50


@pytest.mark.parametrize("isolation", ["thread", "process"])
async def test_a_sandbox_is_open_until_the_last_of_those_who_entered_it_leaves(image, isolation):
    sandbox = Sandbox(cache=image.compiled.parent, isolation=isolation)
    may_leave = anyio.Event()

    async def use():
        async with sandbox:
            await may_leave.wait()
            assert (await sandbox.run("1")).outcome == Completed(1)

    for _ in range(2):  # it can be opened again
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(use)
                tasks.start_soon(use)
                async with sandbox:
                    assert (await sandbox.run("1")).outcome == Completed(1)
                may_leave.set()
        with pytest.raises(SandboxClosedError):
            await sandbox.run("1")


async def test_a_sandbox_that_could_not_be_entered_can_be_entered_once_there_is_an_image(image, tmp_path):
    component = tmp_path / "guest.wasm"
    sandbox = Sandbox(component=component, cache=image.compiled.parent)
    with pytest.raises(ImageError):
        await sandbox.__aenter__()
    for file in (images.COMPONENT, images.COMPONENT.with_suffix(".json")):
        component.with_suffix(file.suffix).symlink_to(file)
    async with sandbox:
        assert (await sandbox.run("1")).outcome == Completed(1)


async def test_entering_that_is_cancelled_does_not_wait_for_the_compiler(tmp_path, monkeypatch):
    compiles, is_over = anyio.Event(), threading.Event()
    shown = []
    report = waker(compiles.set)

    def compile_(_component, _digest):
        report()
        is_over.wait()
        raise ImageError("nobody waits for it")

    @contextlib.contextmanager
    def show(_unkept):
        shown.append("begins")
        try:
            yield
        finally:
            shown.append("ends")

    monkeypatch.setattr(images, "_compile", compile_)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Sandbox(cache=tmp_path / "cache", compiling=show).__aenter__)
            await compiles.wait()
            tasks.cancel_scope.cancel()
    assert shown == ["begins", "ends"]
    is_over.set()


async def test_a_script_that_is_too_long_is_refused_before_it_runs(sandbox):
    for method in (sandbox.run, sandbox.references):
        for script in (5, None, b"1"):
            with pytest.raises(TypeError, match=r"^the script must be text, not "):
                await method(script)
        with pytest.raises(ValueError, match=r"^the script has 2097153 characters, and 2097152 are allowed$"):
            await method("#" * (2 * 1024 * 1024 + 1))


async def told(_stream, _text):
    """Nobody awaits it."""


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("seed", "1", r"^seed must be an integer from 0 to 2\*\*64 - 1$"),
        ("seed", True, r"^seed must be"),
        ("seed", 2**64, r"^seed must be"),
        ("wall_ns", 1.5, r"^wall_ns must be an integer from 0 to 2\*\*63 - 1$"),
        ("wall_ns", -1, r"^wall_ns must be"),
        ("filename", b"a.py", r"^filename must be text, not bytes$"),
        ("on_output", "print", r"^on_output must be a plain function"),
        ("on_output", told, r"^on_output must be a plain function"),
    ],
)
async def test_a_condition_that_would_fail_late_is_refused_before_the_script_runs(sandbox, name, value, said):
    kind = ValueError if name in {"seed", "wall_ns"} else TypeError
    with pytest.raises(kind, match=said):
        await sandbox.run("1", **{name: value})
    if name == "seed":
        with pytest.raises(kind, match=said):
            await sandbox.kernel(**{name: value}).__aenter__()
    elif name != "wall_ns":
        async with sandbox.kernel() as kernel:
            with pytest.raises(kind, match=said):
                await kernel.run("1", **{name: value})
            assert (await kernel.run("1")).outcome == Completed(1)


async def test_a_long_script_runs(sandbox):
    script = "\n".join(f"value_{line} = {line}" for line in range(20_000)) + "\nvalue_19999"
    with anyio.fail_after(60):
        assert (await sandbox.run(script)).outcome == Completed(19_999)


async def test_without_an_answer_every_call_is_refused(sandbox, manifest):
    outcome = (await sandbox.run("from tools import good\nawait good.echo(text='a')", manifest=manifest)).outcome
    assert isinstance(outcome, Raised)
    assert (outcome.type, outcome.message) == ("ToolRefusedError", "good.echo was refused: no tools are connected")


async def test_limits_of_a_run_go_before_those_of_the_sandbox(image):
    async with Sandbox(cache=image.compiled.parent, limits=Limits(output_bytes=5)) as sandbox:
        assert (await sandbox.run("print('x' * 9)")).outcome == Stopped("output_bytes", 5)
        assert (await sandbox.run("print('x' * 9)", limits=Limits())).stdout == "x" * 9 + "\n"


async def test_many_runs_share_nothing_and_all_end(sandbox):
    ends = []

    async def one(number: int) -> None:
        result = await sandbox.run(
            f"import builtins\nn = getattr(builtins, 'n', {number})\nbuiltins.n = n\nprint(n)\nn"
        )
        ends.append((number, result.outcome, result.stdout))

    with anyio.fail_after(120):
        async with anyio.create_task_group() as tasks:
            for number in range(40):
                tasks.start_soon(one, number)
    assert sorted(ends, key=lambda end: end[0]) == [(n, Completed(n), f"{n}\n") for n in range(40)]


async def test_a_computing_script_does_not_hold_up_the_others(sandbox):
    ends = []

    async def one(name: str, script: str, limits: Limits) -> None:
        await sandbox.run(script, limits=limits)
        ends.append(name)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one, "long", "while True: pass", Limits(wall_seconds=2))
            for _ in range(5):
                tasks.start_soon(one, "short", "1", Limits())
    assert ends == ["short"] * 5 + ["long"]


def test_the_public_names_are_the_ones_that_are_exported():
    public = {name for name, value in vars(package).items() if getattr(value, "__module__", "").startswith("sandbox.")}
    assert {name for name in public if not name.startswith("_")} <= set(package.__all__)
    assert all(hasattr(package, name) for name in package.__all__)
    assert package.__all__ == sorted(package.__all__, key=lambda name: (name[0].islower(), name))


def test_every_error_of_the_package_has_one_base():
    errors = [value for value in vars(package).values() if isinstance(value, type) and issubclass(value, Exception)]
    assert all(issubclass(error, SandboxError) for error in errors)
