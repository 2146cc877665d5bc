"""`uv run python -m benchmarks.soak --minutes 20`: good and hostile scripts beside upstreams that die, for a long time.

Ends with 1 when memory, threads, file descriptors or children do not come back to what they were after the first round.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from mcp import Client
from mcp.server import MCPServer

from broker import Broker, BrokerServer, Config, Grant, ServerConfig, ServeSettings
from sandbox import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping

HOSTILE = Path(__file__).parents[1] / "tests" / "broker" / "servers" / "hostile_upstream.py"
SETTLE_SECONDS = 20.0
MEMORY_BYTES = 64 * 1024 * 1024
AT_ONCE = 6
WARM_ROUNDS = 2

SCRIPTS = {
    "sum": "sum(range(1_000))",
    "calls": "import asyncio\nfrom tools import desk\n"
    "len(await asyncio.gather(*(desk.add(a=n, b=1) for n in range(20))))",
    "raises": "1 / 0",
    "syntax": "x = (",
    "endless": "while True: pass",
    "memory": "x = 'x' * 100\nwhile True: x += x",
    "flood": "while True: print('x' * 10_000)",
    "recursion": "import json\njson.loads('[' * 500_000)",
    "crash": "f = lambda: 0\nf.__code__ = f.__code__.replace(co_code=b'\\xff' * 50)\nf()",
    "silent server": "from tools import silent\nawait silent.echo(text='x')",
    "display": "display(b'x' * 50_000, mime_type='image/png')",
}
DYING = {"dying server": "from tools import dying\nawait dying.echo(text='x')"}
OUTCOMES = {
    "sum": {"completed"},
    "calls": {"completed"},
    "raises": {"ZeroDivisionError"},
    "syntax": {"SyntaxError"},
    "endless": {"wall_seconds"},
    "memory": {"MemoryError", "wall_seconds"},
    "flood": {"output_bytes", "wall_seconds"},
    "recursion": {"stack", "wall_seconds"},
    "crash": {"SandboxTrap"},
    "silent server": {"ToolTimeoutError"},
    "display": {"completed"},
    "dying server": {"ToolOutcomeUnknown", "ToolUnavailableError"},
}
"""How each may end: completed, with an exception, or at a limit; on a busy machine at that of time."""


@dataclass(frozen=True)
class Held:
    """What the process holds."""

    resident_bytes: int
    threads: int
    descriptors: int
    children: int

    @classmethod
    def now(cls) -> Held:
        """Look at it."""
        gc.collect()
        own = Path("/proc/self")
        resident = int((own / "statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
        # Threads of anyio's pool are bounded, and end by themselves when idle.
        threads = [one for one in threading.enumerate() if not one.name.startswith("AnyIO")]
        return cls(resident, len(threads), len(list((own / "fd").iterdir())), _children())

    def leaks(self, before: Held) -> list[str]:
        """Say what is more than it was before."""
        found = []
        if self.resident_bytes - before.resident_bytes > MEMORY_BYTES:
            found.append(f"memory grew by {(self.resident_bytes - before.resident_bytes) / 1e6:.0f} MB")
        for name in ("threads", "descriptors", "children"):
            is_now, was = getattr(self, name), getattr(before, name)
            if is_now > was:
                found.append(f"{is_now} {name}, and {was} before")
        return found


def _children() -> int:
    """Count them by what each process says its parent is: a thread's list of children changes hands when it ends."""
    count = 0
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # of one that ended meanwhile
            parent = status.read_text(errors="replace").rpartition(")")[2].split()[1]
            count += int(parent) == os.getpid()
    return count


def desk() -> MCPServer:
    """Return a server of this process that behaves."""
    server = MCPServer("desk", log_level="CRITICAL")

    @server.tool()
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return server


def hostile(behaviour: str) -> ServerConfig:
    """Configure an upstream that dies, or is silent, in each call."""
    return ServerConfig(
        command=sys.executable, args=("-I", str(HOSTILE), behaviour), mode="legacy", call_timeout_seconds=0.5
    )


async def soak(seconds: float) -> list[str]:
    """Run for so long; return what did not come back to what it was."""
    config = Config(servers={"dying": hostile("call_die"), "silent": hostile("call_hang")})
    async with Broker(config, servers={"desk": desk()}) as broker:
        server = BrokerServer(
            broker,
            ServeSettings(runs_at_once=AT_ONCE),
            make_session=lambda _principal: broker.session(grants=[Grant("*")]),
            limits=Limits(wall_seconds=2, memory_bytes=96 * 1024 * 1024),
        )
        async with Client(server.mcp) as client:
            names = ["desk.add", "dying.echo", "silent.echo"]
            await client.call_tool("get_tool_details", {"tools": names})
            for _ in range(WARM_ROUNDS):
                await _round(client, SCRIPTS | DYING)
            await _settled(broker)
            before = Held.now()
            end = time.monotonic() + seconds
            rounds: list[int] = []
            async with anyio.create_task_group() as tasks:
                # The calls of a server that dies wait, ever longer, until it is back: the other scripts do not.
                for scripts in (SCRIPTS, DYING):
                    tasks.start_soon(_rounds, client, scripts, end, rounds)
            with anyio.move_on_after(SETTLE_SECONDS):
                await _settled(broker)
                while Held.now().leaks(before):  # noqa: ASYNC110  # the kernel has no event for it
                    await anyio.sleep(0.5)
            after = Held.now()
    print(f"{sum(rounds)} scripts; before {before}, after {after}", flush=True)
    return after.leaks(before)


async def _rounds(client: Client, scripts: Mapping[str, str], end: float, counts: list[int]) -> None:
    """Run these scripts again and again until a time; add how many that were to `counts`."""
    while time.monotonic() < end:
        await _round(client, scripts)
        counts.append(len(scripts) + 1)


async def _round(client: Client, scripts: Mapping[str, str]) -> None:
    """Run every script once, several at a time, each to an outcome that it may have; then a good one.

    Raises:
        RuntimeError: One ended in another way.
    """

    async def run(name: str, code: str) -> None:
        result = (await client.call_tool("execute_code", {"code": code})).structured_content or {}
        ended = _ended(result)
        if ended not in OUTCOMES[name]:
            raise RuntimeError(f"{name} ended with {ended}: {result}")

    async with anyio.create_task_group() as tasks:
        for name, code in scripts.items():
            tasks.start_soon(run, name, code)
    result = await client.call_tool("execute_code", {"code": SCRIPTS["calls"]})
    if result.structured_content["value"] != 20:  # noqa: PLR2004  # its calls
        raise RuntimeError(f"a good script failed: {result}")


def _ended(result: dict[str, Any]) -> str:
    """Return how a run ended, in one word of `OUTCOMES`."""
    if result.get("error"):
        return str(result["error"]["type"])
    return str(result["stopped"]["limit"] if result.get("stopped") else result.get("outcome"))


async def _settled(broker: Broker) -> None:
    """Wait until every server is connected."""
    with anyio.fail_after(90):
        while any(one.state != "ready" for one in broker.server_statuses()):  # noqa: ASYNC110  # none to the outside
            await anyio.sleep(0.1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    leaks = anyio.run(soak, parser.parse_args().minutes * 60)
    print("\n".join(leaks) or "all came back to what it was")
    sys.exit(bool(leaks))
