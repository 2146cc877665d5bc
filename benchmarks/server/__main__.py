"""`uv run python -m benchmarks.server`: ratios, measured side by side in one run. `--fastmcp PYTHON` adds a peer."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import anyio
import anyio.to_thread
from mcp import Client, StdioServerParameters

from benchmarks.server.idle_sessions import ERAS, SESSIONS, grown_bytes
from benchmarks.server.stub_server import desk
from broker import Broker, BrokerServer, Config, ExecutionResult, Grant, ServerConfig, ServeSettings, Session
from broker.store import Store
from sandbox import Sandbox

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.server import MCPServer

HERE = Path(__file__).parent
STUB_SERVER = HERE / "stub_server.py"
CALLS = 300
ROUNDS = 7
SEQUENCE = 50
RUNS, RUN_CALLS = 200, 20
ISOLATIONS: tuple[Literal["thread", "process"], ...] = ("thread", "process")
ADD = "from tools import {namespace}\nfor n in range({count}):\n    await {namespace}.add(a=n, b=1)\n"
MANY = (
    "import asyncio\nfrom tools import desk\nlen(await asyncio.gather(*(desk.add(a=n, b=1) for n in range({count}))))"
)


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@dataclass(frozen=True)
class Took:
    """What some work took: seconds by the clock, and of this process's processor time."""

    clock: float
    processor: float


@dataclass(frozen=True)
class Rounds:
    """What some work took, round by round."""

    all: list[Took]

    @property
    def median(self) -> Took:
        """What half of the rounds took less than."""
        return Took(*map(statistics.median, zip(*map(astuple, self.all), strict=True)))

    def per(self, count: int) -> str:
        """Return microseconds for each of so many."""
        took = self.median
        return f"{took.clock / count * 1e6:.0f} us ({took.processor / count * 1e6:.0f} of the processor)"

    def beside(self, other: Rounds) -> str:
        """Return how many times as long it took: the median of the rounds' ratios, as a machine's speed changes."""
        pairs = list(zip(self.all, other.all, strict=True))
        clock = statistics.median(one.clock / theirs.clock for one, theirs in pairs)
        processor = statistics.median(one.processor / theirs.processor for one, theirs in pairs)
        return f"{clock:.2f}, of the processor {processor:.2f}"

    def __str__(self) -> str:
        """Return milliseconds."""
        took = self.median
        return f"{took.clock * 1e3:.1f} ms ({took.processor * 1e3:.1f} of the processor)"


async def taken(work: Callable[[], Awaitable[object]]) -> Took:
    """Do some work; its processor time is steadier than the clock on a busy machine."""
    clock, processor = time.perf_counter(), time.process_time()
    await work()
    return Took(time.perf_counter() - clock, time.process_time() - processor)


async def in_turns(*works: Callable[[], Awaitable[object]], rounds: int = ROUNDS, pause: float = 0.0) -> list[Rounds]:
    """Return what kinds of work took, taken in turns, each once before."""
    for work in works:
        await work()
    columns = [Rounds([]) for _ in works]
    for _ in range(rounds):
        for work, column in zip(works, columns, strict=True):
            await anyio.sleep(pause)
            column.all.append(await taken(work))
    return columns


def expect_completed(result: ExecutionResult) -> None:
    """Measure nothing that failed."""
    if result.outcome != "completed":
        raise RuntimeError(result.model_dump_json())


def report(what: str, goal: str, found: str) -> None:
    """Print a row of the table."""
    print(f"| {what} | {goal} | {found} |", flush=True)


async def stub_calls() -> None:
    """Measure a stub call beside `Client.call_tool`, both to a server of this process."""
    for isolation in ISOLATIONS:
        await _stub_calls(isolation, None, "nothing written")
        with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "broker.sqlite3") as store:
            await _stub_calls(isolation, store, "recorded and audited")


async def _stub_calls(isolation: Literal["thread", "process"], store: Store | None, kept: str) -> None:
    server = desk()
    sandbox = Sandbox(isolation=isolation)
    servers: dict[str, MCPServer | list[Callable[..., object]]] = {"desk": server, "functions": [add]}
    async with Broker(servers=servers, sandbox=sandbox, store=store) as broker, Client(server) as client:
        session = broker.session(grants=[Grant("*")])
        await session.get_tool_details(["desk.add", "functions.add"])

        async def scripted(namespace: str) -> None:
            code = ADD.format(namespace=namespace, count=CALLS)
            expect_completed(await session.execute_code(code, check="off"))

        async def direct() -> None:
            for number in range(CALLS):
                await client.call_tool("add", {"a": number, "b": 1})

        ours, functions, theirs = await in_turns(partial(scripted, "desk"), partial(scripted, "functions"), direct)
    for what, one in (("server", ours), ("plain function", functions)):
        report(
            f"stub call to a {what} of this process, {isolation} isolation, {kept}",
            "1.3" if store is None else "",
            f"{one.per(CALLS)} against {theirs.per(CALLS)}: {one.beside(theirs)}",
        )


