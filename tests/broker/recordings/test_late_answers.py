"""Questions answered after the process that asked them was killed: over HTTP, in the library, at the terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest

from broker import Grant, QuestionBox, Verdict
from broker.errors import RecordingError
from tests.broker.servers.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
CODEMODE = str(Path(sys.executable).with_name("codemode"))
TOKEN = "a-token-of-the-tests"  # noqa: S105  # of a process of this test
SCRIPT = """
from tools import counting
import asyncio, random
print("begins", random.random())
print(await asyncio.gather(*(counting.log(n=n) for n in range(3))))
print(await counting.log(n=9))
await counting.seen(n=9)
"""

ADD = "from tools import desk\nawait desk.add(a=1)"


@pytest.fixture
def place(tmp_path, data_home):
    """A folder with a script, a config and a store of its own; returns what starts processes there."""
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "mcp.json").write_text(
        json.dumps({"mcpServers": {"counting": plain("counting", CALL_LOG="${CALL_LOG}")}})
    )
    environment = os.environ | {"XDG_DATA_HOME": data_home, "CALL_LOG": str(tmp_path / "calls.log"), "TOKEN": TOKEN}
    return tmp_path, environment


@contextmanager
def host(place, what) -> Iterator[Any]:
    folder, environment = place
    command = [sys.executable, str(HERE / "answering_host.py"), what, str(folder / "script.py")]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603  # ours
        assert process.stdout is not None
        lines = iter(process.stdout)
        try:
            yield lambda: json.loads(next(lines))
        finally:
            process.kill()


def codemode(place, *arguments):
    folder, environment = place
    return subprocess.run(  # noqa: S603  # our own command
        [CODEMODE, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def answer(port, **choice):
    """Answer the open question over HTTP; return its text."""
    with httpx2.Client(
        base_url=f"http://127.0.0.1:{port}", headers={"authorization": f"Bearer {TOKEN}"}, timeout=60
    ) as client:
        [asked] = client.get("/questions").json()["questions"]
        client.post(f"/questions/{asked['id']}", json={"choices": [choice]}).raise_for_status()
    return asked["text"]


def test_a_question_is_answered_over_http_after_the_process_was_killed_twice(place):
    log = place[0] / "calls.log"
    with host(place, "begin") as told:
        assert told()["waits"].startswith("A script wants to call tools:\n1. counting.log: 3 calls\n")
        begun = told()
    listed = codemode(place, "runs", "--json")
    [run] = json.loads(listed.stdout)
    assert (run["run_id"], run["state"]) == (begun["runs"][0], "parked")
    assert [text.partition(":")[2] for text in run["waits_for"]] == [
        f' counting.log {{"n": {n}}}: waits for somebody to allow it' for n in range(3)
    ]
    assert not log.exists()
    with host(place, "again") as told:
        again = told()
        assert again["runs"] == begun["runs"]
        told()
        assert "3 calls" in answer(again["port"], decision="these")
        assert told()["waits"].startswith("A script wants to call tools:\n1. counting.log: 1 call\n")
    assert sorted(log.read_text().split()) == ["0", "1", "2"]
    with host(place, "again") as told:
        third = told()
        told()
        assert "n=9" in answer(third["port"], decision="any", scope="run")
        assert told()["waits"].startswith("A script wants to call tools:\n1. counting.seen: 1 call\n")
        answer(third["port"], decision="these")
        ended = told()
    assert (ended["run"], ended["outcome"], ended["value"]) == (begun["runs"][0], "completed", True)
    assert ended["stdout"].count("begins") == 1
    assert log.read_text().split()[3:] == ["9"]


def test_a_question_of_a_killed_process_is_answered_at_the_terminal(place):
    with host(place, "begin") as told:
        told()
        [run] = told()["runs"]
    finished = codemode(place, "resume", run, "--config", "mcp.json", "--allow", "counting.*", "--json")
    assert json.loads(finished.stdout)["value"] is True
    assert codemode(place, "runs").stderr == "no run is open\n"


@pytest.mark.anyio
async def test_a_parked_run_is_not_in_memory_and_the_library_goes_on_with_it(opened, recordings, calls):
    script = "from tools import desk\nprint('begins')\n[await desk.add(a=20, b=22), await desk.add(a=1, b=1)]"
    async with opened() as broker:
        session = broker.session(answerer=QuestionBox())
        parked = await session.execute_code(script, describe_references=True, park=True)
        assert (parked.outcome, recordings.find(parked.run_id).state) == ("parked", "parked")
        assert (parked.stdout, parked.usage["calls"]) == ("begins\n", 1)
    async with opened() as broker:
        box = QuestionBox()
        session = broker.session(answerer=box)
        again = await session.wait_for(parked.run_id)
        assert (again.outcome, again.stdout, calls) == ("parked", "begins\n", [])
        [asked] = box.open
        box.reply(asked.id, [Verdict((0,), allow=True)])
        second = await session.wait_for(parked.run_id)
        assert ([call.status for call in second.calls], second.outcome) == (["ok", "waiting"], "parked")
        [asked] = box.open
        box.reply(asked.id, [Grant("desk.add", scope="run")])
        done = await session.wait_for(parked.run_id)
        assert (done.outcome, done.value) == ("completed", [42, 2])
        with pytest.raises(KeyError):
            await session.wait_for(parked.run_id)
    assert calls == [("add", 20, 22), ("add", 1, 1)]


@pytest.mark.anyio
async def test_only_its_principal_and_no_import_goes_on_with_a_parked_run(opened, recordings, store):
    script = "from tools import desk\nawait desk.add(a=1)"
    async with opened() as broker:
        session = broker.session(answerer=QuestionBox(), principal="ada")
        parked = await session.execute_code(script, describe_references=True, park=True)
    async with opened() as broker:
        bob = broker.session(answerer=QuestionBox(), principal="bob")
        assert bob.resume_parked() == []
        with pytest.raises(KeyError):
            await bob.wait_for(parked.run_id)
        ada = broker.session(answerer=QuestionBox(), principal="ada")
        assert (await ada.wait_for(parked.run_id)).outcome == "parked"
    store.execute("UPDATE recording SET is_imported = 1")
    async with opened() as broker:
        ada = broker.session(answerer=QuestionBox(), principal="ada")
        assert ada.resume_parked() == []
        with pytest.raises(KeyError):
            await ada.wait_for(parked.run_id)
    assert recordings.find(parked.run_id).state == "parked"


@pytest.mark.anyio
async def test_a_tool_that_changed_before_the_answer_came_is_asked_about_again(opened, calls):
    async with opened() as broker:
        box = QuestionBox()
        session = broker.session(answerer=box)
        parked = await session.execute_code(
            "from tools import desk\nawait desk.add(a=1)", describe_references=True, park=True
        )
        [asked] = box.open
        for call in asked.question.calls:
            object.__setattr__(call, "digest", "sha256:" + "0" * 64)  # what the person was shown is another definition
        box.reply(asked.id, [Verdict((0,), allow=True)])
        again = await session.wait_for(parked.run_id)
        assert (again.outcome, calls) == ("parked", [])
        [asked] = box.open
        box.reply(asked.id, [Verdict((0,), allow=True)])
        assert (await session.wait_for(parked.run_id)).value == 3


@pytest.mark.anyio
async def test_who_watches_a_run_and_its_model_are_those_that_it_began_with(opened):
    script = "from tools import desk\nprint(await desk.add(a=1))\nawait extract('thirty-six', int)"
    printed: list[str] = []
    called: list[tuple[str, int, int]] = []

    async def model(_extraction):
        return 36

    async with opened() as broker:
        box = QuestionBox()
        session = broker.session(answerer=box)
        parked = await session.execute_code(
            script,
            describe_references=True,
            park=True,
            on_output=lambda _, text: printed.append(text),
            on_call=lambda record, ended, made: called.append((record.tool, ended, made)),
            extractor=model,
        )
        [asked] = box.open
        box.reply(asked.id, [Verdict((0,), allow=True)])
        assert (await session.wait_for(parked.run_id)).value == 36
    assert ("".join(printed), called) == ("3\n", [("add", 1, 1), ("extract", 2, 2)])


@pytest.mark.anyio
async def test_a_call_that_waits_in_a_parked_run_has_not_ended_for_who_watches_it(opened):
    script = "from tools import desk\n[await desk.add(a=1), await desk.add(a=2)]"
    told: list[tuple[str, int, int]] = []
    async with opened() as broker:
        box = QuestionBox()
        session = broker.session(answerer=box)
        await session.get_tool_details(["desk.add"])
        parked = await session.execute_code(
            script, park=True, on_call=lambda record, ended, made: told.append((record.status, ended, made))
        )
        for value in (None, [3, 4]):
            [asked] = box.open
            box.reply(asked.id, [Verdict((0,), allow=True)])
            assert (await session.wait_for(parked.run_id)).value == value
    assert told == [("ok", 1, 1), ("ok", 2, 2)]


@pytest.mark.anyio
async def test_runs_that_were_resumed_are_not_resumed_again(opened):
    script = "from tools import desk\nawait desk.add(a=1)"
    async with opened() as broker:
        session = broker.session(answerer=QuestionBox())
        parked = await session.execute_code(script, describe_references=True, park=True)
    async with opened() as broker:
        box = QuestionBox()
        session = broker.session(answerer=box)
        assert session.resume_parked() == [parked.run_id]
        assert session.resume_parked() == []
        assert (await session.wait_for(parked.run_id)).outcome == "parked"
        [asked] = box.open
        box.reply(asked.id, [Verdict((0,), allow=True)])
        assert (await session.wait_for(parked.run_id)).value == 3


@pytest.mark.anyio
@pytest.mark.parametrize("ends", ["cancelled", "stopped"])
async def test_a_run_that_was_ended_on_purpose_while_it_waited_does_not_come_back_by_itself(opened, recordings, ends):
    async with opened() as broker, anyio.create_task_group() as tasks:
        stop = anyio.CancelScope()
        end = tasks.cancel_scope.cancel if ends == "cancelled" else stop.cancel
        session = broker.session(answerer=QuestionBox(on_open=lambda _: end()))
        tasks.start_soon(partial(session.execute_code, ADD, describe_references=True, stop=stop))
    entry = recordings.find("last")
    assert (entry.state, entry.has_crashed) == ("interrupted", False)
    async with opened() as broker:
        assert broker.session(answerer=QuestionBox()).resume_parked() == []
        assert (await broker.session(grants=["desk.add"]).resume(entry.run_id)).value == 3


@pytest.mark.anyio
async def test_a_run_that_waited_when_its_process_died_comes_back_with_its_question(opened, cut, calls):
    async with opened() as broker, anyio.create_task_group() as tasks:
        session = broker.session(answerer=QuestionBox(on_open=lambda _: tasks.cancel_scope.cancel()))
        tasks.start_soon(partial(session.execute_code, ADD, describe_references=True))
    entry = cut(3)
    assert (entry.state, entry.has_crashed) == ("interrupted", True)
    async with opened() as broker:
        box = QuestionBox()
        session = broker.session(answerer=box)
        assert session.resume_parked() == [entry.run_id]
        assert (await session.wait_for(entry.run_id)).outcome == "parked"
        assert ([asked.run for asked in box.open], calls) == ([entry.run_id], [])


@pytest.mark.anyio
async def test_a_parked_run_whose_recording_is_removed_is_withdrawn_whatever_is_answered(opened, calls):
    async with opened() as broker:
        box = QuestionBox()
        session = broker.session(answerer=box)
        parked = await session.execute_code(ADD, describe_references=True, park=True)
        assert broker.recordings().remove(parked.run_id) == 1
        [asked] = box.open
        box.reply(asked.id, [Verdict((0,), allow=True)])
        with pytest.raises(RecordingError, match="there is no recording"):
            await session.wait_for(parked.run_id)
        assert (calls, box.open, session.resume_parked()) == ([], (), [])


@pytest.mark.anyio
async def test_what_could_stop_a_run_before_it_was_parked_is_not_in_its_way(opened):
    script = "from tools import desk\nawait desk.add(a=1)"
    async with opened() as broker:
        box = QuestionBox()
        session = broker.session(answerer=box)
        stop = anyio.CancelScope()
        parked = await session.execute_code(script, describe_references=True, park=True, stop=stop)
        stop.cancel()
        [asked] = box.open
        box.reply(asked.id, [Verdict((0,), allow=True)])
        assert (await session.wait_for(parked.run_id)).value == 3
