"""Recorded runs as an embedding program has them: listed, read, replayed, compared, exported, imported, removed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import anyio
import pytest

from broker import (
    Broker,
    QuestionBox,
    RecordedRuns,
    RecordingError,
    Store,
    StoreError,
    compare_recordings,
    read_recording,
)
from sandbox import Completed, Limits, Sandbox, Stopped

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[3]
SCRIPT = """
import sys
from tools import desk, ToolError
print("begins")
numbers = [await desk.add(a=n) for n in range(2)]
try:
    await desk.fail(reason="no luck " * 500)
except ToolError as error:
    print("caught", error.__class__.__name__, file=sys.stderr)
numbers
"""


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


@pytest.fixture
async def broker(desk_server, store, image):
    sandbox = Sandbox(cache=image.compiled.parent, isolation="thread")
    with anyio.fail_after(60):
        async with Broker(servers={"desk": desk_server}, store=store, sandbox=sandbox) as broker:
            yield broker


async def run_of(broker, script=SCRIPT, principal="", **how):
    session = broker.session(grants=["desk.*"], principal=principal)
    return await session.execute_code(script, describe_references=True, **how)


async def test_a_run_is_listed_and_read(broker):
    result = await run_of(broker, filename="numbers.py")
    [entry] = broker.recordings().list()
    assert (entry.run_id, entry.filename, entry.state, entry.calls) == (result.run_id, "numbers.py", "completed", 3)
    assert broker.recordings().find(result.run_id[:8]) == entry
    recording = broker.recordings().get(result.run_id)
    assert (recording.run_id, recording.state, recording.script) == (result.run_id, "completed", SCRIPT)
    assert recording.outcome == Completed([2, 3])
    assert (recording.stdout, recording.stderr) == (result.stdout, result.stderr)
    assert (recording.stdout, recording.stderr) == ("begins\n", "caught ToolError\n")
    assert recording.seconds == entry.seconds
    assert repr(recording) == f"<Recording of {result.run_id}: {recording.line_count} lines, 3 calls>"
    calls = list(recording.calls.values())
    assert [(call.function, call.line, call.arguments) for call in calls[:2]] == [
        ("desk.add", 5, {"a": 0}),
        ("desk.add", 5, {"a": 1}),
    ]
    assert [(call.status, call.result, call.error) for call in calls[:2]] == [("ok", 2, None), ("ok", 3, None)]
    assert (calls[2].status, calls[2].result, calls[2].error["kind"]) == ("failed", None, "ToolError")
    assert calls[2].error["message"].startswith("[text of desk] Error executing tool fail: failed: no luck")


async def test_a_recording_that_was_read_outlives_its_removal_and_the_store(broker, store):
    result = await run_of(broker)
    runs = RecordedRuns.in_store(store)
    recording = runs.get("last")
    assert runs.remove(result.run_id, "last") == 1
    assert runs.list() == []
    store.close()
    assert (recording.script, len(recording.calls)) == (SCRIPT, 3)
    assert all(call.answer for call in recording.calls.values())
    with pytest.raises(StoreError, match="it is closed"):
        runs.list()


async def test_runs_are_listed_newest_first_up_to_a_limit_and_by_their_states(broker):
    first = await run_of(broker, "1")
    second = await run_of(broker, "1 / 0")
    third = await run_of(broker, "2")
    runs = broker.recordings()
    assert [entry.run_id for entry in runs.list()] == [third.run_id, second.run_id, first.run_id]
    assert [entry.run_id for entry in runs.list(limit=2)] == [third.run_id, second.run_id]
    assert [entry.run_id for entry in runs.list(states=["completed"])] == [third.run_id, first.run_id]
    assert [entry.run_id for entry in runs.list(states={"completed"}, limit=1)] == [third.run_id]
    assert runs.list(limit=0) == runs.list(states=["parked", "interrupted"]) == runs.list(states=[]) == []
    for wrong in ("parked", ["open"]):
        with pytest.raises(ValueError, match="states are a collection of 'running', 'interrupted', 'parked'"):
            runs.list(states=wrong)
    with pytest.raises(ValueError, match="limit is a whole number from 0, not -1"):
        runs.list(limit=-1)


async def test_a_principal_has_its_own_runs_alone(broker, store, tmp_path):
    of = {name: (await run_of(broker, f"'{name}'", name)).run_id for name in ("ada", "bob", "")}
    store.execute("UPDATE recording SET run_id = 'run_0' || substr(run_id, 6)")
    of = {name: f"run_0{run[5:]}" for name, run in of.items()}
    for name, run in of.items():
        runs = broker.recordings(principal=name)
        assert [entry.run_id for entry in runs.list()] == [run]
        assert [entry.run_id for entry in RecordedRuns.in_store(store, principal=name).list(limit=1)] == [run]
        assert (runs.find("last").run_id, runs.find("run_0").run_id) == (run, run)
        for other in set(of.values()) - {run}:
            for attempt in (runs.find, runs.get, runs.lines, runs.remove, partial(runs.export, path=tmp_path)):
                with pytest.raises(RecordingError, match=f"this principal has recorded no run '{other}' here"):
                    attempt(other)
    every = broker.recordings(any_principal=True)
    assert {entry.run_id for entry in every.list()} == set(of.values())
    assert every.get(of["ada"]).begun.principal == "ada"
    with pytest.raises(RecordingError, match="several recordings begin with 'run_0'"):
        every.get("run_0")
    with pytest.raises(ValueError, match="leave the principal out"):
        broker.recordings(principal="ada", any_principal=True)
    assert list(tmp_path.glob("*.jsonl")) == []


async def test_what_a_recording_does_not_say_is_no_principals(broker, store):
    run = (await run_of(broker, "1")).run_id
    first = store.execute("SELECT line FROM recording_line WHERE number = 0")[0][0]
    for line in ("not JSON", first.replace('"principal":""', '"principal":"ada"')):
        store.execute("UPDATE recording_line SET line = ? WHERE number = 0", (line,))
        assert broker.recordings().list() == []
        with pytest.raises(RecordingError, match="this principal has recorded no run"):
            broker.recordings().get(run)
    store.execute("DELETE FROM recording_line")
    assert broker.recordings().list() == []
    assert [entry.run_id for entry in broker.recordings(any_principal=True).list()] == [run]


async def test_an_imported_recording_is_no_principals(broker, tmp_path):
    run = (await run_of(broker)).run_id
    runs, every = broker.recordings(), broker.recordings(any_principal=True)
    path = runs.export(run, tmp_path)
    assert path == tmp_path / f"{run}.jsonl"
    assert path.read_text() == "".join(runs.lines(run))
    with pytest.raises(RecordingError, match="is recorded already"):
        every.import_file(path)
    runs.remove(run)
    with pytest.raises(RecordingError, match="belong to no principal; import with any_principal=True"):
        runs.import_file(path)
    imported = every.import_file(str(path))
    assert (imported.run_id, imported.state, len(imported.calls), imported.cut) == (run, "completed", 3, "")
    assert every.find(run).is_imported
    assert runs.list() == []
    assert list((Path(tmp_path) / "data" / "owners").iterdir()) != []  # the broker's own
    with pytest.raises(RecordingError, match="there is no folder"):
        every.export(run, tmp_path / "nowhere" / "run.jsonl")
    with pytest.raises(RecordingError, match=r"nowhere/: there is no folder .*/nowhere$"):
        every.export(run, f"{tmp_path}/nowhere/")
    assert not (tmp_path / "nowhere").exists()


async def test_an_id_that_somebody_wrote_into_the_store_is_no_terminal_sequence_and_no_path(broker, store, tmp_path):
    await run_of(broker)
    (tmp_path / "run_ab").mkdir()
    store.execute("UPDATE recording SET run_id = ?", ("run_ab/../\x1b[2J" + "0" * 1_000,))
    [entry] = broker.recordings().list()
    assert entry.run_id == "run_ab??????2?" + "0" * 26
    assert broker.recordings().export("last", tmp_path) == tmp_path / f"{entry.run_id}.jsonl"


async def test_a_replay_calls_no_server_and_takes_the_same_steps(broker, calls):
    recording = broker.recordings().get((await run_of(broker)).run_id)
    calls.clear()
    found = await broker.replay(recording)
    assert (found.difference, found.steps, found.calls, calls) == (None, 4, 3, [])


async def test_another_script_is_compared_on_the_recorded_answers(broker, calls):
    recording = broker.recordings().get((await run_of(broker)).run_id)
    calls.clear()
    again = await broker.rerun(recording, SCRIPT.replace("range(2)", "range(1)"))
    found = compare_recordings(recording, again)
    assert [(change.kind, change.function, change.line) for change in found.changes] == [("removed", "desk.add", 5)]
    assert [other.what for other in found.others] == ["the outcome"]
    assert not compare_recordings(recording, await broker.rerun(recording, SCRIPT))
    assert (calls, len(broker.recordings().list())) == ([], 1)
    with pytest.raises(ValueError, match=r"ignored are JSON pointers as '/result/updated_at'.*; not 'outcome'"):
        compare_recordings(recording, again, ["outcome"])
    with pytest.raises(TypeError, match=r"ignored are several JSON pointers: write \['/printed'\]"):
        compare_recordings(recording, again, "/printed")


async def test_the_same_script_is_compared_live(broker):
    recording = broker.recordings().get((await run_of(broker)).run_id)
    again = await run_of(broker, recording.script, limits=recording.limits, filename=recording.begun.filename)
    assert not compare_recordings(recording, broker.recordings().get(again.run_id))


async def test_what_is_no_recording_is_refused(broker):
    run = (await run_of(broker, "1")).run_id
    for attempt in (broker.replay(run), broker.rerun(run, "1")):
        with pytest.raises(TypeError, match=r"is what broker.recordings\(\).get\(run_id\) .* returns, not a str"):
            await attempt
    for wrong in (None, broker.recordings().find(run)):
        for attempt in (broker.recordings().get, broker.recordings().remove):
            with pytest.raises(
                TypeError, match=r"a run is named by its id, as entry.run_id or result.run_id, not by a"
            ):
                attempt(wrong)
    with pytest.raises(TypeError, match=r"a store is a Store, as Store\('broker.sqlite3'\), not a str"):
        RecordedRuns.in_store("broker.sqlite3")  # type: ignore[arg-type]  # the mistake
    with pytest.raises(RecordingError, match=r"there is no recording 'run_0000.*; `Broker.recordings` lists them"):
        broker.recordings(any_principal=True).get(f"run_{0:016}")


async def test_a_file_is_read_and_replayed_without_a_store(tmp_path, image):
    example = ROOT / "examples" / "history" / "recording.jsonl"
    recording = read_recording(str(example))
    assert (recording.state, recording.is_imported, len(recording.calls)) == ("completed", True, 25)
    async with Broker(sandbox=Sandbox(cache=image.compiled.parent, isolation="thread")) as broker:
        assert (await broker.replay(recording)).difference is None
        assert broker.recordings().list() == []
        with pytest.raises(RecordingError, match="recordings are off, as they are without a store"):
            broker.recordings().get(recording.run_id)
    half = tmp_path / "half.jsonl"
    half.write_bytes(example.read_bytes()[:40_000])
    cut = read_recording(half)
    assert (cut.state, cut.cut[:12]) == ("interrupted", "is cut short")
    with pytest.raises(RecordingError, match=r"gone\.jsonl: no such file"):
        read_recording(tmp_path / "gone.jsonl")


async def test_a_run_that_goes_on_is_read_as_far_as_it_is_and_not_removed(broker, store, calls):
    async with anyio.create_task_group() as tasks:
        scope = anyio.CancelScope()

        async def go_on():
            await run_of(broker, "print('begins', flush=True)\nawait desk.wait()", stop=scope)

        tasks.start_soon(go_on)
        with anyio.fail_after(60):
            while ("wait",) not in calls:
                await anyio.lowlevel.checkpoint()
        for runs in (broker.recordings(), RecordedRuns.in_store(store)):
            [entry] = runs.list(states=["running"])
            recording = runs.get(entry.run_id)
            assert (recording.state, recording.outcome, recording.stdout) == ("running", None, "begins\n")
            assert [call.status for call in recording.calls.values()] == ["unknown"]
            with pytest.raises(RecordingError, match="is running; it can be removed when it has ended"):
                runs.remove(entry.run_id)
        scope.cancel()
    assert broker.recordings().get("last").state == "interrupted"


async def test_a_parked_run_is_read_and_removed(broker):
    session = broker.session(answerer=QuestionBox())
    script = "print('begins')\nawait desk.add(a=1)"
    parked = await session.execute_code(script, describe_references=True, park=True)
    runs = broker.recordings()
    recording = runs.get(parked.run_id)
    assert (recording.state, recording.stdout) == ("parked", "begins\n")
    assert [call.status for call in recording.calls.values()] == ["waiting"]
    assert runs.remove(parked.run_id) == 1
    assert runs.list() == []


async def test_all_are_removed_or_none(broker):
    runs = broker.recordings()
    kept = [(await run_of(broker, "1")).run_id for _ in range(2)]
    with pytest.raises(RecordingError, match="has recorded no run 'run_0000"):
        runs.remove(*kept, f"run_{0:016}")
    assert len(runs.list()) == 2
    assert runs.remove(*kept) == 2


async def test_what_a_step_printed_that_did_not_return_is_read(broker):
    result = await run_of(broker, "print('begins', flush=True)\nwhile True: pass", limits=Limits(cpu_seconds=0.2))
    recording = broker.recordings().get(result.run_id)
    assert (type(recording.outcome), recording.stdout) == (Stopped, "begins\n")


KILLED = """
import os, signal, sys
import anyio
from broker import Broker, Store
from sandbox import Sandbox

