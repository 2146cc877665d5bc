"""`uv run python -m benchmarks.soak --minutes 20`: good and hostile scripts beside servers that die, for a long time.

Ends with 1 when a script ends in a way that it may not, when memory grows beyond its bounds (`held.memory_leaks`), when
threads, descriptors or children are not exactly those from before, once all servers are ready again, or when a child
outlives the broker. The figures are those of this process: the broker itself replaces workers that have grown.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from mcp import Client

from benchmarks.server.stub_server import desk
from benchmarks.soak.held import Held, megabytes, memory_leaks, resident_bytes, steady_growth
from benchmarks.soak.scripts import DYING, ENDS, GOOD, SCRIPTS
from broker import Broker, BrokerServer, Config, Grant, KeptOutputs, ServerConfig, ServeSettings
from broker.surface.outputs import MAX_CHARACTERS
from broker.upstreams.back_off import LONGEST_DELAY_SECONDS
from sandbox import Limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HOSTILE = Path(__file__).parents[2] / "tests" / "broker" / "servers" / "hostile_upstream.py"
SETTLE_SECONDS = 30.0
"""How long what is left may take to end, once all servers are ready."""
PROGRESS_SECONDS = 15.0
AT_ONCE = 6
WARM_ROUNDS = 2
OUTPUTS = 64


class SoakError(Exception):
    """A script ended in a way that it may not, or a server did not come back."""


@dataclass
class Tally:
    """What has happened so far.

    Attributes:
        residents: Memory at the baseline, then after each round.
        ends: How often each script has ended in each way.
        rounds: Those begun, which also make each script a new text: findings of the type checker are kept.
    """

    residents: list[int] = field(default_factory=list)
    ends: dict[str, Counter[str]] = field(default_factory=dict)
    rounds: int = 0

    @property
    def scripts(self) -> int:
        """How many have ended."""
        return sum(each.total() for each in self.ends.values())


class Soak:
    """A client, the broker that it calls, and what came of it."""

    def __init__(self, broker: Broker, client: Client) -> None:
        """Begin with nothing counted."""
        self._broker = broker
        self._client = client
        self.tally = Tally()

    async def warm(self) -> Held:
        """Fill what fills in the first rounds; return what the process then holds."""
        names = ["desk.add", "dying.echo", "silent.echo"]
        await self._client.call_tool("get_tool_details", {"tools": names})
        for _ in range(WARM_ROUNDS):
            await self._round(SCRIPTS | DYING)
        await self._ready()
        await self._fill()
        self.tally = Tally(rounds=self.tally.rounds)
        held = Held.now()
        self.tally.residents.append(held.resident_bytes)
        return held

    async def run(self, seconds: float) -> None:
        """Run rounds of all scripts for so long."""
        began = time.monotonic()
        async with anyio.create_task_group() as tasks:
            # The calls of a server that dies wait, ever longer, until it is back: the other scripts do not.
            tasks.start_soon(self._rounds, DYING, began + seconds)
            tasks.start_soon(self._measured_rounds, began, began + seconds)

    async def settle(self, before: Held) -> Held:
        """Wait until all servers are ready, then for what is left to end; return what the process holds."""
        await self._ready()
        end = time.monotonic() + SETTLE_SECONDS
        while True:
            await self._fill()
            held = Held.now()
            if not held.leaks(before) or time.monotonic() > end:
                self.tally.residents.append(held.resident_bytes)
                return held
            await anyio.sleep(0.5)

    async def _measured_rounds(self, began: float, end: float) -> None:
        told = began
        while time.monotonic() < end:
            await self._round(SCRIPTS)
            self.tally.residents.append(resident_bytes())
            now = time.monotonic()
            if now - told >= PROGRESS_SECONDS:
                told = now
                rounds, memory = len(self.tally.residents) - 1, megabytes(self.tally.residents[-1])
                _tell(f"{_clock(now - began)}  {rounds} rounds, {self.tally.scripts} scripts, memory {memory}")

    async def _rounds(self, scripts: Mapping[str, str], end: float) -> None:
        while time.monotonic() < end:
            await self._round(scripts)

    async def _round(self, scripts: Mapping[str, str]) -> None:
        """Run every script once, several at a time; then a good one."""
        self.tally.rounds += 1
        number = str(self.tally.rounds)
        async with anyio.create_task_group() as tasks:
            for name, code in scripts.items():
                tasks.start_soon(self._script, name, code, number)
        await self._script(GOOD, SCRIPTS[GOOD], f"{number}, after the others")

    async def _fill(self) -> None:
        """Run good scripts at once, so that workers and type checkers that have ended are started again."""
        self.tally.rounds += 1
        async with anyio.create_task_group() as tasks:
            for number in range(AT_ONCE):
                tasks.start_soon(self._script, GOOD, SCRIPTS[GOOD], f"{self.tally.rounds}.{number}")

    async def _script(self, name: str, code: str, number: str) -> None:
        """Run one and count how it ended.

        Raises:
            SoakError: In a way that it may not.
        """
        arguments = {"code": f"# {number}\n{code}"}
        result = (await self._client.call_tool("execute_code", arguments)).structured_content or {}
        end = _end(result)
        if end not in ENDS[name] or (name == GOOD and result["value"] != 20):  # noqa: PLR2004  # its calls
            raise SoakError(f"the script {name!r} may end with {' or '.join(sorted(ENDS[name]))}, and did so: {result}")
        self.tally.ends.setdefault(name, Counter())[end] += 1

    async def _ready(self) -> None:
        """Wait until every server is ready.

        Raises:
            SoakError: One is not after two attempts with the longest pause before each.
        """
        seconds = 2 * (LONGEST_DELAY_SECONDS + hostile("").connect_timeout_seconds)
        names = _not_ready(self._broker)
        if names:
            _tell(f"waiting for {', '.join(names)} to be ready: for {seconds:.0f} s at most")
        with anyio.move_on_after(seconds):
            while _not_ready(self._broker):  # noqa: ASYNC110  # it tells nobody outside
                await anyio.sleep(0.1)
        if names := _not_ready(self._broker):
            raise SoakError(f"{', '.join(names)}: not ready after {seconds:.0f} s")


def hostile(behaviour: str) -> ServerConfig:
    """Configure a server that dies, or is silent, in each call."""
    return ServerConfig(
        command=sys.executable, args=("-I", str(HOSTILE), behaviour), mode="legacy", call_timeout_seconds=0.5
    )


def fill(outputs: KeptOutputs) -> None:
    """Keep as much output as may be kept: by what floods it grows for 64 rounds, and then no more."""
    for number in range(OUTPUTS):
        outputs.keep(f"filling-{number}", "x" * (MAX_CHARACTERS // OUTPUTS), "somebody else")


async def soak(seconds: float) -> list[str]:
    """Run for so long, and print it; return what did not come back to what it was.

    Raises:
        SoakError: A script ended in a way that it may not, or a server did not come back.
    """
    config = Config(servers={"dying": hostile("call_die"), "silent": hostile("call_hang")})
    async with Broker(config, servers={"desk": desk()}) as broker:
        server = BrokerServer(
            broker,
            ServeSettings(runs_at_once=AT_ONCE),
            make_session=lambda _principal: broker.session(grants=[Grant("*")]),
            limits=Limits(wall_seconds=2, memory_bytes=96 * 1024 * 1024),
        )
        fill(server.outputs)
        async with Client(server.mcp) as client:
            running = Soak(broker, client)
            _tell(f"warming up with {WARM_ROUNDS} rounds of {len(SCRIPTS | DYING)} scripts")
            before = await running.warm()
            _tell(f"baseline: {before}")
            _tell(f"running for {_clock(seconds)} minutes")
            await running.run(seconds)
            _tell("waiting until all is as it was")
            after = await running.settle(before)
    left = Held.now().children
    print("\n".join(_table(running.tally, before, after)), flush=True)
    outlived = [f"children: {count} of {kind!r} outlived the broker" for kind, count in sorted(left.items())]
    return memory_leaks(running.tally.residents) + after.leaks(before) + outlived


def main() -> int:
    """Soak as the command line says; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20.0, help="how long new rounds begin (default: %(default)g)")
    problems: list[str] = []
    try:
        problems = anyio.run(soak, parser.parse_args().minutes * 60)
    except* SoakError as errors:
        problems = _messages(errors)
    print("\n".join(["", *(f"FAILED: {each}" for each in problems)]) if problems else "\nall came back to what it was")
    return bool(problems)


