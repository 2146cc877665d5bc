"""Instances kept ready: used once, and in no way different from new ones."""

from __future__ import annotations

import gc
import math
import threading
import time
import weakref

import anyio
import anyio.lowlevel
import pytest
import wasmtime
from wasmtime import component as wasm

from sandbox import Completed, ImageError, Limits, Pool, Raised, Returned, Sandbox
from sandbox import pool as pool_module
from sandbox.engine import engine
from sandbox.image import Image
from sandbox.instance import Instance
from sandbox.limits import MIB
from sandbox.pool import MAX_UNFREED_SECONDS, Spares
from sandbox.thread_isolate import ThreadIsolate
from sandbox.ticker import Ticker

pytestmark = pytest.mark.anyio

HOUR = 3600

# What depends on the clock is told in the first step: the time of later ones is real.
EVERYTHING = """
import asyncio, datetime, gc, os, random, sys, tempfile, time, uuid
from tools import good
print(random.random(), os.urandom(200).hex(), uuid.uuid4(), next(tempfile._get_candidate_names()))
print(time.time(), time.monotonic(), time.process_time(), datetime.datetime.now())
print(hash("text"), {"b", "a", "c"}, object(), [object() for _ in range(50)][-1], {object() for _ in "abcd"})
print(gc.get_count(), gc.get_stats(), sorted(sys.modules), len(gc.get_objects()))
class Named:
    pass
async def one(n):
    print(n, await good.echo(text=n), asyncio.current_task(), Named())
await asyncio.gather(*[one(n) for n in range(5)])
print(len(bytearray(os.urandom(100_000))), random.random(), object())
print(await good.echo(text="last"), [id(object()) for _ in range(3)])
1 / 0
"""


@pytest.fixture
def make_spares(image):
    made = []

    def make(pool):
        made.append(Spares(image, pool))
        return made[-1]

    yield make
    for spares in made:
        spares.close()


def spares_of(sandbox) -> Spares:
    spares = sandbox._spares
    assert isinstance(spares, Spares)
    return spares


def is_freed(instance):
    try:
        instance.store.ptr()
    except ValueError:
        return True
    return False


async def echo(call):
    return Returned(call.arguments["text"])


async def until(spares, size):
    with anyio.fail_after(60):
        while len(spares) != size:
            await anyio.lowlevel.checkpoint()


async def until_freed(spares):
    with anyio.fail_after(60):
        while spares._used:
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("isolation", ["thread", "process"])
async def test_a_run_on_a_spare_is_the_same_byte_for_byte_as_on_a_new_instance(image, manifest, isolation):
    told = set()
    for pool in (None, Pool(size=1), Pool(size=3)):
        async with Sandbox(cache=image.compiled.parent, isolation=isolation, pool=pool) as sandbox:
            for _ in range(3):
                result = await sandbox.run(EVERYTHING, manifest=manifest, answer=echo, seed=7, wall_ns=10**18)
                assert isinstance(result.outcome, Raised)
                assert result.outcome.type == "ZeroDivisionError", result
                told.add((result.outcome, result.stdout, result.stderr, result.usage.steps))
    assert len(told) == 1


async def test_spares_are_made_ahead_and_replaced_when_taken(image):
    async with Sandbox(cache=image.compiled.parent, isolation="thread", pool=Pool(size=2)) as sandbox:
        spares = spares_of(sandbox)
        assert (await sandbox.run("1")).outcome == Completed(1)
        await until(spares, 2)
        ready = set(spares._ready)
        assert (await sandbox.run("1")).outcome == Completed(1)
        assert (await sandbox.run("1")).outcome == Completed(1)
        await until(spares, 2)
        assert not ready & set(spares._ready)


@pytest.mark.parametrize("is_freed_at_once", [False, True])
async def test_spares_are_replaced_when_their_runs_have_ended_and_at_once_when_none_is_left(
    make_spares, monkeypatch, is_freed_at_once
):
    monkeypatch.setattr(pool_module, "QUIET_SECONDS", HOUR)
    spares = make_spares(Pool(size=2))
    spares.free(spares.take())
    await until(spares, 2)
    answers, due = [], spares._due

    def noted():
        answers.append(due())
        return answers[-1]

    monkeypatch.setattr(spares, "_due", noted)
    taken = [spares.take()]
    with anyio.fail_after(60):
        while not answers:
            await anyio.lowlevel.checkpoint()
    assert answers[0] > time.monotonic() + HOUR / 2
    assert len(spares) == 1
    taken.append(spares.take())
    await until(spares, 1)
    for instance in taken:
        instance.computed_seconds = 1.01 * MAX_UNFREED_SECONDS if is_freed_at_once else 0
        spares.free(instance)
        assert is_freed(instance) or not is_freed_at_once
    await until(spares, 2)


