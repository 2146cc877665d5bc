"""Runs resumed: after a crash at any point, after a long wait, and what keeps one from going on."""

from __future__ import annotations

import json
import signal
import sys
from functools import partial

import anyio
import anyio.lowlevel
import pytest
import structlog

from broker import Broker, Config, Grant, PolicyConfig, QuestionBox, ServerConfig
from broker.errors import RecordingError, UnavailableError
from broker.recordings.keeping.recordings import Recordings
from broker.recordings.keeping.transfer import export, import_file, load
from broker.recordings.settings import RecordingSettings
from sandbox import Completed, WorkerError
from tests.broker.servers.plain import plain

pytestmark = pytest.mark.anyio

SCRIPT = """
import asyncio, random
from tools import desk
print("begins", random.random())
numbers = list(await asyncio.gather(*(desk.add(a=n) for n in range(3))))
for n in range(3):
    numbers.append(await desk.add(a=n, b=numbers[-1]))
print("ends", random.random())
numbers
"""


async def test_a_run_goes_on_from_every_line_of_its_journal(run, resume, cut, calls, recordings):
    result = await run(SCRIPT)
    lines = load(recordings, recordings.find("last")).line_count
    assert lines > 15
    for count in range(1, lines):
        entry = cut(count)
        assert entry.state == "interrupted"
        before = load(recordings, entry)
        answered = {n for n, story in before.calls.items() if story.answered}
        unknown = [story.sent for story in before.calls.values() if story.is_unknown]
        calls.clear()
        asked: list[tuple[str, int]] = []

        async def again(call, asked=asked):
            asked.append((call.name, call.sent_at))
            return True

        resumed = await resume(result.run_id, unknown="ask", ask_unknown=again)
        assert (resumed.outcome, resumed.value, resumed.stdout) == ("completed", result.value, result.stdout)
        assert len(calls) == 6 - len(answered)
        assert asked == [("desk.add", sent.at) for sent in unknown if sent is not None]
        assert [(call.tool, call.decision, call.status) for call in resumed.calls] == [("add", "allowed", "ok")] * 6
        whole = load(recordings, recordings.find("last"))
        assert whole.outcome == Completed(result.value)
        assert recordings.find("last").calls == 6


async def test_a_call_of_unknown_outcome_is_not_sent_again_without_leave(world):
    run, resume, cut, calls, recordings, store = world("run", "resume", "cut", "calls", "recordings", "store")
    script = (
        "from tools import desk, ToolError\ntry:\n    await desk.add(a=1)\nexcept ToolError as e:\n    print(repr(e))"
    )
    result = await run(script)
    for how in ({"unknown": "fail"}, {"unknown": "ask"}, {"unknown": "repeat"}):
        entry = cut(3)
        assert load(recordings, entry).calls[1].is_unknown
        calls.clear()
        resumed = await resume(result.run_id, **how)
        assert calls == []
        assert resumed.stdout.startswith("ToolOutcomeUnknown('desk.add was sent, then its run was cut off")
        assert [(call.decision, call.status) for call in resumed.calls] == [("allowed", "outcome_unknown")]
    # A hint of its server alone is no leave; it is where the operator trusts the server.
    for said, repeated in (('idempotent":null', []), ('is_trusted":false', [("add", 1, 2)])):
        cut(3)
        calls.clear()
        is_true = f"{said.partition(':')[0]}:true"
        store.execute("UPDATE recording_line SET line = replace(line, ?, ?) WHERE number = 0", (said, is_true))
        assert ((await resume(result.run_id, unknown="repeat")).stdout == "", calls) == (bool(repeated), repeated)


async def say_no(_call):
    return "no"


async def say_one(_call):
    return 1


async def say_nothing(_call): ...


def say_yes_at_once(_call):
    return True


async def fail(_call):
    raise RuntimeError("the form was closed")


