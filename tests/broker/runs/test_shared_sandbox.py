"""The sandbox of a broker: opened with it, or shared between brokers."""

from __future__ import annotations

import anyio
import pytest

from broker import Broker
from sandbox import Completed, Limits, Sandbox, SandboxClosedError

pytestmark = pytest.mark.anyio


async def result_in(broker):
    return (await broker.session().execute_code("6 * 7")).value


@pytest.mark.parametrize("isolation", ["thread", "process"])
async def test_brokers_share_a_sandbox_until_the_last_of_them_is_closed(image, isolation):
    with anyio.fail_after(60):
        async with Sandbox(cache=image.compiled.parent, isolation=isolation) as sandbox:
            async with Broker(sandbox=sandbox) as first:
                async with Broker(sandbox=sandbox) as second:
                    assert [await result_in(first), await result_in(second)] == [42, 42]
                assert await result_in(first) == 42
            assert (await sandbox.run("1")).outcome == Completed(1)


async def test_a_broker_opens_its_sandbox_each_time_that_it_is_opened_itself(image):
    sandbox = Sandbox(cache=image.compiled.parent)
    broker = Broker(sandbox=sandbox)
    for _ in range(2):
        with anyio.fail_after(60):
            async with broker:
                assert await result_in(broker) == 42
        with pytest.raises(SandboxClosedError):
            await sandbox.run("1")


async def test_brokers_that_open_at_the_same_time_share_one_sandbox(image):
    sandbox = Sandbox(cache=image.compiled.parent)
    results = []

    async def use():
        async with Broker(sandbox=sandbox) as broker:
            results.append(await result_in(broker))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(use)
    assert results == [42, 42, 42]


async def test_a_script_is_read_within_the_limits_of_its_run(image):
    script = "\n".join(["import tools", "if False:", *["    tools.one.two"] * 5_000, "42"])
    brief = Sandbox(cache=image.compiled.parent, isolation="thread", limits=Limits(cpu_seconds=0.01))
    with anyio.fail_after(60):
        async with Broker(sandbox=brief) as broker:
            session = broker.session()
            stopped = await session.execute_code(script, check="off")
            completed = await session.execute_code(script, check="off", limits=Limits())
    assert (stopped.outcome, completed.value) == ("stopped", 42)
