"""Measures recordings: `python -m benchmarks.recordings [--runs N]`.

Every figure is a median: by the clock, and processor time of this process, in which the scripts run here. Recorded and
unrecorded runs take turns, so that a busy machine is busy for both.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from broker import Broker, Config, Grant, ServerConfig
from broker.authorization.calls import PendingCall
from broker.authorization.decision import Allow, Basis
from broker.cli.show import shown
from broker.collector import collector_at_rest
from broker.recordings.journal.beginning import Beginning
from broker.recordings.journal.retracing import past_of
from broker.recordings.journal.run_journal import RunJournal
from broker.recordings.keeping.recordings import Recordings
from broker.recordings.keeping.transfer import load
from broker.recordings.redaction import Redaction
from broker.recordings.replay.replay import replay
from broker.recordings.settings import RecordingSettings
from broker.recordings.showing.picture import picture_of
from broker.store import Store
from sandbox import Limits, Returned, Sandbox, Stopwatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox import Call, Completion

LIMITS = Limits(calls=20_000, wall_seconds=300, cpu_seconds=300)
SEQUENTIAL = "from tools import local\nfor n in range({}):\n    await local.echo(text=str(n))\n"
GATHER = (
    "import asyncio\nfrom tools import local\nawait asyncio.gather(*(local.echo(text=str(n)) for n in range({})))\n"
)
PARAMETERS = [["text", "text", True]]
ECHO = {"described": True, "doc": "", "parameters": PARAMETERS, "accepts_extra": False, "types": []}
ALLOWED = Allow(Basis("rule", "a rule"))
MANIFEST = {"local": {"doc": "", "functions": {"echo": ECHO}}}


async def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=21)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "broker.sqlite3") as store:
        await overhead(store, runs)
        with Recordings(store, RecordingSettings(max_mib=4096)) as recordings:
            async with Sandbox(limits=LIMITS, isolation="thread") as sandbox:
                sequential = await record(recordings, sandbox, SEQUENTIAL.format(1_000))
                await record(recordings, sandbox, GATHER.format(10_000))
                row("list, with one of 10,000 calls", median(lambda: recordings.entries(30), runs), "50 ms")
                row("show 10,000 calls", median(lambda: show(recordings), 5), "1,000 ms")
                found = load(recordings, recordings.find(sequential))
                replays = [await timed_replay(sandbox, recordings, sequential) for _ in range(5)]
                row("offline replay of 1,000 calls", middle(replays), "500 ms")
                row(
                    "resume of 1,000 calls to its frontier", await frontier(recordings, sandbox, sequential), "1,000 ms"
                )
                print(f"the recording of 1,000 calls has {found.line_count} lines")


async def overhead(store: Store, runs: int) -> None:
    """Compare a script of 50 calls with and without a recording."""
    server = ServerConfig(command=sys.executable, args=("-m", "benchmarks.recordings.echo_server"))
    script = SEQUENTIAL.format(50)
    times: dict[str, list[Times]] = {"full": [], "off": []}
    brokers = {
        mode: Broker(Config(servers={"local": server}, recordings=RecordingSettings(mode=mode)), store=store)  # type: ignore[arg-type]
        for mode in times
    }
    async with brokers["full"], brokers["off"]:
        sessions = {mode: broker.session(grants=[Grant("local.echo")]) for mode, broker in brokers.items()}
        for number in range(runs + 2):
            for mode, session in sessions.items():
                began = now()
                result = await session.execute_code(script, describe_references=True, check="off")
                if number > 1:
                    times[mode].append(since(began))
                assert result.outcome == "completed", result  # noqa: S101  # a benchmark of something else otherwise
    (full, full_processor), (off, off_processor) = (middle(times[mode]) for mode in ("full", "off"))
    ratios = [recorded[0] / bare[0] for recorded, bare in zip(times["full"], times["off"], strict=True)]
    more = 1e6 * (full_processor - off_processor) / 50
    print(f"50 calls to a local server: {off * 1e3:.1f} ms unrecorded, {full * 1e3:.1f} ms recorded")
    print(f"  recording adds {100 * (statistics.median(ratios) - 1):.1f} % (median of ratios; goal 10 %)")
    print(f"  of the processor {more:.0f} us for each call, of {1e6 * off_processor / 50:.0f} us in the broker alone")


async def record(recordings: Recordings, sandbox: Sandbox, script: str) -> str:
    """Record a run whose calls are answered in this process; return its id."""
    run_id = f"run_{time.time_ns() % 16**16:016x}"
    beginning = Beginning(
        run_id=run_id,
        filename="script.py",
        script=script,
        manifest=MANIFEST,
        seed=1,
        wall_ns=10**18,
        limits=LIMITS,
        image=sandbox.image_digest,
        tools=(),
        policy=None,
        versions={},
    )
    journal = RunJournal.begin(recordings, Redaction(), beginning)

    async def answer(call: Call) -> Completion:
        journal.sent(call.id, PendingCall("local", "echo", "", call.arguments), ALLOWED)
        return Returned(call.arguments["text"])

    await sandbox.run(script, answer=answer, manifest=MANIFEST, seed=1, wall_ns=10**18, journal=journal)
    return run_id


Times = tuple[float, float]
"""By the clock, and of the processor, in seconds."""


def now() -> Times:
    """Read both clocks."""
    return time.perf_counter(), time.process_time()


def since(began: Times) -> Times:
    """Return what has passed on both clocks."""
    clock, processor = now()
    return clock - began[0], processor - began[1]


def middle(times: list[Times]) -> Times:
    """Return the medians."""
    return statistics.median(one for one, _ in times), statistics.median(one for _, one in times)


async def timed_replay(sandbox: Sandbox, recordings: Recordings, run_id: str) -> Times:
    """Replay offline, reading included."""
    began = now()
    found = await replay(sandbox, load(recordings, recordings.find(run_id)))
    assert found.difference is None, found  # noqa: S101  # a benchmark of something else otherwise
    return since(began)


async def frontier(recordings: Recordings, sandbox: Sandbox, run_id: str) -> Times:
    """Read the recording and take all but its last steps again, until the first new call."""
    began = now()
    recording = load(recordings, recordings.find(run_id))
    del recording.steps[-1]
    recording.calls.popitem()
    reached: list[Times] = []

    async def answer(call: Call) -> Completion:
        reached.append(since(began))
        return Returned(call.arguments["text"])

    past = past_of(recording, goes_on=True)
    stopwatch = Stopwatch(past.elapsed_seconds)
    conditions = {"manifest": MANIFEST, "seed": 1, "wall_ns": 10**18}
    await sandbox.run(recording.script, answer=answer, stopwatch=stopwatch, past=past, **conditions)  # type: ignore[arg-type]
    return reached[0]


def show(recordings: Recordings) -> None:
    """Read and draw the newest recording."""
    with collector_at_rest():
        recording = load(recordings, recordings.find("last"))
        shown(recording, picture_of(recording))


def median(function: Callable[[], object], runs: int) -> Times:
    """Return the medians of a function's times."""
    times = []
    for _ in range(runs):
        began = now()
        function()
        times.append(since(began))
    return middle(times)


def row(what: str, times: Times, goal: str) -> None:
    """Print one figure."""
    print(f"{what}: {times[0] * 1e3:.1f} ms, of the processor {times[1] * 1e3:.1f} ms (goal {goal})")


anyio.run(main)