async def test_one_instance_is_made_at_a_time_and_one_that_is_being_made_is_waited_for(image, monkeypatch):
    being_made, at_once, makers = [], [], []

    class Noted(Instance):
        def __init__(self, image):
            being_made.append(self)
            at_once.append(len(being_made))
            makers.append(threading.current_thread().name)
            super().__init__(image)
            being_made.remove(self)

    monkeypatch.setattr(pool_module, "Instance", Noted)
    async with Sandbox(cache=image.compiled.parent, isolation="thread", pool=Pool(size=2)) as sandbox:
        with anyio.fail_after(60):
            while makers.count("wasm-pool") < 20:
                assert (await sandbox.run("1")).outcome == Completed(1)
    assert set(at_once) == {1}


async def test_who_waits_for_an_instance_that_cannot_be_made_makes_one(make_spares, monkeypatch):
    making, may_fail = threading.Event(), threading.Event()

    def fail_on_the_thread(image):
        if threading.current_thread().name == "wasm-pool":
            making.set()
            assert may_fail.wait(60)
            raise MemoryError
        return Instance(image)

    monkeypatch.setattr(pool_module, "Instance", fail_on_the_thread)
    spares = make_spares(Pool(size=2))
    spares.free(spares.take())
    assert making.wait(60)
    wait_for = spares._change.wait_for

    def noted(is_over):
        may_fail.set()
        return wait_for(is_over)

    monkeypatch.setattr(spares._change, "wait_for", noted)
    spares.free(spares.take())
    assert may_fail.is_set()


@pytest.mark.parametrize("is_full", [True, False])
async def test_what_a_run_has_filled_is_given_back_though_another_goes_on(image, monkeypatch, is_full):
    spares = Spares(image, Pool(size=2), most_unfreed_seconds=math.inf)  # as of a worker
    first = spares.take()
    await until(spares, 2)
    spares.free(first)
    await until_freed(spares)
    monkeypatch.setattr(pool_module, "QUIET_SECONDS", 1)
    began, used, goes_on = time.monotonic(), spares.take(), spares.take()
    spares.put(Instance(image))
    used.computed_seconds = 0.1 if is_full else 0.001
    spares.free(used)
    await until_freed(spares)
    assert (time.monotonic() - began < 0.9) == is_full
    spares.free(goes_on)
    spares.close()


async def test_a_run_that_goes_on_for_long_keeps_no_spares_from_being_made(make_spares):
    spares = make_spares(Pool(size=3))
    spares.take()
    await until(spares, 3)


async def test_a_spare_is_given_away_once(make_spares):
    spares = make_spares(Pool(size=4))
    spares.take()
    await until(spares, 4)
    taken = [spares.take() for _ in range(4)]
    assert len(spares) == 0
    assert len(set(taken)) == 4
    for instance in taken:
        instance.close()


async def test_there_are_never_more_than_the_pool_may_hold(make_spares, image):
    spares = make_spares(Pool(size=1))
    spares.take()
    await until(spares, 1)
    for _ in range(3):
        spares.put(Instance(image))
    assert len(spares) == 1


async def test_what_one_run_may_use_is_decided_when_it_takes_a_spare(image):
    script = "try:\n    size = len(bytearray(100 << 20))\nexcept MemoryError:\n    size = 0\nsize"
    async with Sandbox(cache=image.compiled.parent, isolation="thread") as sandbox:
        for memory_bytes, size in ((64 * MIB, 0), (512 * MIB, 100 * MIB)):
            spares_of(sandbox).take()
            await until(spares_of(sandbox), Pool().size)
            result = await sandbox.run(script, limits=Limits(memory_bytes=memory_bytes))
            assert result.outcome == Completed(size)


async def test_spares_are_given_up_when_nobody_comes_and_made_again_for_who_does(make_spares):
    spares = make_spares(Pool(size=2, idle_seconds=0.05))
    spares.take()
    await until(spares, 2)
    await until(spares, 0)
    spares.take()
    await until(spares, 2)


async def expect_to_go_on(spares, used):
    """Show that the thread of a pool whose instances cannot be made still frees the one that is used."""
    assert spares._in_use == 0
    with anyio.fail_after(60):
        while spares._is_wanted:
            await anyio.lowlevel.checkpoint()
        spares.free(used)
        while not is_freed(used):
            await anyio.lowlevel.checkpoint()
    spares.close()


