"""What a script, a call and a waiting script cost: `uv run python -m benchmarks.sandbox [--json FILE]`.

Times are medians. Each row is measured in both isolations, and beside it other sandboxes and a bare `python3` in the
same run: machines are noisy, ratios hold better than times. `--frames` feeds the parent of workers so many hostile
frames.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
from rich.console import Console
from rich.table import Table

from benchmarks.sandbox.fuzz_frames import fuzz
from benchmarks.sandbox.ours import measure
from benchmarks.sandbox.peers import PEERS, measure_native, measure_peer
from benchmarks.sandbox.rows import ROWS, Row

COLUMNS = ("thread", "process", "python3", *PEERS)


def measure_all(repeats: int, suspended: int, peers_python: str | None) -> dict[str, dict[str, float] | str]:
    """Return the rows of every column, or why a column has none."""
    found: dict[str, dict[str, float] | str] = {
        "thread": anyio.run(measure, "thread", repeats, suspended),
        "process": anyio.run(measure, "process", repeats, suspended),
        "python3": measure_native(repeats),
    }
    for name in PEERS if peers_python else ():
        found[name] = measure_peer(name, repeats, peers_python or "")
    return found


def table_of(found: dict[str, dict[str, float] | str]) -> Table:
    """Return the table; what misses its goal is red."""
    table = Table("what", *COLUMNS, "goal", title=f"{platform.machine()}, {os.cpu_count()} cores")
    for row in ROWS:
        cells = [_cell(row, column, found.get(column, {})) for column in COLUMNS]
        goals = [f"{goal:g}" for goal in (row.thread_goal, row.process_goal) if goal is not None]
        table.add_row(f"{row.what}, {row.unit}", *cells, " / ".join(dict.fromkeys(goals)))
    return table


def _cell(row: Row, column: str, values: dict[str, float] | str) -> str:
    if isinstance(values, str) or row.key not in values:
        return ""
    value = values[row.key]
    goal = {"thread": row.thread_goal, "process": row.process_goal}.get(column)
    shown = f"{value:.3g}"
    return f"[red]{shown}[/red]" if goal is not None and value > goal else shown


def machine() -> dict[str, Any]:
    """Return what the figures hold for."""
    return {
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "wasmtime": version("wasmtime"),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def main() -> None:
    """Measures, prints, and writes JSON where asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9, help="how often each script is run; the median counts")
    parser.add_argument("--suspended", type=int, default=1_000, help="how many scripts wait at the same time")
    parser.add_argument("--no-peers", action="store_true", help="leave out the other sandboxes, which uv installs")
    parser.add_argument("--peers-python", default="3.12", help="Python that the other sandboxes run in, as uv takes it")
    parser.add_argument("--frames", type=int, default=0, help="hostile frames to feed, for example 1000000")
    parser.add_argument("--seed", type=int, default=1, help="where the frames come from")
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    options = parser.parse_args()
    found = measure_all(options.repeats, options.suspended, None if options.no_peers else options.peers_python)
    console = Console()
    console.print(table_of(found))
    for name, why in found.items():
        if isinstance(why, str):
            console.print(f"{name}: {why}", markup=False)
    fuzzed = fuzz(options.frames, options.seed) if options.frames else None
    if fuzzed:
        console.print(", ".join(f"{name} {value:g}" for name, value in fuzzed.items()))
    if options.json:
        document = {"on": machine(), "rows": [row._asdict() for row in ROWS], "measured": found, "fuzzed": fuzzed}
        options.json.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
