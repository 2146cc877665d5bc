"""What is written down of a run, how it is listed, and what leaves and comes back as a file."""

from __future__ import annotations

import json
import os
import re
import time
from functools import partial
from pathlib import Path

import anyio
import jsonschema
import pytest

from broker import Broker, Denial, Grant
from broker.errors import RecordingError, RunInterruptedError, StoreError
from broker.recordings.events import json_schema
from broker.recordings.files import read_file, read_recording
from broker.recordings.keeping.recordings import Recordings
from broker.recordings.keeping.transfer import export, import_file, load
from broker.recordings.redaction import Redaction
from broker.recordings.settings import RecordingSettings
from broker.recordings.showing.picture import picture_of
from broker.store import Store
from sandbox import Completed, Limits

pytestmark = pytest.mark.anyio

SCRIPT = """
import asyncio
from tools import desk, ToolError
print("begins")
numbers = await asyncio.gather(*(desk.add(a=n) for n in range(3)))
try:
    await desk.fail(reason="no luck")
except ToolError as error:
    print("caught", error)
big = await desk.echo(text="xyz", times=5000)
again = await desk.echo(text="xyz", times=5000)
print(len(big), big == again)
numbers
"""
SEARCH = 'Nothing was sent. Try search_tools({"query": "ud800 u202e"}).'
FUNCTIONS = "Nothing was called. Beside tools, a script has display(), read_bytes() and extract()."


async def test_a_recording_holds_everything_that_happened_in_order(run, recorded):
    result = await run(SCRIPT)
    recording = recorded()
    assert (recording.begun.run_id, recording.script, recording.limits) == (result.run_id, SCRIPT, Limits())
    assert recording.outcome == Completed([2, 3, 4])
    printed = [recording.load(text.text) for step in recording.steps for text in step.printed]
    assert "".join(printed) == result.stdout
    functions = [story.call.function for story in recording.calls.values()]
    assert functions == ["desk.add"] * 3 + ["desk.fail"] + ["desk.echo"] * 2
    assert [story.call.line for story in recording.calls.values()] == [5, 5, 5, 7, 10, 11]
    for story in recording.calls.values():
        assert story.sent is not None
        assert story.answered is not None
        assert story.made <= story.sent.at <= story.answered.at
    tools = {tool.tool: tool.digest for tool in recording.begun.tools}
    assert tools.keys() == {"add", "echo", "fail"}
    assert {story.sent.digest for story in recording.calls.values()} == set(tools.values())


FORGE = """
import sys
bridge = sys.modules["guest.main"]._run._bridge
def forge(number, function):
    future = bridge._waiting[number] = bridge._loop.create_future()
    bridge._outgoing[number] = [number, function, 1, {"a": 1}]
    return future
"""


@pytest.mark.parametrize(
    ("code", "error", "called"),
    [
        ("await forge(7, 'desk.add')", "", [7]),
        ("await forge(2**63, 'desk.add')", "a call's id is out of range", []),
        (
            "await forge(7, 'desk.add')\nawait forge(7, 'desk.add')",
            "a call's id does not follow the ones before it",
            [7],
        ),
        ("await forge(7, 'desk.' + 'x' * 1_000)", "a call's function has more than 1000 characters", []),
        ("await forge(7, '\\ud800.\\u202e')", r"There is no tool \ud800.\u202e. " + SEARCH, [7]),
        ("await forge(7, '\\ud800')", r"There is no function \ud800. " + FUNCTIONS, [7]),
    ],
)
async def test_what_a_script_forges_can_be_read_in_its_envelope_and_its_recording(run, recorded, code, error, called):
    result = await run("from tools import desk\n" + FORGE + code)
    assert json.loads(result.model_dump_json())["outcome"] == ("raised" if error else "completed")
    assert (result.error.message if result.error else "") == error
    recording = recorded()
    assert list(recording.calls) == called
    assert type(recording.outcome).__name__.lower() == result.outcome


async def test_a_run_took_as_long_in_the_list_as_in_its_picture(world):
    run, recordings, recorded, cut, resume, store = world("run", "recordings", "recorded", "cut", "resume", "store")
    await run("from tools import desk\nawait desk.add(a=1)\nawait desk.add(a=2)")
    [entry] = recordings.entries()
    assert (entry.began, entry.ended) == (recorded().begun.at, recorded().last_at)
    assert entry.ran / 1e9 == picture_of(recorded()).seconds
    before = [json.loads(line)["at"] for line in recordings.content.lines(entry.id)]
    cut(4)
    year = 365 * 86_400 * 10**9  # it lay for so long
    store.execute("UPDATE recording_line SET line = json_set(line, '$.at', json_extract(line, '$.at') - ?)", (year,))
    assert (await resume(entry.run_id)).outcome == "completed"
    [entry] = recordings.entries()
    assert entry.began == before[0] - year
    assert entry.ended - entry.began > year > entry.ran
    assert entry.ran == pytest.approx(picture_of(recorded()).seconds * 1e9)


