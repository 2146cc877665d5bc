"""A script whose calls wait for nothing lets others have their turn, and can be left between two of its steps."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from broker import Broker, Config, Grant, PolicyConfig
from broker.config.sandbox_settings import SandboxSettings
from sandbox import Limits, worker_line

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("deadline")]

CALLS = 3_000
SCRIPT = f"""
from tools import desk, ToolError
for number in range({CALLS}):
    try:
        await desk.add(a=number)
    except ToolError:
        pass
"""
REFUSING = PolicyConfig.model_validate({"rules": [{"tools": ["desk.*"], "effect": "deny"}]})


@pytest.mark.parametrize(("policy", "status"), [(PolicyConfig(), "ok"), (REFUSING, "refused")], ids=["ok", "refused"])
async def test_a_script_whose_calls_wait_for_nothing_lets_others_have_their_turn(policy, status, monkeypatch):
    monkeypatch.setattr(worker_line, "QUICK_SECONDS", 20)  # no step is waited for with the event loop
    settings = SandboxSettings(limits=Limits(calls=CALLS, steps=2 * CALLS))
    ended: list[str] = []
    goes_on = anyio.Event()

    def on_call(record, *_):
        ended.append(record.status)
        if len(ended) == 100:
            goes_on.set()

    async def add(a: int) -> int:
        return a

    async def leave():
        await goes_on.wait()
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
        scope.cancel()

    async with Broker(Config(policy=policy, sandbox=settings), servers={"desk": [add]}) as broker:
        session = broker.session(grants=[Grant("desk.*")])
        await session.get_tool_details(["desk.add"])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(leave)
            with anyio.CancelScope() as scope:
                await session.execute_code(SCRIPT, check="off", on_call=on_call)
        assert scope.cancelled_caught
        assert 100 <= len(ended) < CALLS
        assert set(ended[:100]) == {status}
        assert (await session.execute_code("1 + 1")).value == 2
