"""`uv run python -m benchmarks.server`: ratios, measured side by side in one run. `--fastmcp PYTHON` adds a peer."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import anyio
from mcp import Client, StdioServerParameters
from mcp.server import MCPServer

from broker import Broker, BrokerServer, Config, ExecutionResult, Grant, ServerConfig, ServeSettings
from broker.store import Store
from sandbox import Sandbox

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

HERE = Path(__file__).parent
STUB_SERVER = HERE / "stub_server.py"
CALLS = 300
ROUNDS = 7
SEQUENCE = 50
RUNS, RUN_CALLS = 200, 20
SESSIONS = 1_000
ISOLATIONS: tuple[Literal["thread", "process"], ...] = ("thread", "process")
ADD = "from tools import desk\nfor n in range({count}):\n    await desk.add(a=n, b=1)\n"
MANY = (
    "import asyncio\nfrom tools import desk\nlen(await asyncio.gather(*(desk.add(a=n, b=1) for n in range({count}))))"
)


def desk() -> MCPServer:
    """Return a server of this process with one trivial tool."""
    server = MCPServer("desk", log_level="CRITICAL")

    @server.tool()
    async def add(a: int, b: int) -> int:
        """Adds two numbers."""
        return a + b

    return server


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    """Return how long some work takes, in seconds."""
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


async def computed(work: Callable[[], Awaitable[object]]) -> float:
    """Return how much of this process's processor time some work takes, in seconds: steadier on a busy machine."""
    began = time.process_time()
    await work()
    return time.process_time() - began


async def side_by_side(first: Callable[[], Awaitable[object]], second: Callable[[], Awaitable[object]]) -> list[float]:
    """Return the medians of two kinds of work, taken in turns."""
    await first()
    await second()
    pairs = [(await timed(first), await timed(second)) for _ in range(ROUNDS)]
    return [statistics.median(column) for column in zip(*pairs, strict=True)]


def expect_completed(result: ExecutionResult) -> None:
    """Measure nothing that failed."""
    if result.outcome != "completed":
        raise RuntimeError(result.model_dump_json())


def report(what: str, goal: str, found: str) -> None:
    """Print a row of the table."""
    print(f"| {what} | {goal} | {found} |", flush=True)


async def stub_calls() -> None:
    """A stub call beside `Client.call_tool`, both to a server of this process."""
    for isolation in ISOLATIONS:
        await _stub_calls(isolation, None, "nothing written")
        with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "broker.sqlite3") as store:
            await _stub_calls(isolation, store, "recorded and audited")


async def _stub_calls(isolation: Literal["thread", "process"], store: Store | None, kept: str) -> None:
    server = desk()
    sandbox = Sandbox(isolation=isolation)
    async with Broker(servers={"desk": server}, sandbox=sandbox, store=store) as broker, Client(server) as client:
        session = broker.session(grants=[Grant("*")])
        await session.get_tool_details(["desk.add"])

        async def scripted() -> None:
            result = await session.execute_code(ADD.format(count=CALLS), check="off")
            expect_completed(result)

        async def direct() -> None:
            for number in range(CALLS):
                await client.call_tool("add", {"a": number, "b": 1})

        ours, theirs = await side_by_side(scripted, direct)
        processor = await computed(scripted) / await computed(direct)
    per_call = f"{ours / CALLS * 1e6:.0f} us against {theirs / CALLS * 1e6:.0f} us: {ours / theirs:.2f}"
    per_call += f"; processor time of this process {processor:.2f}"
    report(f"stub call to a server of this process, {isolation} isolation, {kept}", "1.3", per_call)


