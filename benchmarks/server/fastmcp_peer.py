"""fastmcp's code mode on the same tool: run by an interpreter that has `fastmcp[code-mode]`. Prints one JSON object."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time

CALLS, ROUNDS, SEQUENCE = 300, 7, 50
LOOP = "for n in range({count}):\n    await call_tool('add', {{'a': n, 'b': 1}})\nreturn 1"


async def main() -> None:
    """Measure a call, a script of fifty calls and the smallest script, over MCP in memory."""
    from fastmcp import Client, FastMCP  # type: ignore[import-not-found]  # noqa: PLC0415  # in its own environment
    from fastmcp.experimental.transforms.code_mode import CodeMode  # type: ignore[import-not-found]  # noqa: PLC0415

    def served(*, code_mode: bool) -> FastMCP:
        server = FastMCP("desk")

        @server.tool  # type: ignore[untyped-decorator]
        async def add(a: int, b: int) -> int:
            return a + b

        if code_mode:
            server.add_transform(CodeMode(max_tool_calls=None))
        return server

    async with Client(served(code_mode=True)) as client, Client(served(code_mode=False)) as plain:

        async def script(code: str) -> None:
            await client.call_tool("execute", {"code": code})

        async def direct() -> None:
            for number in range(CALLS):
                await plain.call_tool("add", {"a": number, "b": 1})

        async def median(work, *arguments) -> list[float]:  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN002  # any
            """Return seconds by the clock, and of the processor."""
            await work(*arguments)
            took = []
            for _ in range(ROUNDS):
                clock, processor = time.perf_counter(), time.process_time()
                await work(*arguments)
                took.append((time.perf_counter() - clock, time.process_time() - processor))
            return [statistics.median(column) for column in zip(*took, strict=True)]

        calls = await median(script, LOOP.format(count=CALLS))
        plainly = await median(direct)
        sequence = await median(script, LOOP.format(count=SEQUENCE))
        smallest = await median(script, "return 1")
    each, its_own = [seconds / CALLS * 1e6 for seconds in calls], [seconds / CALLS * 1e6 for seconds in plainly]
    told = {
        "call to a function over MCP in memory": f"{each[0]:.0f} us ({each[1]:.0f} of the processor); a direct call by "
        f"its own client {its_own[0]:.0f} us ({its_own[1]:.0f})",
        f"script of {SEQUENCE} such calls": f"{sequence[0] * 1e3:.1f} ms ({sequence[1] * 1e3:.1f} of the processor)",
        "smallest script": f"{smallest[0] * 1e3:.1f} ms ({smallest[1] * 1e3:.1f} of the processor)",
    }
    sys.stdout.write(json.dumps(told) + "\n")


asyncio.run(main())
