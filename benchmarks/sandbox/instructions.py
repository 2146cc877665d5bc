"""How many WebAssembly instructions the guest takes for what: `uv run python -m benchmarks.sandbox.instructions`.

The counts are the same on every machine and however busy it is, so they show what a change of the guest is worth. They
are wasmtime's fuel: a unit for each instruction. The host's part, caches and page faults are not in them.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import wasmtime
from rich.console import Console
from rich.table import Table

import sandbox.engine
from benchmarks.sandbox.ours import LONG, MANIFEST
from sandbox import Call, Completed, Limits, Returned, Sandbox

if TYPE_CHECKING:
    from sandbox.kernel import Kernel

FUEL = 2**62
FEW, MANY = 100, 1_100
LIMITS = Limits(calls=10_000, wall_seconds=600, cpu_seconds=600)
CALLS = "from tools import bench\nfor i in range({}):\n    await bench.echo(value=i)"
GATHER = "import asyncio\nfrom tools import bench\nawait asyncio.gather(*(bench.echo(value=i) for i in range({})))"

_configuration = sandbox.engine.configuration


class _Fuelled(wasmtime.Store):
    """A Store whose instructions are counted; the last one made is the kernel's."""

    last: _Fuelled

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.set_fuel(FUEL)
        _Fuelled.last = self


def _counting() -> wasmtime.Config:
    config = _configuration()
    config.consume_fuel = True
    return config


async def measure() -> dict[str, float]:
    """Return the instructions of each row."""
    sandbox.engine.configuration = _counting
    wasmtime.Store = _Fuelled  # type: ignore[misc, assignment]  # each instance makes one
    # Not the user's cache: code that counts is other code.
    with tempfile.TemporaryDirectory() as cache:
        async with (
            Sandbox(isolation="thread", pool=None, cache=Path(cache), limits=LIMITS) as counted,
            counted.kernel(seed=1) as kernel,
        ):
            warmed = FUEL - _Fuelled.last.get_fuel()
            first = await _cost(kernel, "print(1)")
            small = await _cost(kernel, "print(1)")
            return {
                "warm an instance": warmed,
                "print(1), first in it": first,
                "print(1), then": small,
                "sequential call": await _each(kernel, CALLS),
                "call in a gather": await _each(kernel, GATHER),
                "script of 2,000 lines adds": await _cost(kernel, LONG) - small,
                "text of 300 KB adds": await _cost(kernel, "'x' * 300_000") - small,
            }


async def _each(kernel: Kernel, script: str) -> float:
    few, many = await _cost(kernel, script.format(FEW)), await _cost(kernel, script.format(MANY))
    return (many - few) / (MANY - FEW)


async def _cost(kernel: Kernel, script: str) -> int:
    before = _Fuelled.last.get_fuel()
    result = await kernel.run(script, manifest=MANIFEST, answer=_answer)
    assert isinstance(result.outcome, Completed), result  # noqa: S101  # a benchmark of what works
    return before - _Fuelled.last.get_fuel()


async def _answer(call: Call) -> Returned:
    return Returned(call.arguments["value"])


def main() -> None:
    """Count and print."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    table = Table("what", "thousand instructions")
    for what, count in anyio.run(measure).items():
        table.add_row(what, f"{count / 1e3:,.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