async def stdio_script() -> None:
    """A script of fifty calls to a stdio server, beside the same calls made by the SDK."""
    direct_server = StdioServerParameters(command=sys.executable, args=[str(STUB_SERVER)])
    config = Config(servers={"desk": ServerConfig(command=sys.executable, args=(str(STUB_SERVER),))})
    async with Broker(config, startup_seconds=30) as broker, Client(direct_server) as client:
        session = broker.session(grants=[Grant("*")])
        await session.get_tool_details(["desk.add"])
        await client.list_tools()

        async def scripted() -> None:
            result = await session.execute_code(ADD.format(count=SEQUENCE), check="off")
            expect_completed(result)

        async def direct() -> None:
            for number in range(SEQUENCE):
                await client.call_tool("add", {"a": number, "b": 1})

        ours, theirs = await side_by_side(scripted, direct)
    found = f"{ours * 1e3:.0f} ms against {theirs * 1e3:.0f} ms: {ours / theirs:.2f}"
    report(f"script of {SEQUENCE} sequential calls to a stdio server", "1.15", found)


async def one_expression() -> None:
    """`execute_code("1")` over MCP in memory."""
    for isolation in ISOLATIONS:
        sandbox = Sandbox(isolation=isolation)
        async with Broker(sandbox=sandbox) as broker, Client(BrokerServer(broker).mcp) as client:

            async def once(client: Any = client) -> None:
                await client.call_tool("execute_code", {"code": "1"})

            await once()
            await anyio.sleep(0.5)
            took = []
            for _ in range(40):
                took.append(await timed(once))
                await anyio.sleep(0.02)
        report(
            f'`execute_code("1")` over MCP in memory, {isolation} isolation',
            "3 ms",
            f"{statistics.median(took) * 1e3:.1f} ms",
        )


async def many_runs() -> None:
    """Two hundred runs of twenty calls at the same time."""
    async with Broker(servers={"desk": desk()}) as broker:
        server = BrokerServer(
            broker,
            ServeSettings(runs_at_once=RUNS),
            make_session=lambda _principal: broker.session(grants=[Grant("*")]),
        )
        async with Client(server.mcp) as client:
            await client.call_tool("get_tool_details", {"tools": ["desk.add"]})
            failed = 0

            async def one() -> None:
                nonlocal failed
                code = MANY.format(count=RUN_CALLS)
                reply = await client.call_tool("execute_code", {"code": code, "timeout": 120})
                failed += reply.structured_content["value"] != RUN_CALLS

            async def together() -> None:
                async with anyio.create_task_group() as tasks:
                    for _ in range(RUNS):
                        tasks.start_soon(one)

            took = await timed(together)
    found = f"{failed} errors; {RUNS / took:.0f} runs and {RUNS * RUN_CALLS / took:.0f} calls a second"
    report(f"{RUNS} runs of {RUN_CALLS} calls at the same time", "no error", found)


async def idle_sessions() -> None:
    """The memory of a thousand sessions that have run something and do nothing now."""
    async with Broker(servers={"desk": desk()}) as broker, Client(BrokerServer(broker).mcp) as client:
        await client.call_tool("execute_code", {"code": "1", "session": "new"})
        before = resident_bytes()
        for _ in range(SESSIONS):
            await client.call_tool("search_tools", {"query": "add", "session": "new"})
        grown = resident_bytes() - before
    report(f"{SESSIONS} idle sessions", "60 MB", f"{grown / 1e6:.1f} MB")


def resident_bytes() -> int:
    """Return the memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4_096


def peer(python: str) -> None:
    """Fastmcp's code mode, in an environment of its own, with the same tool and scripts."""
    finished = subprocess.run([python, str(HERE / "fastmcp_peer.py")], capture_output=True, text=True, check=False)
    if finished.returncode:
        print(finished.stderr[-2_000:], file=sys.stderr)
        return
    for what, found in json.loads(finished.stdout.splitlines()[-1]).items():
        report(f"fastmcp code mode: {what}", "", found)


async def main(only: str | None) -> None:
    """Print the table."""
    print("| what | goal | measured |\n|---|---|---|")
    for measure in (stub_calls, stdio_script, one_expression, many_runs, idle_sessions):
        if only in {None, measure.__name__}:
            await measure()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fastmcp", metavar="PYTHON", help="an interpreter with fastmcp[code-mode] installed")
    parser.add_argument("--only", help="one measurement by its name, such as stub_calls")
    given = parser.parse_args()
    anyio.run(main, given.only)
    if given.fastmcp:
        peer(given.fastmcp)
