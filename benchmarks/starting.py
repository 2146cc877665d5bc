"""How long `codemode run` takes to its first output, beside the start of the servers it waits for.

`python -m benchmarks.starting [--runs N]`, after both command lines of the README. Every figure is a median in
milliseconds, taken in turns, so that a busy machine is busy for all of them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
MEMORY = EXAMPLES / "servers/node_modules/@modelcontextprotocol/server-memory/dist/index.js"
CODEMODE = Path(sys.executable).with_name("codemode")
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "1"},
    },
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "mcp.json"
        environment = {"MEMORY_FILE_PATH": str(Path(folder) / "graph.jsonl")}
        server = {"command": "node", "args": [str(MEMORY)], "env": environment}
        config.write_text(json.dumps({"mcpServers": {"memory": server}}), "utf-8")
        hello = _script(folder, "hello.py", "print(1)")
        call = _script(folder, "call.py", "from tools import memory\nprint(await memory.read_graph())")
        allowed = ["--config", str(config), "--allow", "memory.*"]
        measured: dict[str, Callable[[], float]] = {
            "python3 -c 'print(1)'": lambda: _first_line([sys.executable, "-I", "-c", "print(1)"]),
            "node server, to its first answer": _first_answer,
            "codemode run, no servers": lambda: _first_line([str(CODEMODE), "run", hello]),
            "codemode run, one call of that server": lambda: _first_line([str(CODEMODE), "run", call, *allowed]),
        }
        for measure in measured.values():
            measure()
        taken: dict[str, list[float]] = {name: [] for name in measured}
        for _ in range(runs):
            for name, measure in measured.items():
                taken[name].append(measure())
    for name, times in taken.items():
        print(f"{name:<40} {statistics.median(times) * 1000:8.0f} ms")


def _script(folder: str, name: str, text: str) -> str:
    path = Path(folder) / name
    path.write_text(text, "utf-8")
    return str(path)


def _first_line(command: list[str]) -> float:
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        if process.stdout is None or not process.stdout.readline():
            raise SystemExit(f"{command[0]} printed nothing")
        return time.perf_counter() - began


def _first_answer() -> float:
    began = time.perf_counter()
    command = ["node", str(MEMORY)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        if process.stdin is None or process.stdout is None:
            raise SystemExit("no pipes")
        process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        process.stdin.flush()
        process.stdout.readline()
        taken = time.perf_counter() - began
        process.kill()
    return taken


if __name__ == "__main__":
    main()
