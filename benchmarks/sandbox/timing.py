"""Medians of what is repeated, and the kernel's own count of private memory."""

from __future__ import annotations

import re
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

PAUSE_SECONDS = 0.03
"""Between two scripts from the pool: what the pool is for comes now and then."""


async def median_seconds(repeats: int, measured: Callable[[], Awaitable[object]], *, pause: float = 0) -> float:
    """Return the median time that awaiting takes, with a pause before each time."""
    times = []
    for _ in range(repeats):
        if pause:
            await anyio.sleep(pause)
        began = time.perf_counter()
        await measured()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def private_bytes() -> int:
    """Return the memory that this process and its children share with nobody (Linux)."""
    children = Path("/proc/self/task").glob("*/children")
    processes = ["self", *(pid for path in children for pid in path.read_text("ascii").split())]
    return sum(_private_bytes(process) for process in processes)


def _private_bytes(process: str) -> int:
    try:
        rollup = Path(f"/proc/{process}/smaps_rollup").read_text("utf-8")
    except OSError:
        return 0  # ended meanwhile
    return 1024 * sum(int(kib) for kib in re.findall(r"^Private_\w+:\s+(\d+) kB", rollup, re.MULTILINE))