@pytest.mark.usefixtures("deadline")
async def test_a_run_that_is_cut_off_ended_then_and_not_with_its_last_line(store, recordings, recorded, tmp_path):
    """Elsewhere that is not known: no line of an exported recording says it."""
    is_called = anyio.Event()

    async def wait() -> str:
        is_called.set()
        await anyio.sleep_forever()
        return ""

    async with Broker(servers={"desk": [wait]}, store=store) as broker, anyio.create_task_group() as tasks:
        run = partial(broker.session(grants=["desk.*"]).execute_code, describe_references=True)
        tasks.start_soon(run, "from tools import desk\nawait desk.wait()")
        await is_called.wait()
        cut_off = time.time_ns()
        tasks.cancel_scope.cancel()
    [entry] = recordings.entries()
    assert (entry.state, entry.has_crashed) == ("interrupted", False)
    assert entry.ended >= cut_off > recorded().last_at
    assert entry.ran == entry.ended - entry.began
    export(recordings, entry, tmp_path / "run.jsonl")
    with Store() as elsewhere, Recordings(elsewhere, RecordingSettings()) as others:
        import_file(others, tmp_path / "run.jsonl")
        [imported] = others.entries()
    assert (imported.began, imported.ended, imported.ran) == (entry.began, None, None)


async def test_a_grant_that_is_revoked_while_a_run_lies_adds_nothing_to_its_time(run, recordings, recorded, cut):
    await run("from tools import desk\nawait desk.add(a=1)\nawait desk.add(a=2)")
    cut(6)
    seconds = picture_of(recorded()).seconds
    recordings.append_revoked(recordings.find("last"), [0])
    assert recorded().revoked == {0}
    assert picture_of(recorded()).seconds == seconds


async def test_equal_large_values_are_kept_once(run, store):
    await run(SCRIPT)
    kept = [len(text) for (text,) in store.execute("SELECT text FROM recording_value")]
    assert sum(size > 14_000 for size in kept) == 1


async def test_a_large_outcome_is_written_out_once(run, recordings, recorded, monkeypatch):
    sizes = []
    clean = Redaction.json_text

    def seen(redaction, text):
        sizes.append(len(text))
        return clean(redaction, text)

    monkeypatch.setattr(Redaction, "json_text", seen)
    await run("list(range(50_000))")
    assert sum(size > 200_000 for size in sizes) == 1
    assert recorded().outcome == Completed(list(range(50_000)))
    stepped, ended = [json.loads(line) for line in recordings.content.lines(recordings.find("last").id)][-2:]
    assert stepped["outcome"] == ended["outcome"]


async def test_each_line_fits_the_published_schema(run, recordings, tmp_path):
    await run(SCRIPT)
    export(recordings, recordings.find("last"), tmp_path / "run.jsonl")
    validator = jsonschema.Draft202012Validator(json_schema())
    for line in (tmp_path / "run.jsonl").read_text().splitlines():
        validator.validate(json.loads(line))
    published = Path(__file__).parents[3] / "docs" / "recording.schema.json"
    assert json.loads(published.read_text()) == json_schema(), "codemode recordings schema > docs/recording.schema.json"


async def test_an_exported_recording_comes_back_the_same(run, recordings, tmp_path):
    await run(SCRIPT)
    entry = recordings.find("last")
    export(recordings, entry, tmp_path / "run.jsonl")
    with pytest.raises(RecordingError, match="is recorded already"):
        import_file(recordings, tmp_path / "run.jsonl")
    with Store() as elsewhere, Recordings(elsewhere, RecordingSettings()) as others:
        assert import_file(others, tmp_path / "run.jsonl").cut == ""
        found = others.find("last")
        assert (found.state, found.calls, found.is_imported) == ("completed", 6, True)
        original = load(recordings, entry)
        assert (found.began, found.ended) == (original.begun.at, original.last_at)
        assert load(others, found).calls == load(recordings, entry).calls
        export(others, found, tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "run.jsonl").read_bytes()


