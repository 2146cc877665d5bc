"""Runs of which nothing more can be written: what is said of them, what they have done, and how they go on."""

from __future__ import annotations

import pytest

from broker import Denial, Grant, QuestionBox
from broker.errors import RunInterruptedError, StoreError
from broker.recordings.journal.beginning import Beginning
from broker.recordings.journal.repeating import in_request
from broker.recordings.journal.run_journal import RunJournal
from broker.recordings.keeping.recordings import Recordings
from broker.recordings.keeping.transfer import export, import_file, load
from broker.recordings.redaction import Redaction
from broker.recordings.settings import RecordingSettings
from broker.store import Store
from sandbox import Call, Limits, PastStep, Step, WorkerError
from sandbox.workers import Workers

pytestmark = pytest.mark.anyio

ADD_THEN_ECHO = """
from tools import desk
a = await desk.add(a=1)
print("now")
b = await desk.echo(text="x" * 30_000)
a, len(b)
"""
ECHO = "from tools import desk\nlen(await desk.echo(text='x', times=30_000))"


@pytest.fixture
def fill(store):
    """Fill the disk: what is there stays, and no more pages come."""

    def fill(*_):
        [[pages]] = store.execute("PRAGMA page_count")
        store.execute(f"PRAGMA max_page_count = {pages}")

    return fill


@pytest.fixture
def free(store):
    """Make room on the disk."""
    return lambda: store.execute("PRAGMA max_page_count = 1000000")


async def interrupted(broker, script, **told):
    """Run a script that will be cut off; return what is said of that."""
    session = broker.session(grants=[Grant("desk.*")])
    with pytest.raises(RunInterruptedError) as caught:
        await session.execute_code(script, describe_references=True, **told)
    return caught.value


async def test_a_call_that_cannot_be_written_down_is_not_sent_and_the_run_goes_on_later(opened, fill, free, calls):
    async with opened() as broker:
        told = await interrupted(broker, ADD_THEN_ECHO, on_output=fill)
        said = "the disk is full; free some space. 1 call had been answered. Nothing else was sent."
        assert str(told).startswith(f"{told.run_id} was interrupted. ")
        assert str(told).endswith(said)
        assert f"`codemode resume {told.run_id}` continues it; answered calls are not repeated" in told.what_to_do
        assert calls == [("add", 1, 2)]
        free()
        result = await broker.session().resume(told.run_id)
    assert (result.outcome, result.value) == ("completed", [3, 30_000])
    assert [name for name, *_ in calls] == ["add", "echo"]


async def test_a_call_whose_answer_cannot_be_written_down_is_of_unknown_outcome(opened, fill, free, calls, recordings):
    async with opened() as broker:
        told = await interrupted(broker, ECHO, on_call=fill)
        assert str(told).endswith(
            "free some space. Sent, with an outcome that is not known: desk.echo (line 2). Nothing else was sent."
        )
        free()
        assert recordings.find(told.run_id).has_crashed
        result = await broker.session().resume(told.run_id)
    assert result.error.type == "ToolOutcomeUnknown"
    assert len(calls) == 1


async def test_a_run_of_which_not_even_that_it_ended_can_be_written_goes_on_as_soon_as_that_can(
    opened, store, calls, recordings
):
    async with opened() as broker:
        told = await interrupted(broker, ADD_THEN_ECHO, on_output=lambda *_: store.execute("PRAGMA query_only = ON"))
        assert "it cannot be written to; make the file and its folder writable. 1 call had been answered" in str(told)
        store.execute("PRAGMA query_only = OFF")
        assert recordings.find(told.run_id).state == "running"
        assert (await broker.session().resume(told.run_id)).outcome == "completed"
    assert [name for name, *_ in calls] == ["add", "echo"]


async def test_answers_that_come_at_once_and_cannot_be_written_end_the_run_once(opened, fill):
    script = (
        "import asyncio\nfrom tools import desk\n"
        "await asyncio.gather(*(desk.echo(text=str(n), times=30_000) for n in range(20)))"
    )
    async with opened() as broker:
        told = await interrupted(broker, script, on_call=fill)
    assert "Sent, with an outcome that is not known: desk.echo (line 3), desk.echo (line 3)" in str(told)
    assert len(str(told)) < 1_000


