"""What a script, a call and a waiting script cost: `uv run python -m benchmarks.sandbox [--json FILE]`.

Times are medians, and beside each stands what it is compared with, measured in the same run: these machines are noisy,
ratios hold better than times.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from rich.console import Console
from rich.table import Table

from sandbox import Call, Limits, Returned, Sandbox

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sandbox import Completion

MANIFEST = {
    "bench": {
        "doc": "",
        "functions": {
            "echo": {
                "described": True,
                "doc": "",
                "parameters": [["value", "value", False]],
                "accepts_extra": False,
                "types": [],
            }
        },
    }
}
SEQUENTIAL = "from tools import bench\nfor i in range({n}):\n    await bench.echo(value=i)"
GATHER = "import asyncio\nfrom tools import bench\nawait asyncio.gather(*(bench.echo(value=i) for i in range({n})))"
CPU_BOUND = "total = 0\nfor i in range(3_000_000):\n    total += i\ntotal"
WAITS = "from tools import bench\nawait bench.echo(value=1)"
LIMITS = Limits(calls=10_000)


async def echo(call: Call) -> Completion:
    """Answers at once, in this process."""
    return Returned(call.arguments.get("value"))


async def median(repeats: int, measured: Callable[[], Awaitable[object]]) -> float:
    """Returns the median time of a run, in seconds."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        await measured()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


async def run(sandbox: Sandbox, script: str) -> None:
    """Runs a script that must complete."""
    result = await sandbox.run(script, answer=echo, manifest=MANIFEST, limits=LIMITS)
    if "Completed" not in repr(result.outcome):
        raise RuntimeError(result.outcome)


async def native_print() -> None:
    """Starts the Python that runs this, as a process."""
    python = shutil.which("python3", path=str(Path(sys.base_prefix, "bin"))) or sys.executable
    command = [python, "-I", "-c", "print(1)"]
    subprocess.run(command, check=True, capture_output=True)  # noqa: ASYNC221  # nothing else runs meanwhile


async def both(sandbox: Sandbox) -> None:
    """Runs two CPU-bound scripts at the same time."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, sandbox, CPU_BOUND)
        tasks.start_soon(run, sandbox, CPU_BOUND)


def private_bytes() -> int:
    """Returns the memory that this process shares with nobody, from the kernel's own count (Linux)."""
    rollup = Path("/proc/self/smaps_rollup").read_text("utf-8")
    return 1024 * sum(int(kib) for kib in re.findall(r"^Private_\w+:\s+(\d+) kB", rollup, re.MULTILINE))


async def suspended_bytes(sandbox: Sandbox, scripts: int) -> float:
    """Returns the private memory of one script that waits for a call."""
    release = anyio.Event()
    waiting = anyio.Event()
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
            tasks.start_soon(lambda: sandbox.run(WAITS, answer=wait, manifest=MANIFEST))
        await waiting.wait()
        used = private_bytes() - before
        release.set()
    return used / scripts


async def measure(repeats: int) -> list[dict[str, Any]]:
    """Takes every measurement; `goal` is the bound that the project holds itself to."""
    big = "x" * 300_000
    long_script = "\n".join(f"value_{line} = {line} + 1" for line in range(2_000))
    async with Sandbox() as sandbox:
        await run(sandbox, "1")
        fresh = await median(10 * repeats, lambda: run(sandbox, "print(1)"))
        native = await median(2 * repeats, native_print)
        sequential = (await median(repeats, lambda: run(sandbox, SEQUENTIAL.format(n=1_000))) - fresh) / 1_000
        gather = (await median(repeats, lambda: run(sandbox, GATHER.format(n=1_000))) - fresh) / 1_000
        one = await median(repeats, lambda: run(sandbox, CPU_BOUND))
        two = await median(repeats, lambda: both(sandbox))
        carried = await median(
            repeats, lambda: run(sandbox, f"from tools import bench\nawait bench.echo(value={big!r})")
        )
        long = await median(repeats, lambda: run(sandbox, long_script))
        rows: list[tuple[str, float, str, float | None, str]] = [
            ("fresh instance to the result of print(1)", fresh * 1e3, "ms", None, ""),
            ("… against python3 -I -c 'print(1)'", fresh / native, "times", 0.25, f"native {native * 1e3:.1f} ms"),
            ("sequential call of an in-process stub", sequential * 1e6, "µs", 100, ""),
            ("call in a gather of 1,000", gather * 1e6, "µs", None, ""),
            ("two CPU-bound scripts against one", two / one, "times", 1.3, f"one {one * 1e3:.0f} ms"),
            ("300 KB out and in again", (carried - fresh) * 1e3, "ms", None, ""),
            ("script of 2,000 lines", (long - fresh) * 1e3, "ms", None, "added"),
        ]
        if sys.platform == "linux":
            await suspended_bytes(sandbox, 50)  # what the process itself needs once is no script's
            suspended = await suspended_bytes(sandbox, 200)
            rows.append(("private memory of a suspended script", suspended / 1e6, "MB", 2.5, "of 200"))
    return [dict(zip(("what", "value", "unit", "goal", "note"), row, strict=True)) for row in rows]


def show(rows: list[dict[str, Any]]) -> None:
    """Prints the table."""
    table = Table("what", "measured", "goal", "note", title=f"{platform.machine()}, {os.cpu_count()} cores")
    for row in rows:
        goal = "" if row["goal"] is None else f"≤ {row['goal']:g} {row['unit']}"
        style = "red" if row["goal"] is not None and row["value"] > row["goal"] else ""
        table.add_row(row["what"], f"{row['value']:.3g} {row['unit']}", goal, row["note"], style=style)
    Console().print(table)


def main() -> None:
    """Measures, prints, and writes JSON where asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9, help="how often each script is run; the median counts")
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    options = parser.parse_args()
    rows = anyio.run(measure, options.repeats)
    show(rows)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
