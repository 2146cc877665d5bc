"""What people had said in a run holds when it goes on after a crash: grants, what is left of them, refusals, quotas."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import anyio.lowlevel
import pytest

from broker import Denial, Grant, PolicyConfig, Verdict
from broker.audit.chain import entries
from broker.authorization.choices import Choice, answers_of
from broker.authorization.kept_grants import KeptGrants
from broker.authorization.predicates import Predicate
from broker.recordings.journal.recorded_grants import grants_given_back
from broker.recordings.keeping.recordings import Recordings
from broker.recordings.keeping.transfer import export, import_file, load
from broker.recordings.settings import RecordingSettings
from broker.texts.call_texts import taken_back

pytestmark = pytest.mark.anyio

LOOP = """
from tools import desk
done = []
for n in range(6):
    try:
        done.append(await desk.add(a=n, b=0))
    except PermissionError as error:
        done.append(str(error))
done
"""


class Person:
    """Answers with prepared choices, and counts how often."""

    def __init__(self, *choices, answers=None):
        self.choices = list(choices)
        self.answers = answers
        self.asked = []

    async def answer(self, question):
        self.asked.append([call.arguments for call in question.calls])
        return self.answers if self.answers is not None else answers_of(question, [self.choices.pop(0)])


@pytest.fixture
def crash(store, recordings):
    """Leave of the newest recording what was written until a line of a kind, so many of that kind included."""

    def crash_after(event, count):
        entry = recordings.find("last")
        lines = [line for (line,) in store.execute("SELECT line FROM recording_line ORDER BY number")]
        places = [number for number, line in enumerate(lines) if line.startswith(f'{{"event":"{event}"')]
        store.execute("DELETE FROM recording_line WHERE number > ?", (places[count - 1],))
        store.execute("UPDATE recording SET state = 'running', owner = 'gone', ended = NULL WHERE id = ?", (entry.id,))

    return crash_after


async def test_what_was_allowed_for_the_run_is_not_asked_again(world):
    run, resume, crash, calls = world("run", "resume", "crash", "calls")
    result = await run(LOOP, answerer=Person(Choice(decision="any")), nothing=True)
    assert result.value == list(range(6))
    crash("answered", 3)
    calls.clear()
    again = await resume(result.run_id, answerer=(nobody := Person(Choice(decision="deny"))))
    assert (again.value, nobody.asked) == (list(range(6)), [])
    assert calls == [("add", n, 0) for n in (3, 4, 5)]


async def test_what_is_left_of_a_number_of_calls_is_left_after_every_crash(world):
    run, resume, crash, calls = world("run", "resume", "crash", "calls")
    result = await run(
        LOOP,
        answerer=Person(Choice(decision="any", calls=4), Choice(decision="deny"), Choice(decision="deny")),
        nothing=True,
    )
    assert result.value[:4] == [0, 1, 2, 3]
    for answered in (1, 2, 3, 4):
        crash("answered", answered)
        calls.clear()
        later = Person(Choice(decision="deny", note="enough"), Choice(decision="deny", note="enough"))
        again = await resume(result.run_id, answerer=later)
        assert again.value == [0, 1, 2, 3, "desk.add was refused: enough.", "desk.add was refused: enough."]
        assert [asked[0]["a"] for asked in later.asked] == [4, 5]
        assert len(calls) == 4 - answered


async def test_an_answer_to_these_calls_is_known_after_a_crash_before_they_were_sent(world):
    run, resume, crash, calls = world("run", "resume", "crash", "calls")
    script = (
        "import asyncio\nfrom tools import desk\n"
        "[str(x) for x in await asyncio.gather(*(desk.add(a=n, b=0) for n in range(4)), return_exceptions=True)]"
    )
    said = [Verdict((0, 1), allow=True), Verdict((2,), allow=False, note="not 2")]
    person = Person(answers=said)
    result = await run(script, answerer=person, nothing=True)
    assert result.value == ["0", "1", "desk.add was refused: not 2.", "desk.add was refused."]
    crash("decided", 1)
    calls.clear()
    again = await resume(result.run_id, answerer=(nobody := Person()))
    assert (again.value, nobody.asked) == (result.value, [])
    assert sorted(calls) == [("add", 0, 0), ("add", 1, 0)]


async def test_of_an_imported_run_an_answer_that_allows_counts_for_nothing_and_one_that_refuses_holds(world):
    run, resume, crash, calls = world("run", "resume", "crash", "calls")
    recordings, tmp_path = world("recordings", "tmp_path")
    script = (
        "import asyncio\nfrom tools import desk\n"
        "[str(x) for x in await asyncio.gather(*(desk.add(a=n, b=0) for n in range(2)), return_exceptions=True)]"
    )
    person = Person(answers=[Verdict((0,), allow=True), Verdict((1,), allow=False, note="not 1")])
    result = await run(script, answerer=person, nothing=True)
    assert result.value == ["0", "desk.add was refused: not 1."]
    crash("decided", 1)
    entry = recordings.find("last")
    export(recordings, entry, tmp_path / "run.jsonl")
    recordings.remove([entry.id])
    import_file(recordings, tmp_path / "run.jsonl")
    calls.clear()
    waits = await resume(result.run_id, parks=True, any_principal=True)
    assert (waits.outcome, [call.status for call in waits.calls], calls) == ("parked", ["waiting", "refused"], [])
    again = await resume(result.run_id, any_principal=True, answerer=(asked := Person(Choice(decision="these"))))
    assert (again.value, [len(one) for one in asked.asked]) == (result.value, [1])


@pytest.mark.parametrize(("pattern", "outcome"), [("desk.add", "completed"), ("desk.a*", "parked")])
async def test_a_number_of_calls_of_several_tools_is_not_given_back_to_each(world, pattern, outcome):
    run, resume, crash, calls = world("run", "resume", "crash", "calls")
    person = Person(answers=[Grant(pattern, scope="run", calls=6)])
    result = await run(LOOP, answerer=person, nothing=True)
    assert result.value == list(range(6))
    crash("answered", 2)
    calls.clear()
    assert (await resume(result.run_id, parks=True)).outcome == outcome
    assert len(calls) == (4 if outcome == "completed" else 0)


@pytest.mark.parametrize(("calls_left", "outcome"), [(None, "completed"), (6, "parked")])
async def test_a_session_grant_for_a_number_of_calls_is_not_given_back(world, calls_left, outcome):
    opened, resume, crash, calls = world("opened", "resume", "crash", "calls")
    async with opened() as broker:
        session = broker.session(grants=[Grant("desk.add", calls=calls_left)])
        result = await session.execute_code(LOOP, describe_references=True)
    assert result.value == list(range(6))
    crash("answered", 2)
    calls.clear()
    assert (await resume(result.run_id, parks=True)).outcome == outcome
    assert len(calls) == (4 if outcome == "completed" else 0)


@pytest.mark.parametrize("is_revoked", [False, True])
async def test_a_permanent_grant_holds_for_a_run_that_goes_on_while_the_store_has_it(world, is_revoked):
    run, resume, crash, calls, store = world("run", "resume", "crash", "calls", "store")
    result = await run(LOOP, answerer=Person(Choice(decision="any", scope="always")), nothing=True)
    assert result.value == list(range(6))
    crash("answered", 2)
    [kept] = KeptGrants(store).every()
    if is_revoked:
        KeptGrants(store).revoke(kept.id)
    calls.clear()
    assert (await resume(result.run_id, parks=True)).outcome == ("parked" if is_revoked else "completed")
    assert len(calls) == (0 if is_revoked else 4)


async def test_grants_of_a_run_that_goes_on_are_numbered_behind_those_that_it_had(world):
    run, resume, crash, recordings = world("run", "resume", "crash", "recordings")
    result = await run(LOOP, answerer=Person(Choice(decision="any")), nothing=True)
    crash("answered", 2)
    assert (await resume(result.run_id, "desk.a*")).outcome == "completed"
    recording = load(recordings, recordings.find("last"))
    assert [grant.pattern for grant in recording.grants] == ["desk.add", "desk.a*"]
    assert recording.uses == {0: 2, 1: 4}


async def test_a_refusal_for_the_run_holds_after_a_crash(world):
    run, resume, crash = world("run", "resume", "crash")
    person = Person(answers=[Denial("desk.add", "never", scope="run")])
    result = await run(LOOP, answerer=person, nothing=True)
    crash("denied", 2)
    again = await resume(result.run_id, "desk.*")
    assert again.value == ["desk.add was refused: never."] * 6


async def test_a_refusal_of_some_arguments_refuses_no_others_after_a_crash(world):
    run, resume, crash = world("run", "resume", "crash")
    only_two = Predicate.parse({"/a": {"equals": 2}})
    person = Person(answers=[Grant("desk.add", scope="run"), Denial("desk.add", "not 2", only_two, scope="run")])
    result = await run(LOOP, answerer=person, nothing=True)
    assert result.value == [0, 1, "desk.add was refused: not 2.", 3, 4, 5]
    crash("answered", 1)
    assert (await resume(result.run_id)).value == result.value


async def test_a_call_whose_grant_is_taken_back_while_it_waits_for_its_turn_is_not_written_down_as_sent(world):
    opened, calls, recordings, store = world("opened", "calls", "recordings", "store")
    script = (
        "import asyncio\nfrom tools import desk\n"
        "await asyncio.gather(*(desk.add(a=n) for n in range(2)), return_exceptions=True)\nNone"
    )
    policy = PolicyConfig.model_validate({"quotas": [{"tools": ["desk.*"], "concurrent": 1}]})
    async with opened(policy=policy) as broker:
        session = broker.session(grants=[Grant("desk.*")])
        result = await session.execute_code(script, describe_references=True, on_call=lambda *_: session.revoke("g1"))
    assert [(call.decision, call.status) for call in result.calls] == [("allowed", "ok"), ("denied", "refused")]
    made, refused = load(recordings, recordings.find("last")).calls.values()
    assert (made.sent is not None, made.denied, refused.sent) == (True, None, None)
    assert refused.denied is not None
    assert refused.denied.by == taken_back("desk.add")
    assert len(calls) == 1
    audited = [entry.record for entry in entries(store)]
    assert [one["decision"] for one in audited if one["kind"] == "attempt"] == ["allowed", "denied"]


async def test_a_grant_that_was_revoked_is_not_given_back(world):
    opened, resume, crash, calls = world("opened", "resume", "crash", "calls")
    async with opened() as broker:
        session = broker.session(answerer=Person(Choice(decision="any"), *[Choice(decision="deny")] * 4))

        def revoke(_record, ended, _made):
            if ended == 2:
                ((grant_id, held),) = session.grants.items()
                assert held.scope == "run"
                assert session.revoke(grant_id)

        result = await session.execute_code(LOOP, describe_references=True, on_call=revoke)
    assert result.value[:3] == [0, 1, "desk.add was refused."]
    crash("answered", 2)
    calls.clear()
    again = await resume(result.run_id, parks=True)
    assert (again.outcome, calls) == ("parked", [])


async def test_a_session_grant_that_is_revoked_while_its_run_is_parked_is_not_given_back(world):
    opened, resume, calls = world("opened", "resume", "calls")
    script = "from tools import desk\nawait desk.echo(text='x')\nawait desk.add(a=1)"
    async with opened() as broker:
        session = broker.session(grants=[Grant("desk.add")], parks=True)
        parked = await session.execute_code(script, describe_references=True)
        assert session.revoke("g1")
        session._desk.book.add(Grant("desk.echo"))
        again = await session.resume(parked.run_id)
        assert (parked.outcome, again.outcome, calls) == ("parked", "parked", [("echo", "x")])
    # Nor later, by a process that knows nothing of it.
    later = await resume(parked.run_id, parks=True)
    assert (later.outcome, calls) == ("parked", [("echo", "x")])


async def test_a_grant_that_is_revoked_while_its_run_is_parked_stays_so_when_the_process_dies_then(world):
    opened, resume, calls = world("opened", "resume", "calls")
    zone = timezone(timedelta(hours=1), "here")
    grant = Grant("desk.add", expires_at=datetime.now(zone) + timedelta(days=1))
    script = "from tools import desk\nawait desk.echo(text='x')\nawait desk.add(a=1)"
    async with opened() as broker:
        session = broker.session(grants=[grant, Grant("desk.fail")], parks=True)
        parked = await session.execute_code(script, describe_references=True)
        assert session.revoke("g2")
        assert session.revoke("g1")
    again = await resume(parked.run_id, "desk.echo", parks=True)
    assert (again.outcome, calls) == ("parked", [("echo", "x")])


async def test_a_grant_that_is_revoked_while_a_run_of_another_session_is_parked_holds_in_that(world):
    opened, resume, calls = world("opened", "resume", "calls")
    script = "from tools import desk\nawait desk.echo(text='x')\nawait desk.add(a=1)"
    async with opened() as broker:
        one, other = (broker.session(grants=[Grant("desk.add")], parks=True) for _ in range(2))
        parked = await one.execute_code(script, describe_references=True)
        assert other.revoke("g1")
    again = await resume(parked.run_id, "desk.echo")
    assert (again.value, calls) == (3, [("echo", "x"), ("add", 1, 2)])


async def test_that_a_grant_was_taken_back_is_written_into_a_run_that_waits_and_into_no_other(world):
    run, crash, recordings = world("run", "crash", "recordings")
    await run(LOOP, "desk.add")
    entry = recordings.find("last")
    before = list(recordings.content.lines(entry.id))
    recordings.append_revoked(entry, [0])
    assert list(recordings.content.lines(entry.id)) == before
    crash("answered", 2)
    recordings.append_revoked(entry, [0])
    assert load(recordings, entry).revoked == {0}


async def test_a_session_grant_that_is_revoked_while_its_run_goes_on_again_is_revoked_in_it(world):
    opened, calls = world("opened", "calls")
    async with opened() as broker:
        session = broker.session(grants=[Grant("desk.add")], parks=True)
        script = LOOP.replace("done = []", "done = []\nawait desk.echo(text='x')")
        parked = await session.execute_code(script, describe_references=True)
        session._desk.book.add(Grant("desk.echo"))
        held = []

        def revoke(_record, ended, _made):
            if ended == 3:
                held.append(len(session.grants))
                assert session.revoke("g1")
                held.append(len(session.grants))

        again = await session.resume(parked.run_id, on_call=revoke)
    assert (again.outcome, held) == ("parked", [3, 1])
    assert calls == [("echo", "x"), ("add", 0, 0), ("add", 1, 0)]


@pytest.mark.parametrize("before", [[], ["desk.add"]], ids=["in the run", "beforehand"])
async def test_a_grant_holds_for_the_definition_that_was_shown_and_in_no_other_store(world, before):
    run, resume, crash, calls, store = world("run", "resume", "crash", "calls", "store")
    recordings, tmp_path = world("recordings", "tmp_path")
    result = await run(LOOP, *before, answerer=Person(Choice(decision="any")), nothing=not before)
    crash("answered", 3)
    entry = recordings.find("last")
    export(recordings, entry, tmp_path / "run.jsonl")
    (tool,) = load(recordings, entry).begun.tools
    store.execute("UPDATE recording_line SET line = replace(line, ?, ?)", (tool.digest, "sha256:" + "0" * 64))
    calls.clear()
    assert (await resume(result.run_id, parks=True)).outcome == "parked"
    recordings.remove([entry.id])
    import_file(recordings, tmp_path / "run.jsonl")
    assert (await resume(result.run_id, parks=True, any_principal=True)).outcome == "parked"
    assert calls == []


async def test_a_grant_for_another_definition_than_the_run_began_with_is_not_given_back(world):
    opened, resume, crash, calls = world("opened", "resume", "crash", "calls")
    async with opened() as broker:
        session = broker.session(
            grants=[Grant("desk.add", "sha256:" + "0" * 64)], answerer=Person(Choice(decision="these"))
        )
        result = await session.execute_code("from tools import desk\nawait desk.add(a=1)", describe_references=True)
    assert result.value == 3
    crash("asked", 1)
    calls.clear()
    assert (await resume(result.run_id, parks=True)).outcome == "parked"
    assert calls == []


async def test_a_grant_that_lapsed_before_the_run_began_is_not_given_back(world):
    opened, resume, crash, calls, recordings = world("opened", "resume", "crash", "calls", "recordings")
    async with opened() as broker:
        yes = Person(Choice(decision="these"))
        session = broker.session(grants=[Grant("desk.*")], answerer=yes)
        await broker.wait_until_settled()
        session._desk.see(replace(broker.catalog.lookup("desk.add").spec, description="Was another."))
        result = await session.execute_code("from tools import desk\nawait desk.add(a=1)", describe_references=True)
        assert (result.value, len(yes.asked)) == (3, 1)
    assert load(recordings, recordings.find("last")).grants == []
    crash("asked", 1)
    calls.clear()
    assert (await resume(result.run_id, parks=True)).outcome == "parked"
    assert calls == []


async def test_a_quota_for_a_run_goes_on_counting(world):
    run, resume, crash, calls = world("run", "resume", "crash", "calls")
    policy = PolicyConfig.model_validate({"quotas": [{"tools": ["desk.*"], "per_run": 4}]})
    result = await run(LOOP, "desk.add", policy=policy)
    assert result.value[:4] == [0, 1, 2, 3]
    assert "the quota 1 (4 calls in a run) is used up" in result.value[4]
    crash("answered", 3)
    calls.clear()
    again = await resume(result.run_id, policy=policy)
    assert again.value == result.value
    assert calls == [("add", 3, 0)]


async def test_a_run_is_resumed_for_its_own_principal_and_not_where_it_was_stopped_on_purpose(world):
    opened, crash, calls, recordings, store = world("opened", "crash", "calls", "recordings", "store")
    rule = {"tools": ["desk.*"], "principals": ["ada"], "sessions": ["hers"], "effect": "allow"}
    policy = PolicyConfig.model_validate({"rules": [rule]})
    async with opened(policy=policy) as broker:
        session = broker.session(principal="ada", name="hers")
        assert (await session.execute_code(LOOP, describe_references=True)).value == list(range(6))
    crash("answered", 4)
    store.execute("UPDATE recording SET state = 'interrupted', owner = ''")
    calls.clear()
    async with opened(policy=policy) as broker:
        assert broker.resume_interrupted() == 0
        store.execute("UPDATE recording SET state = 'running', owner = 'gone'")
        assert broker.resume_interrupted() == 1
        while recordings.find("last").state in {"running", "interrupted"}:
            await anyio.lowlevel.checkpoint()
    assert recordings.find("last").state == "completed"
    assert calls == [("add", 4, 0), ("add", 5, 0)]


async def test_what_resume_was_given_holds_after_the_next_crash(world):
    run, resume, crash, calls, store = world("run", "resume", "crash", "calls", "store")
    with Recordings(store, RecordingSettings()):
        result = await run(LOOP, answerer=Person(*[Choice(decision="these")] * 6), nothing=True)
        crash("answered", 2)
        assert (await resume(result.run_id, "desk.add")).value == list(range(6))
        crash("answered", 4)
        calls.clear()
        assert (await resume(result.run_id)).value == list(range(6))
    assert calls == [("add", 4, 0), ("add", 5, 0)]


async def test_pictures_are_there_after_a_crash(world):
    run, resume, crash = world("run", "resume", "crash")
    script = """
