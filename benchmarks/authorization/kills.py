"""Brokers that are killed at random points while their scripts call a server; then its log and the audit are compared.

    python -m benchmarks.authorization kills

Each broker is a process of its own on the same store. Its script makes random calls, alone and up to eight at once:
some are allowed, some fail at the server, some are denied, some have wrong arguments. It is killed with SIGKILL after a
random number of calls. What has to hold: each call in the server's log is one attempt of the audit and each token is
there once; an attempt without a call, or without a result, was open at a kill; the chain of records is whole.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import anyio

from broker import Broker, Config, Grant, ServerConfig
from broker.audit.chain import entries, verify
from broker.store import Store
from sandbox import Limits

CALLS = 10_000
KILLS = 40
AT_ONCE = 8
"""How many calls a script makes at once, at most."""

SERVER = Path(__file__).with_name("ledger_server.py")
SCRIPT = """
import asyncio, random
from tools import ledger

number = 0

async def one():
    global number
    number += 1
    token = f"PREFIX-{number}"
    kind = random.random()
    try:
        if kind < 0.8:
            await ledger.write(token=token)
        elif kind < 0.9:
            await ledger.fail(token=token)
        elif kind < 0.95:
            await ledger.drop(token=token)
        else:
            await ledger.write(token=5)
    except Exception:
        pass

while True:
    await asyncio.gather(*(one() for _ in range(random.randint(1, AT_ONCE))))
"""


@dataclass(frozen=True)
class Found:
    """What was found.

    Attributes:
        kills: How often a broker was killed.
        executed: Calls in the server's log.
        allowed: Attempts of the audit that were allowed.
        refused: Attempts that were not.
        not_made: Allowed attempts that never reached the server.
        unknown: Allowed attempts without a result.
        most_unknown: The most of these of one broker.
        faults: What must not be; empty when all holds.
    """

    kills: int
    executed: int
    allowed: int
    refused: int
    not_made: int
    unknown: int
    most_unknown: int
    faults: tuple[str, ...]


def run(folder: Path, *, calls: int, kills: int, seed: int = 1) -> Found:
    """Run brokers until so many calls were made, and compare."""
    rng = random.Random(seed)  # noqa: S311  # where to kill
    store, ledger = folder / "broker.sqlite3", folder / "ledger"
    ledger.touch()
    for number in range(kills):
        until = (number + 1) * calls // kills - rng.randrange(max(1, calls // kills // 2))
        _run_and_kill(store, ledger, f"b{number}", until if number < kills - 1 else calls)
    return compare(store, ledger, kills)


def _run_and_kill(store: Path, ledger: Path, prefix: str, until: int) -> None:
    command = [sys.executable, "-m", "benchmarks.authorization.kills", str(store), str(ledger), prefix]
    with subprocess.Popen(command) as process:  # this program
        while _lines(ledger) < until:
            if process.poll() is not None:
                raise RuntimeError(f"a broker ended by itself, with {process.returncode}")
            time.sleep(0.002)
        process.kill()
    # Its server reads what is in the pipe, and ends with its input.
    while _is_served(ledger):
        time.sleep(0.01)


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def _is_served(ledger: Path) -> bool:
    wanted = str(ledger).encode()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and wanted in (entry / "cmdline").read_bytes().split(b"\0"):
                return True
        except OSError:
            continue
    return False


def compare(store: Path, ledger: Path, kills: int) -> Found:
    """Compare the audit with the server's log."""
    executed = Counter(ledger.read_text().splitlines())
    with Store(store) as opened:
        faults = [verify(opened).fault] if verify(opened).fault else []
        records = [entry.record for entry in entries(opened)]
    attempts = [record for record in records if record["kind"] == "attempt"]
    ended = Counter(record["attempt"] for record in records if record["kind"] == "result")
    allowed = {record["number"]: _line(record) for record in attempts if record["decision"] == "allowed"}
    told = Counter(allowed.values())
    faults += [f"{line} was made {count} times" for line, count in executed.items() if count > 1]
    faults += [f"{line} is on record {count} times" for line, count in told.items() if count > 1]
    faults += [f"{line} was made and is not on record" for line in executed.keys() - told.keys()]
    faults += [f"record {number} has {count} results" for number, count in ended.items() if count > 1]
    faults += [
        f"{line} has a result and was not made" for n, line in allowed.items() if n in ended and line not in executed
    ]
    faults += [f"{line} was made and denied" for line in executed if line.startswith("drop ")]
    open_at_kill = Counter(line.split()[1].split("-")[0] for n, line in allowed.items() if n not in ended)
    faults += [f"{name} had {count} calls open" for name, count in open_at_kill.items() if count > AT_ONCE]
    return Found(
        kills,
        sum(executed.values()),
        len(allowed),
        len(attempts) - len(allowed),
        sum(line not in executed for line in allowed.values()),
        sum(open_at_kill.values()),
        max(open_at_kill.values(), default=0),
        tuple(faults),
    )


def _line(record: dict[str, str]) -> str:
    return f"{record['tool']} {json.loads(record['arguments'])['token']}"


async def _broker(store: str, ledger: str, prefix: str) -> None:
    server = ServerConfig(command=sys.executable, args=("-I", str(SERVER), ledger), mode="legacy")
    limits = Limits(calls=1_000_000, steps=1_000_000, wall_seconds=3_600, cpu_seconds=3_600)
    with Store(Path(store)) as kept:
        async with Broker(Config(servers={"ledger": server}), store=kept) as broker:
            session = broker.session(grants=[Grant("ledger.write"), Grant("ledger.fail")])
            script = SCRIPT.replace("PREFIX", prefix).replace("AT_ONCE", str(AT_ONCE))
            await session.execute_code(script, describe_references=True, check="off", limits=limits)


def main() -> None:
    """Print what was found; a fault ends it with an error."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        found = run(Path(folder), calls=CALLS, kills=KILLS)
    print(f"{found.kills} brokers killed in {time.monotonic() - began:.0f} s, up to {AT_ONCE} calls at once")
    print(f"the server's log: {found.executed} calls; the audit: {found.allowed} allowed, {found.refused} refused")
    print(
        f"allowed and not made: {found.not_made}; without a result: {found.unknown}, {found.most_unknown} at one kill"
    )
    print("\n".join(found.faults[:20]) or "each call of the log is one attempt of the audit; the chain is whole")
    if found.faults:
        raise SystemExit(1)


if __name__ == "__main__":
    anyio.run(_broker, sys.argv[1], sys.argv[2], sys.argv[3])
