"""Every row, in one isolation."""

from __future__ import annotations

import statistics
import sys
from functools import partial
from typing import TYPE_CHECKING, Literal

import anyio

from benchmarks.sandbox.timing import PAUSE_SECONDS, median_seconds, private_bytes
from sandbox import Call, Completed, Limits, Pool, Returned, Sandbox

if TYPE_CHECKING:
    from sandbox import Completion

BIG = 300_000
BURSTS = 5
FILL_SECONDS = 0.3
"""Before scripts that come back to back: until then the pool has an instance for each."""

ECHO = {"described": True, "doc": "", "parameters": [["value", "value", False]], "accepts_extra": False, "types": []}
MANIFEST = {"bench": {"doc": "", "functions": {"echo": ECHO, "big": ECHO}}}
SEQUENTIAL = "from tools import bench\nfor i in range(1_000):\n    await bench.echo(value=i)"
GATHER = "import asyncio\nfrom tools import bench\nawait asyncio.gather(*(bench.echo(value=i) for i in range(1_000)))"
CPU_LOOP = "total = 0\nfor i in range(3_000_000):\n    total += i\ntotal"
VALUE_IN = "from tools import bench\nlen(await bench.big())"
LONG = "\n".join(f"value_{line} = {line} + 1" for line in range(2_000))
WAITS = "from tools import bench\nawait bench.echo(value=1)"
LIMITS = Limits(calls=10_000, wall_seconds=300, cpu_seconds=300)


async def measure(isolation: Literal["thread", "process"], repeats: int, suspended: int) -> dict[str, float]:
    """Return every row's value, in its unit."""
    values: dict[str, float] = {}
    async with Sandbox(isolation=isolation) as sandbox:
        await _run(sandbox, "print(1)")
        values["pooled"] = 1e3 * await median_seconds(
            5 * repeats, partial(_run, sandbox, "print(1)"), pause=PAUSE_SECONDS
        )
    async with Sandbox(isolation=isolation, pool=Pool(size=repeats + 1)) as sandbox:
        await _run(sandbox, "print(1)")
        values["pooled_at_once"] = 1e3 * statistics.median([await _burst(sandbox, repeats) for _ in range(BURSTS)])
    async with Sandbox(isolation=isolation, pool=None) as sandbox:
        await _run(sandbox, CPU_LOOP)
        fresh = await median_seconds(5 * repeats, partial(_run, sandbox, "print(1)"))
        timed = partial(_timed, sandbox, repeats)
        one = await timed(CPU_LOOP)
        values |= {
            "fresh": 1e3 * fresh,
            "call": 1e3 * (await timed(SEQUENTIAL) - fresh),
            "gathered": 1e3 * (await timed(GATHER) - fresh),
            "cpu_loop": 1e3 * one,
            "two_over_one": await median_seconds(repeats, partial(_two, sandbox)) / one,
            "value_in": 1e3 * (await timed(VALUE_IN) - fresh),
            "value_out": 1e3 * (await timed(f"'x' * {BIG}") - fresh),
            "long_script": 1e3 * (await timed(LONG) - fresh),
        }
        if sys.platform == "linux":
            await _suspended_bytes(sandbox, 20)  # what the process itself needs once is no script's
            values["suspended"] = await _suspended_bytes(sandbox, suspended) * 1_000 / suspended / 1e9
        async with sandbox.kernel() as kernel:
            await kernel.run("print(1)")
            values["kernel"] = 1e3 * await median_seconds(5 * repeats, partial(kernel.run, "print(1)"))
    return values


async def _answer(call: Call) -> Completion:
    return Returned("x" * BIG if call.function == "bench.big" else call.arguments.get("value"))


async def _run(sandbox: Sandbox, script: str) -> None:
    result = await sandbox.run(script, answer=_answer, manifest=MANIFEST, limits=LIMITS)
    if not isinstance(result.outcome, Completed):
        raise RuntimeError(result.outcome)  # noqa: TRY004  # the script's doing


async def _burst(sandbox: Sandbox, repeats: int) -> float:
    """Return the median time of small scripts that come one after the other, the first left out."""
    await anyio.sleep(FILL_SECONDS)
    await _run(sandbox, "print(1)")
    return await median_seconds(repeats, partial(_run, sandbox, "print(1)"))


async def _timed(sandbox: Sandbox, repeats: int, script: str) -> float:
    return await median_seconds(repeats, partial(_run, sandbox, script))


async def _two(sandbox: Sandbox) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_run, sandbox, CPU_LOOP)
        tasks.start_soon(_run, sandbox, CPU_LOOP)


async def _suspended_bytes(sandbox: Sandbox, scripts: int) -> int:
    """Return the private memory of scripts that wait for a call."""
    release, waiting = anyio.Event(), anyio.Event()
    arrived = 0

    async def wait(_call: Call) -> Completion:
        nonlocal arrived
        arrived += 1
        if arrived == scripts:
            waiting.set()
        await release.wait()
        return Returned(None)

    before = private_bytes()
    async with anyio.create_task_group() as tasks:
        for _ in range(scripts):
            tasks.start_soon(partial(sandbox.run, WAITS, answer=wait, manifest=MANIFEST, limits=LIMITS))
        await waiting.wait()
        used = private_bytes() - before
        release.set()
    return used