def _table(tally: Tally, before: Held, after: Held) -> Iterable[str]:
    yield ""
    yield f"{'script':16}{'runs':>6}  ended with"
    for name in SCRIPTS | DYING:
        ends = tally.ends.get(name, Counter())
        yield f"{name:16}{ends.total():>6}  {', '.join(f'{end} {count}' for end, count in ends.most_common())}"
    yield ""
    yield f"{'held':48}{'before':>8}{'after':>8}"
    yield f"{'memory':48}{megabytes(before.resident_bytes):>8}{megabytes(after.resident_bytes):>8}"
    yield f"{'  second and last quarter of the rounds':48}{'':8}{f'+{megabytes(steady_growth(tally.residents))}':>8}"
    for kinds in ("threads", "descriptors", "children"):
        was, is_now = getattr(before, kinds), getattr(after, kinds)
        yield f"{kinds:48}{was.total():>8}{is_now.total():>8}"
        for kind in sorted(was | is_now):
            yield f"  {kind[:45]:46}{was[kind]:>8}{is_now[kind]:>8}"


def _messages(errors: BaseExceptionGroup[Any]) -> list[str]:
    found = []
    for error in errors.exceptions:
        found += _messages(error) if isinstance(error, BaseExceptionGroup) else [str(error)]
    return found


def _end(result: Mapping[str, Any]) -> str:
    """Return how a run ended, in one word of `ENDS`."""
    if result.get("error"):
        return str(result["error"]["type"])
    return str(result["stopped"]["limit"] if result.get("stopped") else result.get("outcome"))


def _not_ready(broker: Broker) -> list[str]:
    return [one.name for one in broker.server_statuses() if one.state != "ready"]


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _tell(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