async def test_the_thread_of_a_pool_that_can_make_no_instance_goes_on(image):
    component = wasm.Component(engine(), wasmtime.wat2wasm("(component)"))
    linker = wasm.Linker(engine())
    spares = Spares(Image("", component, linker, image.file), Pool(size=1))
    with pytest.raises(ImageError):
        spares.take()
    await expect_to_go_on(spares, Instance(image))


async def test_the_thread_of_a_pool_goes_on_where_the_system_gives_no_other(image, monkeypatch):
    def start(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    used = Instance(image)
    spares = Spares(image, Pool(size=1))
    monkeypatch.setattr("sandbox.instance.TICKER", Ticker(engine().increment_epoch))
    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(RuntimeError, match="new thread"):
        spares.take()
    await expect_to_go_on(spares, used)


async def test_leaving_the_sandbox_ends_the_thread_that_makes_spares(image):
    async with Sandbox(cache=image.compiled.parent, isolation="thread", pool=Pool(size=2)) as sandbox:
        await sandbox.run("1")
        filler = next(thread for thread in threading.enumerate() if thread.name == "wasm-pool")
    filler.join(30)
    assert not filler.is_alive()
    assert sandbox._spares is None


async def test_a_closed_sandbox_gives_its_image_up_though_an_isolate_is_held(image):
    async with Sandbox(cache=image.compiled.parent, isolation="thread") as sandbox:
        loaded = weakref.ref(sandbox._loaded())
        isolate = sandbox._isolate()
        isolate.close()
    with anyio.fail_after(60):
        while loaded() is not None:
            gc.collect()
            await anyio.lowlevel.checkpoint()
    assert isolate.is_reusable


async def test_without_a_pool_nothing_is_kept(make_spares, image):
    spares = make_spares(None)
    instance = Instance(image)
    spares.put(instance)
    assert is_freed(instance)
    assert not is_freed(spares.take())
    assert len(spares) == 0


async def test_without_a_pool_what_was_used_is_freed_at_once_and_no_thread_waits_to_do_it(make_spares, image):
    before = threading.enumerate()
    spares = make_spares(None)
    used = Instance(image)
    spares.free(used)
    assert is_freed(used)
    assert set(threading.enumerate()) <= set(before)


async def test_instances_are_freed_beside_the_runs_that_come_unless_too_much_waits_for_that(make_spares, image):
    spares = make_spares(Pool(size=1))
    too_large, large, one_more, small = [Instance(image) for _ in range(4)]
    too_large.computed_seconds = 1.01 * MAX_UNFREED_SECONDS
    large.computed_seconds = 0.98 * MAX_UNFREED_SECONDS
    one_more.computed_seconds = 0.03 * MAX_UNFREED_SECONDS
    small.computed_seconds = 0.01 * MAX_UNFREED_SECONDS
    with spares._change:  # which its thread waits for
        for instance in (too_large, large, one_more, small):
            spares.free(instance)
        assert [is_freed(instance) for instance in (too_large, large, one_more, small)] == [True, False, True, False]
    with anyio.fail_after(60):
        while spares._used:
            await anyio.lowlevel.checkpoint()
    assert is_freed(large)
    assert is_freed(small)
    assert spares._unfreed_seconds == pytest.approx(0)


async def test_what_an_instance_holds_is_estimated_by_all_that_it_has_computed(image):
    async with Sandbox(cache=image.compiled.parent, isolation="thread") as sandbox, sandbox.kernel() as kernel:
        assert isinstance(kernel._isolate, ThreadIsolate)
        instance = kernel._isolate._instance
        assert instance.computed_seconds == 0
        used = [(await kernel.run("sum(range(1000))")).usage.cpu_seconds for _ in range(3)]
        assert instance.computed_seconds == pytest.approx(sum(used))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 0}, "size must be an integer of at least 1, not 0: pool=None means no pool"),
        ({"size": True}, "size must be an integer of at least 1, not True"),
        ({"size": 1.5}, "size must be an integer of at least 1, not 1.5"),
        ({"idle_seconds": 0}, "idle_seconds must be a positive and finite number, not 0"),
        ({"idle_seconds": float("inf")}, "idle_seconds must be a positive and finite number, not inf"),
        ({"idle_seconds": float("nan")}, "idle_seconds must be a positive and finite number, not nan"),
        ({"idle_seconds": "1"}, "idle_seconds must be a positive and finite number, not '1'"),
    ],
)
def test_a_bad_setting_is_named(settings, message):
    with pytest.raises(ValueError, match=message):
        Pool(**settings)
