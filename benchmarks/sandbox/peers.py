"""What the rows are compared with: other sandboxes for Python, and Python itself as a process."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.sandbox.ours import CPU_LOOP
from benchmarks.sandbox.timing import PAUSE_SECONDS

PEERS = {"pyeryx": ("pyeryx==0.11.0", "peer_eryx.py"), "monty": ("pydantic-monty==1.4.0", "peer_monty.py")}
PROGRAM_SECONDS = 900


def measure_native(repeats: int) -> dict[str, float]:
    """Return the rows that a bare `python3` process has."""
    python = shutil.which("python3", path=str(Path(sys.base_prefix, "bin"))) or sys.executable

    def timed(script: str) -> float:
        times = []
        for _ in range(repeats):
            began = time.perf_counter()
            subprocess.run([python, "-I", "-c", script], check=True, capture_output=True)
            times.append(time.perf_counter() - began)
        return statistics.median(times)

    fresh = timed("print(1)")
    loop = timed(CPU_LOOP) - fresh
    return {
        "fresh": 1e3 * fresh,
        "cpu_loop": 1e3 * loop,
        "two_over_one": _two_over_one(python, repeats),
        "pause": _slowed_by_a_pause(5 * repeats),
        "wake": 1e6 * _round_trip_seconds(python, 100 * repeats),
    }


def _two_over_one(python: str, repeats: int) -> float:
    """Return how much longer two processes that compute take than one: a control for what two cores give."""

    def seconds(count: int) -> float:
        began = time.perf_counter()
        processes = [subprocess.Popen([python, "-I", "-c", 3 * f"{CPU_LOOP}\n"]) for _ in range(count)]
        for process in processes:
            process.wait()
        return time.perf_counter() - began

    return statistics.median([seconds(2) / seconds(1) for _ in range(repeats)])


def _round_trip_seconds(python: str, repeats: int) -> float:
    """Return the time of a byte to a process that sleeps and back: a control for what crosses processes."""
    echo = "import os\nwhile os.read(0, 1): os.write(1, b'.')"
    times = []
    with subprocess.Popen(
        [python, "-I", "-c", echo], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("no pipes")
        for _ in range(repeats):
            began = time.perf_counter()
            process.stdin.write(b".")
            process.stdout.read(1)
            times.append(time.perf_counter() - began)
        process.stdin.close()
    return statistics.median(times)


def _slowed_by_a_pause(repeats: int) -> float:
    """Return how many times longer ordinary Python code takes when its caches are cold: a control for what pauses."""

    def timed(pause: float) -> float:
        times = []
        for _ in range(repeats):
            time.sleep(pause)
            began = time.perf_counter()
            _some_python()
            times.append(time.perf_counter() - began)
        return statistics.median(times)

    _some_python()
    at_once = timed(0)
    return timed(PAUSE_SECONDS) / at_once


def _some_python() -> None:
    """Take some 0.2 ms, spread over code and data of the standard library as a run is over the host's."""
    parser = argparse.ArgumentParser(prog="control")
    for number in range(6):
        parser.add_argument(f"--option-{number}", type=int, help="a number")
    parser.parse_args(["--option-1", "3"])
    json.loads(json.dumps({"a": [1, 2, {"b": None}]}))


def measure_peer(name: str, repeats: int, interpreter: str) -> dict[str, float] | str:
    """Return a peer's rows, or why there are none. uv installs it into an environment that is thrown away."""
    requirement, program = PEERS[name]
    uv = os.environ.get("UV") or shutil.which("uv")  # `uv run` says where it is itself
    if uv is None:
        return "uv is not installed"
    with tempfile.TemporaryDirectory(prefix="codemode-peer-") as folder:
        python, said = str(Path(folder, "bin", "python")), ""
        for command in (
            [uv, "venv", "--quiet", "--python", interpreter, folder],
            [uv, "pip", "install", "--quiet", "--python", python, requirement],
            [python, str(Path(__file__).with_name(program)), str(repeats)],
        ):
            finished = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PROGRAM_SECONDS)
            if finished.returncode != 0:
                return (finished.stderr.strip().splitlines() or ["failed"])[-1]
            said = finished.stdout
        measured: dict[str, float] = json.loads(said.splitlines()[-1])
        return measured