async def leave_the_program(_call):
    sys.exit(2)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (say_no, {"event": "ask_unknown returns True or False", "returned": "str"}),
        (say_one, {"event": "ask_unknown returns True or False", "returned": "int"}),
        (say_nothing, {"event": "ask_unknown returns True or False", "returned": "NoneType"}),
        (say_yes_at_once, {"event": "ask_unknown failed"}),
        (fail, {"event": "ask_unknown failed"}),
        (leave_the_program, {"event": "ask_unknown failed"}),
    ],
)
async def test_a_call_of_unknown_outcome_is_sent_again_only_after_a_clear_yes(world, ask, said):
    run, resume, cut, calls = world("run", "resume", "cut", "calls")
    result = await run("from tools import desk\nawait desk.add(a=1)")
    cut(3)
    calls.clear()
    with structlog.testing.capture_logs() as logs:
        resumed = await resume(result.run_id, unknown="ask", ask_unknown=ask)
    assert (resumed.error.type, calls) == ("ToolOutcomeUnknown", [])
    [line] = [line for line in logs if line["event"].startswith(said["event"])]
    assert line == line | said | {"event": line["event"], "log_level": "error", "call": "desk.add"}


@pytest.mark.parametrize("sent_again", [True, False])
async def test_who_watches_a_resumed_run_is_told_of_calls_in_the_numbers_of_the_whole_run(world, sent_again):
    run, resume, cut, recordings, store = world("run", "resume", "cut", "recordings", "store")
    script = """
from tools import desk, ToolError
for n in range(10):
    try:
        await desk.add(a=n)
    except ToolError as error:
        print(error)
"""
    result = await run(script)
    sent = store.execute(
        "SELECT number FROM recording_line WHERE json_extract(line, '$.event') = 'sent' ORDER BY number"
    )
    before = load(recordings, cut(sent[5][0] + 1))
    assert [story.is_over for story in before.calls.values()] == [True] * 5 + [False]
    told = []

    async def again(_call):
        return sent_again

    await resume(
        result.run_id,
        "desk.add",
        unknown="ask",
        ask_unknown=again,
        on_call=lambda record, ended, made: told.append((record.status, ended, made)),
    )
    sixth = "ok" if sent_again else "outcome_unknown"
    assert told == [(sixth, 6, 6), *(("ok", number, number) for number in range(7, 11))]


async def test_what_was_printed_before_is_not_printed_again(run, resume, cut):
    result = await run(SCRIPT)
    cut(8)
    seen = []

    async def again(_call):
        return True

    await resume(result.run_id, unknown="ask", ask_unknown=again, on_output=lambda _, text: seen.append(text))
    assert "begins" not in "".join(seen)
    assert "".join(seen).startswith("ends")


async def test_a_parked_run_goes_on_when_somebody_allows_its_call(opened, resume, calls, recordings):
    script = "from tools import desk\nprint('before')\nawait desk.add(a=20, b=22)"
    async with opened() as broker:
        parked = await broker.session(parks=True).execute_code(script, describe_references=True)
        assert (parked.outcome, parked.stdout, calls) == ("parked", "before\n", [])
    assert recordings.find(parked.run_id).state == "parked"
    again = await resume(parked.run_id, parks=True)
    assert (again.outcome, calls) == ("parked", [])
    refused = await resume(parked.run_id, "desk.add")
    assert (refused.outcome, refused.value, calls) == ("completed", 42, [("add", 20, 22)])
    with pytest.raises(RecordingError, match="has ended: completed, so there is nothing to resume"):
        await resume(parked.run_id)


async def test_the_other_calls_of_a_parked_run_go_on_until_all_wait(opened, calls):
    script = """
import asyncio
from tools import desk
async def two():
    print(await desk.echo(text="one"))
    print(await desk.echo(text="two"))
await asyncio.gather(two(), desk.add(a=1))
"""
    async with opened() as broker:
        session = broker.session(grants=[Grant("desk.echo")], parks=True)
        result = await session.execute_code(script, describe_references=True)
    assert (result.outcome, result.stdout) == ("parked", "one\ntwo\n")
    assert [call[0] for call in calls] == ["echo", "echo"]


async def test_a_tool_that_changed_meanwhile_is_asked_about_again(world):
    run, resume, cut, calls, recordings, store = world("run", "resume", "cut", "calls", "recordings", "store")
    result = await run(SCRIPT)
    cut(2)
    assert (await resume(result.run_id)).outcome == "completed"
    cut(2)
    begun = load(recordings, recordings.find("last")).begun
    (tool,) = begun.tools
    store.execute("UPDATE recording_line SET line = replace(line, ?, ?)", (tool.digest, "sha256:" + "0" * 64))
    calls.clear()
    resumed = await resume(result.run_id, parks=True)
    assert (resumed.outcome, calls) == ("parked", [])


