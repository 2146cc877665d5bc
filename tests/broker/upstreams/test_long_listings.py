"""Servers that list more than anybody can use, while the broker serves others.

Each is a process of its own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from broker import Broker, Config, Grant, ServerConfig
from tests.loop_turns import measured_stretches

if TYPE_CHECKING:
    from broker.upstreams.listing import Listing

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("deadline", "heap_of_its_own")]

RAW = Path(__file__).parents[1] / "servers" / "raw_upstream.py"
LONGEST_SECONDS = 1.0
LISTING_SECONDS = 0.5
TOOL = {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}
SHORT = {"name": "echo", "inputSchema": {"type": "object"}}
WIDE = {f"p{number}": {"type": "string", "description": "some words on it"} for number in range(110_000)}
OF_NO_USE = "more than 1000 entries of its listing are of no use; the listing was cut there"
MORE = ("and 981 more problems of its listing", OF_NO_USE)

# What a server lists; how many of its tools are used, and what is said of the others.
LISTINGS: dict[str, tuple[list[Any], int, tuple[str, ...]]] = {
    "nulls": (
        [TOOL, *[None] * 600_000],
        1,
        (*(f"left out tool {number} of a page: it is not a JSON object" for number in range(2, 22)), *MORE),
    ),
    "tools of one name": ([TOOL, *[SHORT] * 100_000], 1, (*["left out a second tool named 'echo'"] * 20, *MORE)),
    "a tool of many properties": (
        [{"name": "wide", "inputSchema": {"type": "object", "properties": WIDE}}, TOOL],
        1,
        ("left out the tool 'wide': its definition takes more than 8 MiB",),
    ),
    "tools": (
        [TOOL, *({**TOOL, "name": f"echo{number}"} for number in range(60_000))],
        1_000,
        ("more than 1000 tools are offered; raise max_tools to use the others",),
    ),
}

# Announces a change of its tools whenever it has listed them, which takes it a while.
SLOW = """
import json, sys, time
TOOLS = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
BEGUN = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": True}},
         "serverInfo": {"name": "slow", "version": "1"}}
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "tools/list":
        time.sleep(float(sys.argv[1]))
    if "id" in message:
        result = TOOLS if message["method"] == "tools/list" else BEGUN
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}), flush=True)
"""


def again(text: str) -> str:
    """Says it again."""
    return text


async def call_of(broker: Broker, server: str, tool: str) -> Any:
    session = broker.session(grants=[Grant("*")])
    await session.get_tool_details([f"{server}.{tool}"])
    code = f"from tools import {server}\nawait {server}.{tool}(text='hi')"
    result = await session.execute_code(code, check="off", describe_references=True)
    assert result.error is None, result.error
    return result.value


@pytest.mark.parametrize("listing", LISTINGS)
async def test_while_a_long_listing_is_read_others_are_served(tmp_path, log, listing):
    tools, count, warnings = LISTINGS[listing]
    told = tmp_path / "answers.json"
    answer = json.dumps({"jsonrpc": "2.0", "id": 0, "result": {"tools": tools}}, separators=(",", ":"))
    told.write_text(json.dumps({"tools/list": answer.replace('"id":0', '"id":%ID%', 1) + "\n"}))
    server = ServerConfig(
        command=sys.executable, args=("-I", str(RAW), str(told)), env={"HOSTILE_LOG": str(log)}, mode="legacy"
    )
    async with Broker(Config(servers={"raw": server}), servers={"other": [again]}, startup_seconds=0) as broker:
        async with measured_stretches() as stretches:
            while broker.server_statuses()[0].state == "connecting":
                assert await call_of(broker, "other", "again") == "hi"
        status = broker.server_statuses()[0]
        assert stretches.longest_seconds < LONGEST_SECONDS
        assert (status.state, status.tool_count, status.warnings) == ("ready", count, warnings)
        assert await call_of(broker, "raw", "echo") == "hi"


async def test_a_listing_that_took_long_is_followed_by_a_long_pause(running):
    listings: list[Listing] = []
    times = []
    server = ServerConfig(command=sys.executable, args=("-I", "-c", SLOW, str(LISTING_SECONDS)), mode="legacy")
    async with running(server, listings):
        for number in range(1, 4):
            while len(listings) < number:
                await anyio.lowlevel.checkpoint()
            times.append(anyio.current_time())
    assert times[2] - times[1] > 4 * LISTING_SECONDS
