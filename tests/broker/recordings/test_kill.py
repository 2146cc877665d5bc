"""`kill -9` of the process at random instants of a script with a hundred calls: no call twice, none lost.

A few instants are tried each time; CODEMODE_KILLS=200 tries so many, CODEMODE_KILL_SEED others.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.broker.servers.plain import plain

CODEMODE = str(Path(sys.executable).with_name("codemode"))
KILLS = int(os.environ.get("CODEMODE_KILLS", "4"))
SEED = int(os.environ.get("CODEMODE_KILL_SEED", "1"))
SCRIPT = """
import asyncio
from tools import counting, ToolOutcomeUnknown

async def once(n):
    while True:
        try:
            return await counting.log(n=n)
        except ToolOutcomeUnknown:
            if await counting.seen(n=n):
                return n

total = 0
for n in range(52):
    total += await once(n)
    if n % 10 == 0:
        print("at", n)
for start in range(52, 100, 8):
    total += sum(await asyncio.gather(*(once(n) for n in range(start, start + 8))))
    print("up to", start + 8)
total
"""
PRINTED = "".join(f"at {n}\n" for n in range(0, 52, 10)) + "".join(f"up to {n}\n" for n in range(60, 101, 8))


class Place:
    """A folder with a config, a store and a log of its own."""

    def __init__(self, folder: Path, data_home: str) -> None:
        self.log = folder / "calls.log"
        self._environment = os.environ | {"XDG_DATA_HOME": data_home, "CALL_LOG": str(self.log), "COLUMNS": "120"}
        self._folder = folder
        server = plain("counting", CALL_LOG="${CALL_LOG}", KILL="${KILL:-}")
        (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"counting": server}}))
        (folder / "script.py").write_text(SCRIPT)

    def codemode(self, *arguments: str, kill: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603  # our own command
            [CODEMODE, *arguments, "--config", "mcp.json"],
            cwd=self._folder,
            env=self._environment | {"KILL": kill},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def recorded(self) -> tuple[int, str]:
        """What the recording says that the script returned and printed."""
        lines = subprocess.run(  # noqa: S603  # our own command
            [CODEMODE, "recordings", "export", "last"],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stdout.splitlines()
        events = [json.loads(line) for line in lines]
        printed = [piece["text"]["value"] for event in events for piece in event.get("printed", ())]
        (ended,) = [event for event in events if event["event"] == "ended"]
        return ended["outcome"]["value"]["completed"], "".join(printed)


def instant(chance: random.Random) -> str:
    where = chance.choice(["before", "logged", "answered", "answered"])
    return f"{chance.randint(1, 100)}:{where}:{chance.randint(0, 6_000)}"


@pytest.mark.parametrize("number", range(KILLS))
def test_no_call_is_made_twice_and_none_is_lost_when_the_process_is_killed(tmp_path, data_home, number):
    chance = random.Random(SEED * 1_000_003 + number)  # noqa: S311  # repeatable
    place = Place(tmp_path, data_home)
    finished = place.codemode("run", "script.py", "--allow", "counting.*", "--json", kill=instant(chance))
    kills = 0
    while finished.returncode == -signal.SIGKILL:
        kills += 1
        kill = instant(chance) if chance.random() < 1 / 3 else ""
        finished = place.codemode("resume", "last", "--unknown", "fail", "--json", kill=kill)
    assert kills
    assert sorted(place.log.read_text().splitlines(), key=int) == [str(n) for n in range(100)]
    if finished.returncode == 0:
        result = json.loads(finished.stdout)
        assert (result["value"], result["stdout"]) == (4950, PRINTED)
    else:
        # Killed after its end, before it could say so.
        assert "has ended: completed, so there is nothing to resume" in finished.stderr
    assert place.recorded() == (4950, PRINTED)