async def test_what_a_tool_answered_that_is_gone_is_still_private(run, resume, cut, calls, desk_server):
    labels = {"labels": ["private"]}
    result = await run(
        "from tools import desk\nn = await desk.add(a=1)\nawait desk.echo(text=str(n))",
        policy=PolicyConfig.model_validate(labels),
    )
    cut(4)
    desk_server.remove_tool("add")
    calls.clear()
    flow = {"from": "private", "to": "private", "effect": "deny"}
    resumed = await resume(result.run_id, policy=PolicyConfig.model_validate({**labels, "flows": [flow]}))
    assert [(call.tool, call.status) for call in resumed.calls] == [("add", "ok"), ("echo", "refused")]
    assert calls == []


async def test_only_one_broker_resumes_a_run(run, resume, cut, store):
    result = await run(SCRIPT)
    entry = cut(2)
    with Recordings(store, RecordingSettings()) as other:
        other.claim(entry.run_id)
        with pytest.raises(RecordingError, match="runs in this process, so there is nothing to resume"):
            await resume(result.run_id)
    assert (await resume(result.run_id)).value == result.value


async def test_a_run_that_another_process_goes_on_with_is_said_to_run_there(run, cut, recordings, store):
    await run(SCRIPT)
    entry = cut(2)
    other = """
import sys
from pathlib import Path
from broker import Store
from broker.recordings.keeping.recordings import Recordings
from broker.recordings.settings import RecordingSettings
Recordings(Store(Path(sys.argv[1])), RecordingSettings()).claim(sys.argv[2])
print("claimed", flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", other, str(store.path), entry.run_id]
    async with await anyio.open_process(command, stderr=None) as process:
        assert process.stdout is not None
        assert (await process.stdout.receive()).startswith(b"claimed")
        with pytest.raises(RecordingError, match="runs in another process, so there is nothing to resume"):
            recordings.find_open(entry.run_id)
        process.kill()


async def test_of_two_that_found_a_run_open_one_takes_it_up(run, cut, recordings, store):
    await run(SCRIPT)
    entry = cut(2)
    with Recordings(store, RecordingSettings()) as other:
        assert recordings.find_open(entry.run_id) == other.find_open(entry.run_id)
        assert other.claim(entry.run_id).state == "interrupted"
        with pytest.raises(RecordingError, match="runs in this process, so there is nothing to resume"):
            recordings.claim(entry.run_id)


async def test_a_run_that_was_cut_off_is_noted_once_and_goes_on_when_others_begin(recordings):
    number = recordings.begin("run_1a", "full", "script.py")
    recordings.cut_off(number, 2)
    assert (recordings.find("run_1a").state, recordings.find("run_1a").calls) == ("interrupted", 2)
    recordings.claim("run_1a")
    recordings.begin("run_2b", "full", "script.py")
    assert recordings.find("run_1a").state == "running"


async def test_a_run_that_goes_on_here_is_not_said_to_go_on_elsewhere(opened, calls):
    async with opened() as broker, anyio.create_task_group() as tasks:
        session = broker.session(grants=[Grant("desk.*")])
        running = partial(session.execute_code, describe_references=True)
        tasks.start_soon(running, "from tools import desk\nawait desk.wait()")
        while calls != [("wait",)]:
            await anyio.lowlevel.checkpoint()
        with pytest.raises(RecordingError, match="runs in this process, so there is nothing to resume"):
            await session.resume("last")
        tasks.cancel_scope.cancel()


async def test_another_image_is_refused(world):
    run, resume, cut, recordings, store, calls = world("run", "resume", "cut", "recordings", "store", "calls")
    result = await run(SCRIPT)
    cut(4)
    image = load(recordings, recordings.find("last")).begun.image
    store.execute("UPDATE recording_line SET line = replace(line, ?, ?)", (image, "0" * 64))
    calls.clear()
    with pytest.raises(RecordingError, match=r"began on the guest image 000000000000…, and this one is "):
        await resume(result.run_id)
    assert calls == []
    assert recordings.find("last").state == "interrupted"


async def test_a_recording_that_does_not_fit_its_script_stops_before_any_call(world):
    run, resume, cut, store, calls, recordings = world("run", "resume", "cut", "store", "calls", "recordings")
    result = await run(SCRIPT)
    cut(12)
    store.execute("UPDATE recording_line SET line = replace(line, '\"a\":1', '\"a\":7') WHERE number = 1")
    calls.clear()
    with pytest.raises(RecordingError, match="step 0 of the run came out differently from what was recorded"):
        await resume(result.run_id)
    assert calls == []
    assert recordings.find("last").state == "interrupted"


async def test_what_an_imported_recording_allowed_is_not_allowed_here(world):
    run, resume, cut, recordings, tmp_path, calls = world("run", "resume", "cut", "recordings", "tmp_path", "calls")
    result = await run(SCRIPT)
    entry = cut(2)
    export(recordings, entry, tmp_path / "run.jsonl")
    recordings.remove([entry.id])
    import_file(recordings, tmp_path / "run.jsonl")
    calls.clear()
    resumed = await resume(result.run_id, parks=True, any_principal=True)
    assert (resumed.outcome, calls) == ("parked", [])
    assert (await resume(result.run_id, "desk.add", any_principal=True)).value == result.value


@pytest.mark.parametrize("unknown", ["repeat", "ask"])
async def test_of_a_call_of_unknown_outcome_an_imported_recording_says_nothing_that_counts(world, unknown):
    run, resume, cut, recordings, tmp_path, calls = world("run", "resume", "cut", "recordings", "tmp_path", "calls")
    result = await run("from tools import desk\nawait desk.add(a=1)")
    path, entry = tmp_path / "run.jsonl", cut(3)
    export(recordings, entry, path)
    recordings.remove([entry.id])
    begun, stepped, sent = map(json.loads, path.read_text().splitlines()[:3])
    begun["tools"][0] |= {"is_trusted": True, "idempotent": True, "read_only": True}
    sent["tool"] = "echo"
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in (begun, stepped, sent)))
    import_file(recordings, path)
    calls.clear()
    asked = []

    async def no(call):
        asked.append((call.name, call.is_idempotent))
        return False

    resumed = await resume(result.run_id, "desk.*", any_principal=True, unknown=unknown, ask_unknown=no)
    assert (resumed.error.type, calls) == ("ToolOutcomeUnknown", [])
    assert asked == ([("desk.add", False)] if unknown == "ask" else [])


async def test_a_broker_resumes_interrupted_runs_by_itself_and_parks_what_nobody_can_answer(world):
    run, opened, cut, calls, recordings = world("run", "opened", "cut", "calls", "recordings")
    result = await run(SCRIPT)
    cut(2)
    calls.clear()
    async with opened(resume="automatic") as broker:
        assert broker.resume_interrupted() == 1
        while recordings.find("last").state in {"running", "interrupted"}:
            await anyio.lowlevel.checkpoint()
    assert recordings.find("last").state == "completed"
    assert len(calls) == 6
    cut(4)
    assert load(recordings, recordings.find(result.run_id)).calls[1].is_unknown
    async with opened(resume="automatic") as broker:
        broker.resume_interrupted()
        while recordings.find("last").state in {"running", "interrupted"}:
            await anyio.lowlevel.checkpoint()
    assert recordings.find("last").state == "parked"
    assert len(calls) == 8, "the two that had not been sent"


async def test_a_broker_that_keeps_no_content_now_resumes_a_run_whose_content_was_kept(world):
    run, opened, cut, recordings = world("run", "opened", "cut", "recordings")
    await run(SCRIPT)
    cut(2)
    async with opened(mode="metadata") as broker:
        assert broker.resume_interrupted() == 1
        while recordings.find("last").state in {"running", "interrupted"}:
            await anyio.lowlevel.checkpoint()
    assert recordings.find("last").state == "completed"


async def test_a_broker_resumes_no_run_by_itself_that_was_imported(run, opened, cut, store):
    await run(SCRIPT)
    assert cut(2).has_crashed
    async with opened() as broker:
        store.execute("UPDATE recording SET is_imported = 1")
        assert broker.resume_interrupted() == 0
        store.execute("UPDATE recording SET is_imported = 0")
        assert broker.resume_interrupted() == 1


async def test_a_broker_resumes_no_run_by_itself_without_a_server_of_its_script(world):
    run, opened, cut, recordings, store = world("run", "opened", "cut", "recordings", "store")
    result = await run(SCRIPT)
    before = cut(2)
    down = Config(servers={"desk": ServerConfig(command="no-such-program")})
    for config in (Config(), down):
        with anyio.fail_after(60), structlog.testing.capture_logs() as logs:
            async with Broker(config, store=store) as broker:
                assert broker.resume_interrupted() == 1
                while not (said := [line for line in logs if line["event"] == "a run was not resumed"]):
                    await anyio.lowlevel.checkpoint()
        assert [line["run"] for line in said] == [result.run_id]
        assert "server desk, whose tools its script may call, is " in said[0]["reason"]
        assert recordings.find(result.run_id) == before
    async with opened() as broker:
        broker.resume_interrupted()
        while recordings.find("last").state in {"running", "interrupted"}:
            await anyio.lowlevel.checkpoint()
    assert recordings.find("last").state == "completed"


KILLED = """
import asyncio, json, os, signal, sys
from broker import Broker, Store