async def test_a_recording_goes_into_a_device_or_pipe_and_through_a_link_and_replaces_none_of_them(
    run, recordings, tmp_path
):
    await run("1")
    entry = recordings.find("last")
    export(recordings, entry, tmp_path / "run.jsonl")
    (tmp_path / "device").symlink_to("/dev/null")
    export(recordings, entry, tmp_path / "device")
    assert (tmp_path / "device").is_char_device()
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    export(recordings, entry, tmp_path / "pipe")
    assert os.read(reader, 1_000_000) == (tmp_path / "run.jsonl").read_bytes()
    os.close(reader)
    (tmp_path / "latest").symlink_to("old.jsonl")
    (tmp_path / "old.jsonl").write_text("old")
    export(recordings, entry, tmp_path / "latest")
    assert (tmp_path / "latest").is_symlink()
    assert (tmp_path / "old.jsonl").read_bytes() == (tmp_path / "run.jsonl").read_bytes()


async def test_every_value_that_a_line_names_by_digest_is_in_the_file(run, recordings, tmp_path):
    script = (
        "from tools import desk\nprint(await desk.echo(text='x' * 5000))\n"
        "await desk.draw(name='y' * 5000)\n'z' * 5000\n#" + "s" * 5000
    )
    await run(script)
    export(recordings, recordings.find("last"), tmp_path / "run.jsonl")
    file = read_file(tmp_path / "run.jsonl")
    named = re.findall(r'"sha256":"([0-9a-f]{64})","characters"', "".join(file.lines))
    assert set(named) == set(file.values)
    kinds = ("s" * 5000, "x" * 5000, "y" * 5000, "z" * 5000, '"image"')
    assert all(any(kind in text for text in file.values.values()) for kind in kinds)


async def test_metadata_says_what_was_called_but_not_with_what(run, recorded, store):
    await run(SCRIPT, mode="metadata")
    recording = recorded()
    assert [story.sent.tool for story in recording.calls.values()] == ["add"] * 3 + ["fail", "echo", "echo"]
    lines = "".join(line for (line,) in store.execute("SELECT line FROM recording_line"))
    assert not any(word in lines for word in ("no luck", "begins", "xyz", "gather"))
    with pytest.raises(RecordingError, match="metadata only"):
        _ = recording.script


async def test_metadata_says_who_decided_but_not_about_which_arguments(opened, store, recorded):
    class Refuses:
        async def answer(self, _):
            return [Denial("*", "never say that")]

    grant = Grant.parse('desk.echo {"/text": {"equals": "secretly"}}')
    script = "from tools import desk\nawait desk.echo(text='secretly'), await desk.echo(text='aloud')"
    async with opened(mode="metadata") as broker:
        session = broker.session(grants=[grant], answerer=Refuses())
        assert (await session.execute_code(script, describe_references=True)).is_refused
    allowed, denied = recorded().calls.values()
    assert (allowed.sent.grant, allowed.sent.by, denied.denied.by) == (0, "", "")
    lines = "".join(line for (line,) in store.execute("SELECT line FROM recording_line"))
    assert not any(word in lines for word in ("secretly", "aloud", "never"))


async def test_nothing_is_written_when_recording_is_off(run, recordings):
    result = await run(SCRIPT, mode="off")
    assert result.outcome == "completed"
    assert recordings.entries() == []


async def test_secrets_are_taken_out_wherever_they_stand(run, store, recorded):
    script = """
from tools import desk
key = 'hunter"2-ключ'
print(key, await desk.echo(text=key), await desk.add(a=4242424242))
"""
    await run(script, secrets=['hunter"2-ключ', "4242424242"])
    everything = json.dumps(store.execute("SELECT line FROM recording_line"), ensure_ascii=False)
    everything += json.dumps(store.execute("SELECT text FROM recording_value"), ensure_ascii=False)
    assert "hunter" not in everything
    assert "4242424242" not in everything
    recording = recorded()
    assert recording.begun.redactions == 2
    assert recording.load(recording.calls[1].call.arguments) == {"text": "[redacted]"}


