"""The threads that guests run on: nobody who is there already keeps them from whoever comes."""

from __future__ import annotations

import anyio
import pytest

from sandbox import Completed, Limits, Sandbox, Stopped
from sandbox.threads import AGAIN, WasmThreads

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


@pytest.fixture
def one_thread():
    threads = WasmThreads(1)
    yield threads
    threads.close()


async def test_what_has_more_to_do_lets_others_have_a_turn(one_thread):
    done: list[None] = []

    def long():
        return "long" if done else AGAIN

    results = []

    async def run(function):
        results.append(await one_thread.run(function))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, long)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(run, lambda: done.append(None))
    assert sorted(map(str, results)) == ["None", "long"]


async def test_an_error_after_a_turn_ends_the_function(one_thread):
    turns = []

    def fail():
        turns.append(1)
        if len(turns) == 2:
            raise ValueError("second")
        return AGAIN

    with anyio.fail_after(60), pytest.raises(ValueError, match="second"):
        await one_thread.run(fail)


async def test_scripts_that_compute_in_this_process_keep_no_other_from_its_deadline(image):
    ended = []

    async def run(sandbox, script, seconds):
        ended.append((await sandbox.run(script, limits=Limits(wall_seconds=seconds, cpu_seconds=60))).outcome)

    with anyio.fail_after(120):
        async with Sandbox(isolation="thread", cache=image.compiled.parent, pool=None) as sandbox:
            sandbox._threads = WasmThreads(1)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run, sandbox, "while True: pass", 50)
                await anyio.wait_all_tasks_blocked()
                await run(sandbox, "while True: pass", 1)
                await run(sandbox, "1 + 1", 30)
                tasks.cancel_scope.cancel()
    assert ended == [Stopped("wall_seconds", 1), Completed(2)]