SCRIPT = "from tools import counting\\na = await counting.log(n=0)\\nprint(a)\\na, await counting.log(n=1)"

async def main():
    with Store(sys.argv[1]) as store:
        async with Broker.from_config(json.loads(sys.argv[2]), store=store) as broker:
            session = broker.session(grants=["counting.*"])
            kill = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
            await session.execute_code(SCRIPT, describe_references=True, on_output=kill)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is POSIX's")
async def test_a_session_resumes_no_run_without_the_servers_of_its_script_and_says_what_to_do(
    store, recordings, tmp_path
):
    log = tmp_path / "calls.log"
    server = plain("counting", CALL_LOG=str(log))
    command = [sys.executable, "-c", KILLED, str(store.path), json.dumps({"mcpServers": {"counting": server}})]
    killed = await anyio.run_process(command, check=False)
    assert killed.returncode == -signal.SIGKILL
    before = recordings.find("last")
    assert before.has_crashed
    lines = list(recordings.content.lines(before.id))
    gone = {"command": str(tmp_path / "gone")}
    needs = f"{before.run_id} was not resumed: server counting, whose tools its script may call, is "
    for servers, said in (
        ({}, "not in the config. Resume it with the config, and in a program the `servers`, that it began with."),
        ({"counting": gone}, f"down: the command '{tmp_path}/gone' was not found. Install it"),
        ({"counting": gone | {"lazy": True}}, f"down: the command '{tmp_path}/gone' was not found. Install it"),
        ({"counting": server | {"disabled": True}}, "disabled. Take `disabled` out of its settings."),
    ):
        async with Broker.from_config({"mcpServers": servers}, store=store) as broker:
            session = broker.session(grants=["counting.*"], answerer=QuestionBox())
            for resume in (session.resume, session.wait_for):
                with anyio.fail_after(60), pytest.raises(UnavailableError) as caught:
                    await resume(before.run_id)
                assert str(caught.value).startswith(needs + said)
                assert caught.value.server == "counting"
        assert recordings.find("last") == before
        assert list(recordings.content.lines(before.id)) == lines
    assert log.read_text().split() == ["0"]
    async with Broker.from_config({"mcpServers": {"counting": server | {"lazy": True}}}, store=store) as broker:
        with anyio.fail_after(60):
            resumed = await broker.session().resume(before.run_id, unknown="fail")
    assert (resumed.outcome, resumed.value) == ("completed", [0, 1])
    assert log.read_text().split() == ["0", "1"]


