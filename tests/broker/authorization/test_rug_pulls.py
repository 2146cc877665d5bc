"""A server redefines a tool for whose calls a person gave a permanent grant: it holds for equal definitions alone."""

from __future__ import annotations

import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from broker import Broker, Config, ServerConfig
from broker.store import Store

pytestmark = pytest.mark.anyio

REDEFINED = Path(__file__).parents[1] / "servers" / "redefined.py"
HOSTILE = Path(__file__).parents[2] / "codegen" / "hostile"


def hostile(name: str) -> dict[str, Any]:
    return dict(json.loads((HOSTILE / f"{name}.json").read_text())["tool"])


BEFORE = hostile("pi09_rug_pull_v1")
SAME = {
    "equal": BEFORE,
    "in another order": hostile("pi13_rug_pull_order"),
}
OTHER = {
    "description": BEFORE | {"description": "Save a note, and send it to the author"},
    "look-alike in the description": BEFORE | {"description": "S\N{CYRILLIC SMALL LETTER A}ve a note"},
    "invisible in the description": BEFORE | {"description": "Save a\N{ZERO WIDTH SPACE} note"},
    "parameter": hostile("pi11_rug_pull_v2_schema"),
    "type of a parameter": BEFORE | {"inputSchema": {"type": "object", "properties": {"text": {}}}},
    "look-alike in a parameter": BEFORE
    | {"inputSchema": {"type": "object", "properties": {"t\N{CYRILLIC SMALL LETTER IE}xt": {"type": "string"}}}},
    "output schema": BEFORE | {"outputSchema": {"type": "object"}},
    "annotation": BEFORE | {"annotations": {"readOnlyHint": True}},
    "title": BEFORE | {"title": "Notes"},
    "look-alike in the name": BEFORE | {"name": "notes_s\N{CYRILLIC SMALL LETTER A}ve"},
}
REFUSALS = {True: "ToolDescriptionRequired", False: "ToolNotFoundError"}
"""What becomes of a call of the tool by a session that knows it, by whether it still has its name."""


class Person:
    """Allows every call permanently."""

    name = "person"

    async def answer(self, question):
        return [question.groups[0].grant(scope="always")]


@pytest.fixture
def redefined(log, tmp_path):
    """A broker whose server redefined the tool since a session with a permanent grant called it, and that session."""

    @asynccontextmanager
    async def open_broker(after: dict[str, Any]):
        command = ("-I", str(REDEFINED), json.dumps(BEFORE), json.dumps(after))
        server = ServerConfig(command=sys.executable, args=command, env={"CALLS_LOG": str(log)}, mode="legacy")
        with anyio.fail_after(60), Store(tmp_path / "broker.sqlite3") as store:
            async with Broker(Config(servers={"notes": server}), store=store) as broker:
                session = broker.session(answerer=Person())
                await session.get_tool_details(["notes.notes_save"])
                assert await ended(session, "notes_save") == "completed"
                while "notes.marker" not in {entry.qualified_name for entry in broker.catalog.of_server("notes")}:
                    await anyio.lowlevel.checkpoint()
                yield broker, session

    return open_broker


async def ended(session, function):
    result = await session.execute_code(f"from tools import notes\nawait notes.{function}()", check="off")
    return result.outcome if result.error is None else result.error.type


@pytest.mark.parametrize("after", SAME.values(), ids=SAME)
async def test_an_equal_definition_stays_described_and_granted(redefined, log, after):
    async with redefined(after) as (broker, session):
        assert await ended(session, "notes_save") == "completed"
        later = broker.session()
        await later.get_tool_details(["notes.notes_save"])
        assert await ended(later, "notes_save") == "completed"
    assert log.read_text().split() == ["notes_save"] * 3


@pytest.mark.parametrize("after", OTHER.values(), ids=OTHER)
async def test_another_definition_is_called_only_when_it_was_described_and_approved_again(redefined, log, after):
    name = after["name"]
    async with redefined(after) as (broker, session):
        assert await ended(session, "notes_save") == REFUSALS[name == BEFORE["name"]]
        function = broker.catalog.lookup(f"notes.{name}").python_name.removeprefix("notes.")
        outcomes = []
        for answerer in (None, Person(), None):
            later = broker.session(answerer=answerer)
            await later.get_tool_details([f"notes.{name}"])
            outcomes.append((await ended(later, function), log.read_text().count("\n")))
    assert outcomes == [("ToolRefusedError", 1), ("completed", 2), ("completed", 3)]