async def stdio_script() -> None:
    """Measure a script of fifty calls to a stdio server, beside the same calls made by the SDK."""
    direct_server = StdioServerParameters(command=sys.executable, args=[str(STUB_SERVER)])
    config = Config(servers={"desk": ServerConfig(command=sys.executable, args=(str(STUB_SERVER),))})
    for isolation in ISOLATIONS:
        sandbox = Sandbox(isolation=isolation)
        async with Broker(config, startup_seconds=30, sandbox=sandbox) as broker, Client(direct_server) as client:
            session = broker.session(grants=[Grant("*")])
            await session.get_tool_details(["desk.add"])
            await client.list_tools()

            async def scripted(session: Session = session) -> None:
                code = ADD.format(namespace="desk", count=SEQUENCE)
                expect_completed(await session.execute_code(code, check="off"))

            async def direct(client: Client = client) -> None:
                for number in range(SEQUENCE):
                    await client.call_tool("add", {"a": number, "b": 1})

            # The pool's work after a run is no part of either.
            ours, theirs = await in_turns(scripted, direct, rounds=3 * ROUNDS, pause=0.02)
        report(
            f"script of {SEQUENCE} sequential calls to a stdio server, {isolation} isolation",
            "1.15",
            f"{ours} against {theirs}: {ours.beside(theirs)}",
        )


async def over_mcp() -> None:
    """Measure the tool `execute_code` over MCP in memory: the scripts that fastmcp's code mode is measured with.

    The smallest one stands beside a call to a server of this process after the same pause, which tells how fast the
    machine is then.
    """
    for isolation in ISOLATIONS:
        async with Broker(servers={"desk": [add]}, sandbox=Sandbox(isolation=isolation)) as broker:
            server = BrokerServer(broker, make_session=partial(_allowed, broker))
            async with Client(server.mcp) as client, Client(desk()) as plain:
                await client.call_tool("get_tool_details", {"tools": ["desk.add"]})

                async def script(code: str, client: Client = client) -> None:
                    reply = await client.call_tool("execute_code", {"code": code})
                    if reply.is_error:
                        raise RuntimeError(reply)

                calls, sequence = [
                    partial(script, ADD.format(namespace="desk", count=count)) for count in (CALLS, SEQUENCE)
                ]
                direct = partial(plain.call_tool, "add", {"a": 1, "b": 1})
                smallest, one_call = await in_turns(partial(script, "1"), direct, rounds=40, pause=0.02)
                (following,) = await in_turns(partial(script, "1"), rounds=100)
                took, few = await in_turns(calls, sequence)
        report(
            f'`execute_code("1")` over MCP in memory, {isolation} isolation',
            "3 ms",
            f"{smallest} against {one_call}: {smallest.beside(one_call)}",
        )
        report(f"… again and again, {isolation} isolation", "3 ms", str(following))
        report(f"call to a function over MCP in memory, {isolation} isolation", "", took.per(CALLS))
        report(f"script of {SEQUENCE} such calls, {isolation} isolation", "", str(few))


def _allowed(broker: Broker, _principal: str) -> Session:
    return broker.session(grants=[Grant("*")])


async def many_runs() -> None:
    """Two hundred runs of twenty calls at the same time."""
    async with Broker(servers={"desk": desk()}) as broker:
        server = BrokerServer(broker, ServeSettings(runs_at_once=RUNS), make_session=partial(_allowed, broker))
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

            seconds = (await taken(together)).clock
    found = f"{failed} errors; {RUNS / seconds:.0f} runs and {RUNS * RUN_CALLS / seconds:.0f} calls a second"
    report(f"{RUNS} runs of {RUN_CALLS} calls at the same time", "no error", found)


async def idle_sessions() -> None:
    """Measure the memory of a thousand sessions that do nothing now: new ones and used ones, in both eras."""
    found = []
    for version, era in ERAS.items():
        for uses, what in ((False, "begun"), (True, "that described a tool and ran a script")):
            grown = await anyio.to_thread.run_sync(partial(grown_bytes, era, uses=uses))
            report(f"{SESSIONS} idle sessions of {version} over HTTP, {what}", "60 MB", f"{grown / 1e6:.1f} MB")
            found.append(grown)
    report(f"{SESSIONS} idle sessions, the worst", "60 MB", f"{max(found) / 1e6:.1f} MB")


def peer(python: str) -> None:
    """Fastmcp's code mode, in an environment of its own, with the same tool, scripts and way in as `over_mcp`.

    Its scripts run in its own process (pydantic-monty), and its calls reach the function through its server's
    middleware, without a client, a policy or a record.
    """
    finished = subprocess.run([python, str(HERE / "fastmcp_peer.py")], capture_output=True, text=True, check=False)
    if finished.returncode:
        print(finished.stderr[-2_000:], file=sys.stderr)
        return
    for what, found in json.loads(finished.stdout.splitlines()[-1]).items():
        report(f"fastmcp code mode: {what}", "", found)


async def main(only: str | None) -> None:
    """Print the table."""
    print("| what | goal | measured |\n|---|---|---|")
    for measure in (stub_calls, stdio_script, over_mcp, many_runs, idle_sessions):
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