async def test_all_servers_that_a_run_lacks_are_named(run, cut, store):
    result = await run("from tools import desk\nawait desk.add(a=1)")
    cut(2)
    async with Broker(store=store) as broker:
        [[line]] = store.execute("SELECT line FROM recording_line WHERE number = 0")
        begun = json.loads(line)
        [tool] = begun["tools"]
        begun["tools"].append(tool | {"function": "till.add", "server": "till"})
        store.execute("UPDATE recording_line SET line = ? WHERE number = 0", (json.dumps(begun),))
        with pytest.raises(UnavailableError, match=r"was not resumed:\n  - server desk, .*\n  - server till, "):
            await broker.session().resume(result.run_id)


async def test_a_broker_that_is_closed_at_once_leaves_the_runs_that_it_was_to_resume(run, opened, cut, recordings):
    await run(SCRIPT)
    cut(2)
    async with opened() as broker:
        assert broker.resume_interrupted() == 1
    assert recordings.find("last").has_crashed


async def test_a_run_that_could_not_be_resumed_can_be_later(world, monkeypatch):
    run, opened, cut, recordings = world("run", "opened", "cut", "recordings")
    result = await run(SCRIPT)
    before = cut(2)

    def broken(*_, **__):
        raise RecordingError("it makes no sense")

    async with opened() as broker:
        session = broker.session(grants=[Grant("desk.add")])
        with monkeypatch.context() as patched:
            patched.setattr("broker.recordings.journal.recorder.past_of", broken)
            with pytest.raises(RecordingError, match="it makes no sense"):
                await session.resume(result.run_id)
        assert recordings.find(result.run_id) == before
        assert (before.state, before.has_crashed, before.was_resumed) == ("interrupted", True, False)
        assert (await session.resume(result.run_id)).value == result.value