async def test_a_run_that_cannot_be_begun_leaves_nothing_behind(opened, fill, recordings):
    async with opened() as broker:
        session = broker.session(grants=[Grant("desk.*")])
        fill()
        with pytest.raises(StoreError) as caught:
            await session.execute_code(f"{ECHO}\n#{'x' * 30_000}", describe_references=True)
        assert not isinstance(caught.value, RunInterruptedError)
        assert recordings.entries() == []


async def test_an_import_that_cannot_be_written_to_its_end_leaves_nothing_behind(opened, recordings, tmp_path):
    async with opened() as broker:
        result = await broker.session(grants=[Grant("desk.*")]).execute_code(ECHO, describe_references=True)
    entry = recordings.find(result.run_id)
    export(recordings, entry, tmp_path / "run.jsonl")
    with Store() as elsewhere, Recordings(elsewhere, RecordingSettings()) as others:
        [[pages]] = elsewhere.execute("PRAGMA page_count")
        elsewhere.execute(f"PRAGMA max_page_count = {pages + 1}")
        with pytest.raises(StoreError, match="full"):
            import_file(others, tmp_path / "run.jsonl")
        assert others.entries() == []
        elsewhere.execute("PRAGMA max_page_count = 1000000")
        assert import_file(others, tmp_path / "run.jsonl").state == "completed"


async def test_a_run_without_content_is_said_not_to_go_on(opened, fill):
    async with opened(mode="metadata") as broker:
        told = await interrupted(broker, f"{ECHO}\n" * 200, on_call=fill)
    assert "it cannot be resumed: check what it did before you run it again" in told.what_to_do


async def test_whoever_repeats_the_request_of_a_run_that_was_cut_off_goes_on_with_it(opened, fill, free):
    async with opened() as broker:
        with in_request("request"):
            told = await interrupted(broker, ADD_THEN_ECHO, on_output=fill)
        free()
        assert broker.serving.requested_runs("request") == [told.run_id]


async def test_a_model_is_told_what_was_executed_and_what_is_to_be_done(opened, fill):
    async with opened() as broker:
        session = broker.session(grants=[Grant("desk.*")])
        await session.get_tool_details(["desk.add", "desk.echo"])
        cut_off = await session.dispatch("execute_code", {"code": ADD_THEN_ECHO}, on_output=fill)
        refused = await session.dispatch("execute_code", {"code": f"1\n#{'x' * 30_000}"})
    assert "1 call had been answered. Nothing else was sent. Tell the user" in cut_off.text
    assert "then `codemode resume run_" in cut_off.text
    assert refused.text.startswith("The script was not started: the broker cannot record what it does")
    assert (cut_off.is_error, refused.is_error) == (True, True)


async def test_a_run_for_which_there_is_no_worker_any_more_says_how_it_goes_on(opened, calls, monkeypatch):
    opened_workers = Workers.open

    async def refuse(*_):
        raise WorkerError("worker processes end as fast as they are started")

    def lose_it(*_):
        monkeypatch.setattr(Workers, "open", refuse)
        for worker in broker._sandbox._sandbox._workers.processes:
            worker.kill()

    async with opened() as broker:
        session = broker.session(grants=[Grant("desk.*")])
        await session.get_tool_details(["desk.add", "desk.echo"])
        cut_off = await session.dispatch("execute_code", {"code": ADD_THEN_ECHO}, on_call=lose_it)
        assert "1 call had been answered. Nothing else was sent. Tell the user" in cut_off.text
        refused = await session.dispatch("execute_code", {"code": "from tools import desk as d\nawait d.add(a=2)"})
        assert refused.text.startswith("The script was not started: the broker cannot run scripts now.")
        monkeypatch.setattr(Workers, "open", opened_workers)
        assert (await broker.session().resume("last")).value == [3, 30_000]
    assert [name for name, *_ in calls] == ["add", "echo"]