from tools import desk
[first] = await desk.draw(name="one")
display(first)
[second] = await desk.draw(name="two")
await desk.add(a=1)
display(second)
[third] = await desk.draw(name="three")
display(third)
"""
    result = await run(script)
    assert result.outcome == "completed", result
    assert [block["mimeType"] for block in result.displayed] == ["image/png"] * 3
    for answered in range(1, 7):
        crash("answered", answered)
        assert (await resume(result.run_id, unknown="fail")).displayed == result.displayed


async def test_a_secret_in_a_grant_is_not_written_down(world):
    opened, recordings = world("opened", "recordings")
    async with opened(secrets=["hunter2hunter2"]) as broker:
        grant = Grant.parse('desk.echo {"/text": {"equals": "hunter2hunter2"}}')
        session = broker.session(grants=[grant], answerer=Person(answers=[Denial("*", "not hunter2hunter2")]))
        script = "from tools import desk\nawait desk.echo(text='hunter2hunter2'), await desk.echo(text='x')"
        assert (await session.execute_code(script, describe_references=True)).is_refused
    found = recordings.find("last")
    lines = "".join(recordings.content.lines(found.id))
    assert "hunter2" not in lines
    assert "[redacted]" in lines
    assert list(grants_given_back(load(recordings, found))) == [], "it may hold for more without it"
