"""pyeryx, measured: run by `peers` in an environment of its own; prints one JSON object."""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

import eryx  # type: ignore[import-not-found]

if TYPE_CHECKING:
    from collections.abc import Callable

REPEATS = int(sys.argv[1])
BIG = 300_000


def median(repeats: int, measured: Callable[[], object], pause: float = 0) -> float:
    """Return the median time of a call."""
    times = []
    for _ in range(repeats):
        time.sleep(pause)
        began = time.perf_counter()
        measured()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def pooled(pool: Any) -> None:
    """Run a script on an instance from the pool."""
    with pool.acquire() as sandbox:
        sandbox.execute("print(1)")


echo = {"name": "echo", "fn": lambda value: value, "description": ""}
big = {"name": "big", "fn": lambda: "x" * BIG, "description": ""}


def timed(script: str) -> float:
    """Return the time of a script on a sandbox of its own."""
    return median(REPEATS, lambda: eryx.Sandbox(callbacks=[echo, big]).execute(script))


session = eryx.Session()
session.execute("print(1)")
pool = eryx.SandboxFactory().create_pool(max_size=2, min_idle=2)
pooled(pool)
fresh = median(5 * REPEATS, lambda: eryx.Sandbox(callbacks=[echo, big]).execute("print(1)"))
values = {
    "pooled": 1e3 * median(5 * REPEATS, lambda: pooled(pool), pause=0.03),
    "fresh": 1e3 * fresh,
    "kernel": 1e3 * median(5 * REPEATS, lambda: session.execute("print(1)")),
    "call": 1e3 * (timed("for i in range(1_000):\n    await echo(value=i)") - fresh),
    "gathered": 1e3 * (timed("import asyncio\nawait asyncio.gather(*(echo(value=i) for i in range(1_000)))") - fresh),
    "cpu_loop": 1e3 * (timed("total = 0\nfor i in range(3_000_000):\n    total += i") - fresh),
    "value_in": 1e3 * (timed("len(await big())") - fresh),
    "value_out": 1e3 * (timed(f"result = 'x' * {BIG}") - fresh),
    "long_script": 1e3 * (timed("\n".join(f"value_{line} = {line} + 1" for line in range(2_000))) - fresh),
}
print(json.dumps(values))