def stop() -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    return ""

def add(a: int) -> int:
    return a + 2

async def main():
    with Store(sys.argv[1]) as store:
        async with Broker(servers={"desk": [add, stop]}, store=store, sandbox=Sandbox(isolation="thread")) as broker:
            session = broker.session(grants=["desk.*"])
            await session.execute_code("print(await desk.add(a=1))\\nawait desk.stop()", describe_references=True)

anyio.run(main)
"""


async def test_a_run_whose_process_was_killed_is_listed_read_and_replayed(broker, store, tmp_path):
    killed = subprocess.run([sys.executable, "-c", KILLED, str(store.path)], check=False, timeout=60)  # noqa: ASYNC221, S603
    assert killed.returncode == -signal.SIGKILL
    runs = broker.recordings()
    [entry] = runs.list(states=["interrupted"])
    assert (entry.calls, entry.has_crashed, entry.ran) == (2, True, None)
    recording = runs.get(entry.run_id)
    assert (recording.state, recording.outcome, recording.stdout) == ("interrupted", None, "3\n")
    assert [(call.status, call.result) for call in recording.calls.values()] == [("ok", 3), ("unknown", None)]
    found = await broker.replay(recording)
    assert (found.difference, found.notes) == (None, ("the run was interrupted; it was replayed up to there",))
    imported = read_recording(runs.export(entry.run_id, tmp_path))
    assert (imported.state, imported.cut, len(imported.calls)) == ("interrupted", "", 2)
    assert runs.remove(entry.run_id) == 1
    assert runs.list() == []


async def test_an_import_leaves_no_sign_of_a_living_process(broker, tmp_path):
    path = broker.recordings().export((await run_of(broker, "1")).run_id, tmp_path / "run.jsonl")
    with Store(tmp_path / "other" / "broker.sqlite3") as other:
        RecordedRuns.in_store(other, any_principal=True).import_file(path)
        assert os.listdir(tmp_path / "other" / "owners") == []  # noqa: PTH208


def test_the_example_replays_and_compares():
    example = ROOT / "examples" / "recorded_runs.py"
    finished = subprocess.run(  # noqa: S603  # ours
        [sys.executable, example], capture_output=True, text=True, timeout=120, check=False
    )
    assert finished.stdout == EXAMPLE, finished.stderr


EXAMPLE = """\
completed: 3 calls, printed 'looked up 3 cities'
  line 5: weather.temperature {'city': 'Oslo'} -> 4
  line 5: weather.temperature {'city': 'Rome'} -> 19
  line 5: weather.temperature {'city': 'Lima'} -> 22
replayed without a server: the same
another script: removed weather.temperature in line 5
another script: the outcome is different
1 run is recorded, 0 after it was removed
"""
