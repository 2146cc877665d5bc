"""What a process holds, and whether that is again what it was: looks at this process, starts nothing.

Threads, descriptors and children are counted by kind, and each kind must be as many as before, no more and no fewer:
one that is missing could hide one that has leaked. `leaks` and `memory_leaks` only compare, so that a test can ask
them about a leak that nothing has.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import statistics
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox.spawn import BOOT

if TYPE_CHECKING:
    from collections.abc import Sequence

TOTAL_BYTES = 64 * 1024 * 1024
"""What memory may have grown by in all: caches and pools fill in the first rounds."""
STEADY_BYTES = 16 * 1024 * 1024
"""What it may grow by between the second quarter of the rounds and the last, when they are full."""
_KINDS = ("threads", "descriptors", "children")
_NUMBERS = re.compile(r"[0-9a-f]{16,}|\d+")


@dataclass(frozen=True)
class Held:
    """What the process holds.

    Attributes:
        resident_bytes: Its memory, without that of its children.
        threads: How many of each name; those of anyio's pool are bounded, and end by themselves when idle.
        descriptors: How many of each kind of file.
        children: How many of each command; a child that has ended and was not waited for is a kind of its own.
    """

    resident_bytes: int
    threads: Counter[str]
    descriptors: Counter[str]
    children: Counter[str]

    @classmethod
    def now(cls) -> Held:
        """Look at it."""
        gc.collect()
        names = (one.name for one in threading.enumerate() if not one.name.startswith("AnyIO"))
        return cls(resident_bytes(), Counter(map(_kind, names)), _descriptors(), _children())

    def leaks(self, before: Held) -> list[str]:
        """Say which kinds of threads, descriptors and children are not as many as before."""
        found = []
        for kinds in _KINDS:
            is_now, was = getattr(self, kinds), getattr(before, kinds)
            found += [
                f"{kinds}: {is_now[kind]} of {kind!r}, and {was[kind]} before"
                for kind in sorted(is_now | was)
                if is_now[kind] != was[kind]
            ]
        return found

    def __str__(self) -> str:
        """Write the totals on one line."""
        counts = ", ".join(f"{getattr(self, kinds).total()} {kinds}" for kinds in _KINDS)
        return f"{megabytes(self.resident_bytes)}, {counts}"


def memory_leaks(residents: Sequence[int]) -> list[str]:
    """Say whether memory grew too much; `residents` has it at the baseline, after each round, and at the end.

    Both bounds can fail. A leak of some bytes per round fails the one for the whole after 64 MB, and that for the
    steady part once half of the rounds have leaked 16 MB: one of 1 MB after 34 rounds, one of 60 KB after 560.
    """
    found = []
    grown = residents[-1] - residents[0]
    if grown > TOTAL_BYTES:
        found.append(f"memory: grew by {megabytes(grown)}, and may by {megabytes(TOTAL_BYTES)}")
    steady = steady_growth(residents)
    if steady > STEADY_BYTES:
        found.append(
            f"memory: grew by {megabytes(steady)} from the second quarter of {len(residents)} looks to the last, "
            f"and may by {megabytes(STEADY_BYTES)}"
        )
    return found


def steady_growth(residents: Sequence[int]) -> int:
    """Return by how much the median of the last quarter is above that of the second; 0 of too few."""
    quarter = len(residents) // 4
    if not quarter:
        return 0
    return int(statistics.median(residents[-quarter:]) - statistics.median(residents[quarter : 2 * quarter]))


def megabytes(count: int) -> str:
    """Write a number of bytes."""
    return f"{count / 1024 / 1024:.0f} MB"


def resident_bytes() -> int:
    """Return the memory of this process."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGESIZE")


def _kind(name: str) -> str:
    """Take away what is different in each of a kind: numbers and digests."""
    return _NUMBERS.sub("*", name)


def _descriptors() -> Counter[str]:
    found: Counter[str] = Counter()
    for one in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # that of this look itself
            found[_kind(Path(one.readlink()).name)] += 1
    return found


def _children() -> Counter[str]:
    """Find them by what each process says its parent is: a thread's list of children changes hands when it ends."""
    found: Counter[str] = Counter()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # of one that ended meanwhile
            name, _, rest = (process / "stat").read_text(errors="replace").rpartition(")")
            state, parent = rest.split()[:2]
            if int(parent) == os.getpid():
                ended = f"{name.partition('(')[2]}, ended and not waited for"
                found[ended if state == "Z" else _command((process / "cmdline").read_text(errors="replace"))] += 1
    return found


def _command(line: str) -> str:
    """Shorten a command line to what tells one kind of child from another."""
    arguments = line.split("\0")
    if BOOT in arguments:
        return "worker process"
    return " ".join(Path(one).name for one in arguments if one and not one.startswith("-"))