async def test_of_an_answer_that_cannot_be_written_down_nothing_is_held(opened, fill, free, calls):
    script = "from tools import desk\n[await desk.add(a=n) for n in range(3)]"
    async with opened() as broker:
        box = QuestionBox()
        session = broker.session(answerer=box)
        parked = await session.execute_code(script, describe_references=True, park=True)
        [asked] = box.open
        fill()
        box.reply(asked.id, [Grant("desk.add", scope="run", calls=2), Denial("desk.echo", "x" * 30_000)])
        with pytest.raises(RunInterruptedError):
            await session.wait_for(parked.run_id)
        assert (session.grants, calls) == ({}, [])
        free()
        again = await session.wait_for(parked.run_id)
        assert (again.outcome, calls) == ("parked", [])
        [asked] = box.open
        box.reply(asked.id, [Grant("desk.add", scope="run", calls=2)])
        waits = await session.wait_for(parked.run_id)
        assert [call.status for call in waits.calls] == ["ok", "ok", "waiting"]
    assert calls == [("add", 0, 2), ("add", 1, 2)]


@pytest.fixture
def begin_journal(recordings):
    """Return the journal of a run that has taken one step."""

    def begin(step):
        beginning = Beginning(
            run_id="run_0123456789abcdef", filename="x.py", script="1", manifest={}, seed=1, wall_ns=1, limits=Limits(),
            image="", tools=[], policy=None, versions={},
        )  # fmt: skip
        journal = RunJournal.begin(recordings, Redaction(), beginning)
        journal.stepped(PastStep(0, {}), step, ())
        return journal

    return begin


async def test_nothing_is_written_after_what_could_not_be(begin_journal, recordings, fill, free):
    journal = begin_journal(Step(calls=(Call(1, "desk.echo", {"text": "x" * 30_000}),)))
    fill()
    with pytest.raises(StoreError, match="the disk is full"):
        journal.asked(1)
    free()
    with pytest.raises(StoreError, match="the disk is full"):
        journal.asked(1)
    journal.close()
    recording = load(recordings, recordings.find("last"))
    assert (recording.line_count, recordings.find("last").state) == (1, "interrupted")


async def test_a_step_without_calls_is_written_at_once_and_one_with_calls_with_the_next_line(begin_journal, recordings):
    def written():
        return load(recordings, recordings.find("last")).line_count

    journal = begin_journal(Step(timer=1.0))
    assert written() == 2
    journal.stepped(PastStep(1, {}), Step(calls=(Call(1, "desk.echo", {}),)), ())
    assert written() == 2
    journal.asked(1)
    assert written() == 4
    journal.close()


async def test_what_waits_for_a_next_line_that_does_not_come_is_written_when_the_run_is_left(
    begin_journal, recordings, store
):
    store.execute("CREATE TABLE noted (what TEXT)")
    journal = begin_journal(Step(calls=(Call(1, "desk.echo", {}),)))
    journal.with_next(lambda: store.execute("INSERT INTO noted VALUES ('how call 1 ended')"))
    assert load(recordings, recordings.find("last")).line_count == 1
    journal.close()
    entry = recordings.find("last")
    assert (entry.state, entry.calls, entry.has_crashed) == ("interrupted", 1, False)
    assert list(load(recordings, entry).calls) == [1]
    assert store.execute("SELECT * FROM noted") == [("how call 1 ended",)]


async def test_nothing_is_written_after_a_line_of_its_own_that_could_not_be(begin_journal, recordings, fill, free):
    journal = begin_journal(Step(calls=(Call(1, "desk.echo", {}),)))
    journal.asked(1)
    fill()
    with pytest.raises(StoreError, match="the disk is full"):
        journal.kept(1, {"block": "x" * 30_000})
    free()
    with pytest.raises(StoreError, match="the disk is full"):
        journal.denied(1, "rule")
    journal.close()
    assert load(recordings, recordings.find("last")).line_count == 3


async def test_what_is_written_beside_a_line_is_written_at_the_end_where_the_line_is_lost(
    begin_journal, store, fill, free
):
    def tell(journal):
        with journal.together():
            journal.denied(1, "rule")
            journal.kept(1, {"block": "x" * 30_000})

    store.execute("CREATE TABLE noted (what TEXT)")
    journal = begin_journal(Step(calls=(Call(1, "desk.echo", {}),)))
    journal.with_next(lambda: store.execute("INSERT INTO noted VALUES ('how call 1 ended')"))
    fill()
    with pytest.raises(StoreError, match="the disk is full"):
        tell(journal)
    free()
    assert store.execute("SELECT * FROM noted") == []
    journal.close()
    assert store.execute("SELECT * FROM noted") == [("how call 1 ended",)]