@pytest.mark.parametrize(
    ("secret", "text", "cleaned", "count"),
    [
        ("hunter22", '["a hunter22, hunter22",{"hunter22":1}]', '["a [redacted], [redacted]",{"[redacted]":1}]', 3),
        ("pass/word!", '{"url":"https://x/?k=pass%2Fword%21"}', '{"url":"https://x/?k=[redacted]"}', 1),
        ("pass/word!", f'{{"hex":"{b"pass/word!".hex()}"}}', '{"hex":"[redacted]"}', 1),
        ('a"b\\ö', '{"short":"a\\"b\\\\ö"}', '{"short":"[redacted]"}', 1),
        ('a"b\\ö', '{"short":"a\\"b\\\\\\u00f6"}', '{"short":"[redacted]"}', 1),
        ("123456", '{"a":99123456,"b":123456,"c":1.5,"d":7}', '{"a":"99[redacted]","b":"[redacted]","c":1.5,"d":7}', 2),
        ("123456", '{"part":1.123456}', '{"part":"1.[redacted]"}', 1),
        ('","no","', '["yes","no","yes"]', '"[redacted]"', 1),
        ("hunter22", '{"other": 1}', '{"other": 1}', 0),
    ],
)
def test_a_secret_is_taken_out_of_a_json_text_in_whatever_form(secret, text, cleaned, count):
    redaction = Redaction([secret, ""])
    assert (redaction.json_text(text), redaction.count) == (cleaned, count)


async def test_a_run_that_was_cut_off_is_interrupted(run, recordings):
    script = "from tools import desk\nimport asyncio\nawait asyncio.wait_for(desk.wait(), 0.01)"
    assert (await run(script)).outcome == "raised"
    number = recordings.begin("run_0123456789abcdef", "full", "x.py")
    assert recordings.find("run_0123").state == "running"
    assert recordings.find("last").run_id == "run_0123456789abcdef"
    with Recordings(recordings.store, RecordingSettings()) as others:
        assert others.find("0123").state == "running"
        recordings.close()
        assert others.find("0123").state == "interrupted"
        others.remove([number])
        assert [entry.state for entry in others.entries()] == ["raised"]


@pytest.mark.parametrize("name", ["x", "run_x", "\udcff", "\x1b[2J", "x" * 1_000, "run_0000"])
async def test_a_name_that_no_run_has_is_told_in_short(recordings, name):
    with pytest.raises(RecordingError, match="there is no recording ") as caught:
        recordings.find(name)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("name", ["", "run_"])
async def test_no_beginning_at_all_is_no_run_even_where_there_is_one_alone(run, recordings, name):
    run_id = (await run("1")).run_id
    with pytest.raises(RecordingError, match="there is no recording "):
        recordings.find(name)
    assert recordings.find(run_id[:5]).run_id == run_id


async def test_the_calls_of_a_run_that_crashed_are_counted(run, recordings, store):
    run_id = (await run(SCRIPT)).run_id
    [counted] = [entry.calls for entry in recordings.entries()]
    assert counted > 0
    store.execute("UPDATE recording SET state = 'running', owner = 'gone', calls = 0")
    assert [(entry.run_id, entry.state, entry.calls) for entry in recordings.entries()] == [
        (run_id, "interrupted", counted)
    ]


async def test_recordings_are_listed_without_writing_anything(run, store):
    await run(SCRIPT)
    store.execute("UPDATE recording SET state = 'running', owner = 'gone'")
    before = store.execute("SELECT total_changes()")
    with Recordings(store, RecordingSettings()) as others:
        assert [entry.state for entry in others.entries()] == ["interrupted"]
        assert others._owner is None
    assert store.execute("SELECT total_changes()") == before


async def test_the_oldest_ended_recordings_make_room(run, recordings, store):
    first = (await run(SCRIPT)).run_id
    second = (await run(SCRIPT)).run_id
    store.execute("UPDATE recording SET bytes = 2 * 1048576 WHERE run_id = ?", (first,))
    await run(SCRIPT, max_mib=1)
    assert first not in {entry.run_id for entry in recordings.entries()}
    store.execute("UPDATE recording SET ended = 1 WHERE run_id = ?", (second,))
    await run(SCRIPT, max_days=1)
    assert second not in {entry.run_id for entry in recordings.entries()}
    values = store.execute("SELECT count(*) FROM recording_value")[0][0]
    recordings.remove([entry.id for entry in recordings.entries()])
    assert values > 0
    assert store.execute("SELECT count(*) FROM recording_value") == [(0,)]


async def test_one_that_is_too_large_by_itself_makes_room_before_any_other(run, recordings, store):
    old, huge = [(await run("1")).run_id for _ in range(2)]
    store.execute("UPDATE recording SET bytes = 2 * 1048576 WHERE run_id = ?", (huge,))
    last = (await run("1", max_mib=1)).run_id
    assert {entry.run_id for entry in recordings.entries()} == {old, last}