async def test_a_sandbox_that_cannot_be_opened_does_not_end_a_broker_that_resumes_runs(world, monkeypatch):
    run, opened, cut, recordings = world("run", "opened", "cut", "recordings")
    await run(SCRIPT)
    cut(2)
    tried = anyio.Event()

    async def unable():
        tried.set()
        raise WorkerError("no process can be started")

    async with opened(resume="automatic") as broker:
        monkeypatch.setattr(broker._sandbox, "opened", unable)
        assert broker.resume_interrupted() == 1
        await tried.wait()
        await anyio.lowlevel.checkpoint()
    assert recordings.find("last").has_crashed


async def test_a_run_that_goes_on_asks_the_model_that_it_is_given(run, opened, cut):
    result = await run("from tools import desk\nawait desk.add(a=1)\nawait extract('thirty-six', int)")
    cut(2)

    async def model(_extraction):
        return 36

    async with opened() as broker:
        session = broker.session(grants=[Grant("desk.add")])
        resumed = await session.resume(result.run_id, extractor=model)
    assert resumed.value == 36


async def test_a_model_whose_answer_was_lost_is_asked_again_and_counts_as_one_call(opened, store, cut, recordings):
    asked: list[str] = []

    async def model(extraction):
        asked.append(extraction.value)
        return 36

    async with opened() as broker:
        result = await broker.session(extractor=model).execute_code("await extract('thirty-six', int)")
    sent = "SELECT number FROM recording_line WHERE recording = ? AND json_extract(line, '$.event') = 'sent'"
    [[number]] = store.execute(sent, (recordings.find("last").id,))
    cut(number + 1)
    async with opened() as broker:
        resumed = await broker.session(extractor=model).resume(result.run_id)
    assert (resumed.value, asked) == (36, ["thirty-six"] * 2)
    assert [(call.server, call.tool, call.status) for call in resumed.calls] == [("@model", "extract", "ok")]


@pytest.fixture
def read(store):
    """What was read of recordings: how many lines at the most, -1 for all of them."""
    limits: list[int] = []

    def note(statement: str) -> None:
        if statement.startswith("SELECT line FROM recording_line"):
            limits.append(int(statement.rpartition(" ")[2]))

    store._connection.set_trace_callback(note)
    yield limits
    store._connection.set_trace_callback(None)


async def test_a_run_that_is_resumed_is_read_once(run, resume, cut, read):
    result = await run(SCRIPT)
    cut(2)
    assert (await resume(result.run_id)).value == result.value
    assert read == [-1]


async def test_a_run_that_was_taken_further_before_it_is_claimed_is_read_again(opened, calls):
    script = "from tools import desk\n[await desk.add(a=1), await desk.echo(text='b')]"
    async with opened() as broker:
        image = (await broker._sandbox.opened()).image_digest
        parked = await broker.session(parks=True).execute_code(script, describe_references=True)
        session, recorder = broker.session(grants=[Grant("desk.*")], parks=True), broker._recorder
        found = recorder.resumable(parked.run_id, image)
        further = await broker.session(grants=[Grant("desk.add")], parks=True).resume(parked.run_id)
        assert (further.outcome, calls) == ("parked", [("add", 1, 2)])
        with recorder.resume(found, image=image, desk=session._desk) as resumed:
            assert resumed.before.calls[1].answered is not None
        assert found.calls[1].answered is None
        assert (await session.resume(parked.run_id)).value == [3, "b"]
    assert calls == [("add", 1, 2), ("echo", "b")]


