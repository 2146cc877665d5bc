"""pydantic-monty, measured: run by `peers` in an environment of its own; prints one JSON object.

Monty is a subset of Python in worker processes that are always warm.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import TYPE_CHECKING

import pydantic_monty  # type: ignore[import-not-found]

if TYPE_CHECKING:
    from collections.abc import Callable

REPEATS = int(sys.argv[1])
BIG = 300_000
LOOKUP = {"echo": lambda value: value, "big": lambda: "x" * BIG}


def median(repeats: int, measured: Callable[[], object]) -> float:
    """Return the median time of a call."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        measured()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


with pydantic_monty.Monty() as pool:

    def run(script: str) -> None:
        """Run a script in a session of its own."""
        with pool.checkout() as session:
            session.feed_run(script, external_lookup=LOOKUP, print_callback=pydantic_monty.CollectString())

    def timed(script: str) -> float:
        """Return the time of a script."""
        return median(REPEATS, lambda: run(script))

    run("print(1)")
    fresh = median(5 * REPEATS, lambda: run("print(1)"))
    with pool.checkout() as kept:
        kernel = median(5 * REPEATS, lambda: kept.feed_run("print(1)", print_callback=pydantic_monty.CollectString()))
    values = {
        "pooled": 1e3 * fresh,
        "kernel": 1e3 * kernel,
        "call": 1e3 * (timed("for i in range(1_000):\n    echo(i)") - fresh),
        "cpu_loop": 1e3 * (timed("total = 0\nfor i in range(3_000_000):\n    total += i") - fresh),
        "value_in": 1e3 * (timed("len(big())") - fresh),
        "value_out": 1e3 * (timed(f"'x' * {BIG}") - fresh),
        "long_script": 1e3 * (timed("\n".join(f"value_{line} = {line} + 1" for line in range(2_000))) - fresh),
    }
print(json.dumps(values))