async def test_no_more_make_room_than_have_to_and_none_that_may_go_on(run, recordings, store):
    parked, interrupted, large, small = [(await run("1")).run_id for _ in range(4)]
    for run_id, state, size in (
        (parked, "parked", 100), (interrupted, "interrupted", 100), (large, "completed", 1048576),
        (small, "completed", 100),
    ):  # fmt: skip
        store.execute("UPDATE recording SET state = ?, bytes = ? WHERE run_id = ?", (state, size, run_id))
    last = (await run("1", max_mib=1)).run_id
    assert {entry.run_id for entry in recordings.entries()} == {parked, interrupted, small, last}
    store.execute("UPDATE recording SET ended = 1")
    newest = (await run("1", max_days=1)).run_id
    assert {entry.run_id for entry in recordings.entries()} == {parked, interrupted, newest}


@pytest.mark.parametrize(
    "script",
    [
        "await asyncio.gather(*(desk.echo(text=f'{n:04}', times=50_000) for n in range(100)))",
        "for n in range(100): await desk.echo(text=f'{n:04}', times=50_000)",
    ],
)
async def test_a_run_of_which_too_much_is_recorded_is_stopped_and_loses_no_answer(
    opened, recordings, store, calls, script
):
    async with opened(max_run_mib=1) as broker:
        session = broker.session(grants=["desk.*"])
        result = await session.execute_code(
            f"import asyncio\nfrom tools import desk\n{script}", describe_references=True
        )
        assert (result.stopped.limit, result.stopped.amount, result.stopped.line) == ("recording_bytes", 1048576, 3)
        [entry] = recordings.entries()
        most = 1048576 + 200_100 * Limits().calls_in_flight
        assert 1048576 <= entry.characters == recordings.content.size(entry.id) < most
        sent = [story for story in load(recordings, entry).calls.values() if story.sent is not None]
        assert len(calls) == len(sent) == sum(story.answered is not None for story in sent) < 100
        assert (await broker.replay(load(recordings, entry))).difference is None
        # As a crash just before the end leaves it.
        store.execute('DELETE FROM recording_line WHERE line LIKE \'{"event":"ended"%\'')
        store.execute("UPDATE recording SET state = 'interrupted'")
        again = await session.resume(entry.run_id)
        assert (again.stopped.limit, len(calls)) == ("recording_bytes", len(sent))


async def test_what_is_recorded_once_counts_once(run):
    script = "from tools import desk\nfor n in range(30):\n    await desk.echo(text='abcd', times=50_000)"
    assert (await run(script, max_run_mib=1)).outcome == "completed"


async def test_a_recording_grows_old_from_its_end_or_its_import_on(run, recordings, store, tmp_path):
    imported, resumed, old = [(await run("1")).run_id for _ in range(3)]
    export(recordings, recordings.find(imported), tmp_path / "run.jsonl")
    recordings.remove([recordings.find(imported).id])
    import_file(recordings, tmp_path / "run.jsonl")
    store.execute("UPDATE recording SET began = 1")
    store.execute("UPDATE recording SET ended = 2 WHERE run_id != ?", (resumed,))
    newest = (await run("1", max_days=1)).run_id
    assert {entry.run_id for entry in recordings.entries()} == {imported, resumed, newest}, f"{old} alone goes"
    store.execute("UPDATE recording SET imported_at = 2 WHERE run_id = ?", (imported,))
    last = (await run("1", max_days=1)).run_id
    assert {entry.run_id for entry in recordings.entries()} == {resumed, newest, last}


async def test_the_last_run_is_the_one_begun_last_here_also_where_the_clock_was_set_back(
    run, recordings, store, tmp_path
):
    imported, first, last = [(await run("1")).run_id for _ in range(3)]
    export(recordings, recordings.find(imported), tmp_path / "run.jsonl")
    recordings.remove([recordings.find(imported).id])
    import_file(recordings, tmp_path / "run.jsonl")
    store.execute("UPDATE recording SET began = 1 WHERE run_id = ?", (last,))
    assert recordings.entries()[-1].run_id == last
    assert recordings.find("last").run_id == last
    recordings.remove([recordings.find(one).id for one in (first, last)])
    assert recordings.find("last").run_id == imported


async def test_a_value_stays_while_a_recording_names_it(run, recordings, recorded):
    first, second = [(await run(SCRIPT)).run_id for _ in range(2)]
    answers = {n: story.answer for n, story in recorded().calls.items()}
    recordings.remove([recordings.find(first).id])
    assert recordings.find("last").run_id == second
    assert {n: story.answer for n, story in recorded().calls.items()} == answers