async def test_a_parked_run_that_cannot_be_resumed_stays_parked(opened, recordings, monkeypatch):
    def broken(*_, **__):
        raise RecordingError("it makes no sense")

    async with opened() as broker:
        session = broker.session(parks=True)
        parked = await session.execute_code("from tools import desk\nawait desk.add(a=1)", describe_references=True)
        before = recordings.find(parked.run_id), list(recordings.content.lines(1))
        monkeypatch.setattr("broker.recordings.journal.recorder.past_of", broken)
        with pytest.raises(RecordingError, match="it makes no sense"):
            await session.resume(parked.run_id)
    assert before[0].state == "parked"
    assert (recordings.find(parked.run_id), list(recordings.content.lines(1))) == before


@pytest.mark.parametrize("state", ["interrupted", "parked", "completed"])
async def test_a_session_resumes_no_run_of_another_principal_and_is_told_nothing_of_it(opened, cut, calls, state):
    async with opened() as broker:
        ada = broker.session(principal="ada", parks=True, grants=[] if state == "parked" else [Grant("desk.add")])
        ran = await ada.execute_code("from tools import desk\nawait desk.add(a=1)", describe_references=True)
    if state == "interrupted":
        cut(2)
    calls.clear()
    async with opened() as broker:
        everything = [Grant("desk.*")]
        for principal in ("mallory", ""):
            session = broker.session(principal=principal, grants=everything)
            for name in (ran.run_id, ran.run_id[:10], "last", "run_0123456789abcdef"):
                with pytest.raises(RecordingError) as refused:
                    await session.resume(name)
                assert str(refused.value).startswith(f"this principal has recorded no run '{name}' here; ")
        assert calls == []
        if state != "completed":
            ada = broker.session(principal="ada", grants=everything)
            assert ((await ada.resume(ran.run_id)).value, calls) == (3, [("add", 1, 2)])


async def test_without_a_store_there_is_no_run_to_resume():
    async with Broker() as broker:
        ran = await broker.session().execute_code("1")
        with pytest.raises(
            RecordingError, match=f"'{ran.run_id}' here; recordings are off, as they are without a store"
        ):
            await broker.session().resume(ran.run_id)
        assert broker.resume_interrupted() == 0
        assert broker.serving.requested_runs("ada") == []


@pytest.mark.parametrize("is_imported", [False, True])
async def test_a_run_is_resumed_whoever_began_it_where_the_caller_says_so(opened, store, calls, is_imported):
    async with opened() as broker:
        ada = broker.session(principal="ada", parks=True)
        parked = await ada.execute_code("from tools import desk\nawait desk.add(a=1)", describe_references=True)
        store.execute("UPDATE recording SET is_imported = ?", (is_imported,))
        for principal in ["mallory", *(["ada"] if is_imported else [])]:
            with pytest.raises(RecordingError, match="this principal has recorded no run 'run_"):
                await broker.session(principal=principal).resume(parked.run_id)
        operator = broker.session(grants=[Grant("desk.add")])
        assert ((await operator.resume(parked.run_id, any_principal=True)).value, calls) == (3, [("add", 1, 2)])


async def test_of_other_runs_that_are_open_nothing_is_read_to_know_whether_one_is(opened, read):
    script = "from tools import desk\nawait desk.add(a=1)"
    async with opened() as broker:
        session = broker.session(answerer=QuestionBox(), principal="ada")
        others = [broker.session(parks=True, principal=principal) for principal in ("ada", "bob", "ada")]
        parked = [await other.execute_code(script, describe_references=True) for other in others]
        read.clear()
        with pytest.raises(KeyError):
            await session.wait_for("run_0123456789abcdef")
        assert read == []
        assert (await session.wait_for(parked[0].run_id)).outcome == "parked"
        assert read == [-1]
        read.clear()
        assert len(session.resume_parked()) == 1, "that of Ada which is not resumed yet"
        assert read == [-1, -1]


async def test_what_a_run_came_to_is_told_to_its_principal_alone(run, opened, cut, recordings):
    result = await run(SCRIPT)
    cut(2)
    async with opened(resume="automatic") as broker:
        broker.resume_interrupted()
        while recordings.find("last").state != "completed":
            await anyio.lowlevel.checkpoint()
        assert await broker.session(principal="mallory").repeated(result.run_id) is None
        repeated = await broker.session().repeated(result.run_id)
        assert repeated is not None
        assert repeated.value == result.value
        assert await broker.session().repeated(result.run_id) is None, "it is told once"