async def test_a_full_disk_stops_new_runs_and_keeps_what_was_written(run, opened, recordings, store, calls):
    before = (await run(SCRIPT)).run_id
    pages = store.execute("PRAGMA page_count")[0][0]
    store.execute(f"PRAGMA max_page_count = {pages + 16}")
    script = "from tools import desk\nawait desk.add(a=1)\n#" + "x" * 20_000
    async with opened() as broker:
        session = broker.session(grants=[Grant("desk.*")])

        async def until_full():
            while True:
                await session.execute_code(script, describe_references=True)
                calls.append("ended")

        with pytest.raises((StoreError, RunInterruptedError), match="the disk is full; free some space"):
            await until_full()
        assert calls[-1] == "ended"
        store.execute("PRAGMA max_page_count = 100000")
        assert (await session.execute_code(script, describe_references=True)).outcome == "completed"
    assert load(recordings, recordings.find(before)).outcome == Completed([2, 3, 4])


@pytest.fixture
async def exported(run, recordings, tmp_path):
    await run(SCRIPT)
    path = tmp_path / "run.jsonl"
    export(recordings, recordings.find("last"), path)
    return path


async def test_a_damaged_recording_is_not_exported(run, store, recordings, tmp_path):
    result = await run("1")
    entry = recordings.find("last")
    export(recordings, entry, tmp_path / "whole.jsonl")
    for line, said in (('{"sha256": 1', "it is not JSON"), ('{"sha256": 1}', "unable to extract tag")):
        store.execute("UPDATE recording_line SET line = ? WHERE number = 1", (line,))
        with pytest.raises(RecordingError, match=f"{result.run_id}: line 2: {said}"):
            export(recordings, entry, tmp_path / "run.jsonl")
    assert [path.name for path in tmp_path.glob("*.*")] == ["whole.jsonl"]


async def test_a_file_that_is_cut_short_is_read_up_to_there(exported):
    whole = exported.read_bytes()
    lines = whole.splitlines(keepends=True)
    steps = []
    for count in range(4, len(lines)):
        exported.write_bytes(b"".join(lines[:count]) + lines[count][:20])
        recording = read_recording(exported)
        assert recording.cut == f"is cut short in line {count + 1}"
        steps.append(len(recording.steps))
    assert steps == sorted(steps)
    assert steps[-1] > 3


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda _: b"", "is not a recording"),
        (lambda _: b"PK\x03\x04 something else\n", "is not a recording"),
        (lambda _: b'{"mcpServers": {}}\n', "is not a recording"),
        (lambda data: data.replace(b'"version":1', b'"version":2', 1), "of a newer codemode (format 2, known is 1)"),
        (lambda data: data.replace(b"no luck", b"my luck", 1), "was changed after it was exported"),
        (lambda data: data.replace(b'"line":7', b'"line":"x"', 1), "calls.0.line: input should be a valid integer"),
        (lambda data: data.replace(b'"call":4', b'"call":40', 1), "was changed"),
        (lambda data: data + b"{}\n", "follows the seal"),
        (lambda data: data.replace(b"xyzxyzxyz", b"xyzxyzxya", 1), "the value does not fit its digest"),
    ],
)
async def test_a_file_that_is_none_of_ours_or_was_changed_is_refused(exported, spoil, said):
    exported.write_bytes(spoil(exported.read_bytes()))
    with pytest.raises(RecordingError) as caught:
        read_recording(exported)
    assert said in str(caught.value)
    assert str(exported) in str(caught.value)


async def test_lines_that_contradict_each_other_are_refused(exported):
    lines = [line for line in exported.read_bytes().splitlines(keepends=True) if b'"event":"sealed"' not in line]
    answered = next(line for line in lines if b'"event":"answered"' in line)
    for spoiled, said in [
        ([*lines, answered], "is answered twice"),
        ([line for line in lines if line != answered], "handed in without an answer"),
        ([line for line in lines if b'"number":0' not in line], "was never made"),
        ([*lines, next(line for line in lines if b'"event":"begun"' in line)], "begins twice"),
        ([line.replace(b'"id":2,', b'"id":1,') for line in lines], "call 1 is made twice"),
    ]:
        exported.write_bytes(b"".join(spoiled))
        with pytest.raises(RecordingError, match=said):
            read_recording(exported)
