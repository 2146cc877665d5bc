"""Files that anybody may have written: whatever is in one, it is read, or refused with a sentence."""

from __future__ import annotations

import contextlib
import hashlib
import json
import signal
import subprocess
import sys
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker.authorization.policy import Policy
from broker.calls.content_blocks import ContentBlocks
from broker.cli.show import shown
from broker.errors import RecordingError
from broker.recordings import files
from broker.recordings import lines as lines_module
from broker.recordings import recording as recording_module
from broker.recordings.files import read_file, read_recording
from broker.recordings.journal.recorded_grants import denials_given_back, grants_given_back
from broker.recordings.journal.retracing import past_of
from broker.recordings.keeping.entries import Times
from broker.recordings.keeping.transfer import exported, import_file, load_whole
from broker.recordings.parts import MAX_INTEGER, ByDigest, Inline
from broker.recordings.recording import MAX_USED
from broker.recordings.replay.compare import compare_recordings
from broker.recordings.replay.policy_replay import judge_recording
from broker.recordings.replay.rerun import RecordedAnswers
from broker.recordings.showing.html_page import html_page
from broker.recordings.showing.picture import picture_of
from broker.redaction import Redactor
from sandbox import Limits

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLE = Path(__file__).parents[3] / "examples" / "history" / "recording.jsonl"
LINES = EXAMPLE.read_bytes().splitlines(keepends=True)[:-1]
SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
WORDS = [b"null", b"-1", b"[]", b"{}", b'"x"', b"1e999", b'{"value":', b'"sha256":', b"\x00", b"\xff", b"9" * 400]


def use(path):
    """Do with a recording what needs no sandbox."""
    recording = read_recording(path)
    html_page(recording, picture_of(recording))
    judge_recording(recording, Policy())
    RecordedAnswers(recording)
    past_of(recording, goes_on=False)
    _ = (recording.outcome, recording.limits)
    assert not compare_recordings(recording, recording)


class Edited(bytes):
    """The content of a file, not all of which is printed when a test fails."""

    __slots__ = ()

    def __repr__(self) -> str:
        return next((f"{mine!r} for {theirs!r}" for mine, theirs in self._lines() if mine != theirs), "unchanged")

    def _lines(self) -> Iterator[tuple[bytes, bytes]]:
        return zip(self.splitlines(keepends=True), LINES, strict=False)


@st.composite
def edits(draw):
    """Lines in which something is replaced, removed, repeated or moved."""
    lines = list(LINES)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from(["replace", "value", "remove", "repeat", "swap"])):
            case "replace":
                line = lines[at]
                place = draw(st.integers(0, len(line) - 1))
                word = draw(st.sampled_from(WORDS) | st.binary(max_size=4))
                lines[at] = line[:place] + word + line[place + draw(st.integers(0, 12)) :]
            case "value":
                event = json.loads(draw(st.sampled_from(LINES)))
                key = draw(st.sampled_from(sorted(event)))
                event[key] = draw(st.sampled_from([None, -1, 10**30, "x", [], {}, {"value": {"error": 1}}, True]))
                lines[at] = json.dumps(event).encode() + b"\n"
            case "remove":
                del lines[at]
            case "repeat":
                lines.insert(draw(st.integers(0, len(lines))), lines[at])
            case "swap":
                other = draw(st.integers(0, len(lines) - 1))
                lines[at], lines[other] = lines[other], lines[at]
    return Edited(b"".join(lines))


@settings(max_examples=200, deadline=None, suppress_health_check=SLOW)
@given(edits())
def test_an_edited_recording_is_used_or_refused(tmp_path, data):
    path = tmp_path / "run.jsonl"
    path.write_bytes(data)
    with contextlib.suppress(RecordingError):
        use(path)


def test_the_recording_as_it_is_can_be_used():
    use(EXAMPLE)


def with_line(folder, **event):
    """The example's recording, without its seal, with one more line."""
    path = folder / "run.jsonl"
    lines = EXAMPLE.read_text().splitlines(keepends=True)[:-1]
    path.write_text("".join([*lines, json.dumps({"at": 1, **event}), "\n"]))
    return path


def test_what_a_foreign_recording_says_that_people_said_allows_nothing(tmp_path):
    everything = {"pattern": "*", "scope": "run"}
    said = {"call": 1, "digest": "", "allow": True}
    recording = read_recording(with_line(tmp_path, event="decided", by="me", calls=[said], grants=[everything]))
    assert (len(recording.grants), list(grants_given_back(recording))) == (5, [])
    refusal = {"pattern": "*", "arguments": {"/a": {"nonsense": 1}}}
    recording = read_recording(with_line(tmp_path, event="decided", by="me", calls=[], denials=[refusal]))
    (denial,) = denials_given_back(recording)
    assert denial.pattern == "*", "a denial that cannot be read denies all"


def test_an_amount_that_is_no_number_of_ours_is_refused(tmp_path):
    stopped = {"value": {"stopped": {"limit": "cpu_seconds", "amount": 10**400}}}
    with pytest.raises(RecordingError, match="the outcome is none that there is"):
        use(with_line(tmp_path, event="ended", outcome=stopped))


def with_beginning(folder, **begun):
    """The example's recording, without its seal, whose first event says something else."""
    path = folder / "run.jsonl"
    lines = [json.loads(line) for line in EXAMPLE.read_text().splitlines()[:-1]]
    next(line for line in lines if line["event"] == "begun").update(begun)
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    return path


def test_a_foreign_script_may_use_no_more_than_any_is_given(tmp_path):
    most = dict.fromkeys(Limits.__annotations__, 1e300) | {"depth": 200}
    assert read_recording(with_beginning(tmp_path, limits=most)).limits == MAX_USED
    assert read_recording(with_beginning(tmp_path, limits={"calls": 5})).limits == Limits(calls=5)
    foreign = read_recording(with_beginning(tmp_path, limits={"calls": 1e300}))
    foreign.is_imported = False
    assert foreign.limits == Limits(calls=int(1e300)), "a run of our own is replayed with what it had"


@pytest.mark.parametrize(
    ("begun", "said"),
    [
        ({"limits": {"calls": float("inf")}}, "its limits are not ours: cannot convert float infinity to integer"),
        ({"limits": {"wall_seconds": float("nan")}}, "its limits are not ours: wall_seconds must be positive"),
        ({"script": {"value": "1\n" * 2**20 + "1"}}, "the script has 2097153 characters, and 2097152 are allowed"),
    ],
)
def test_a_script_that_could_not_have_been_run_here_is_refused(tmp_path, begun, said):
    recording = read_recording(with_beginning(tmp_path, **begun))
    with pytest.raises(RecordingError, match=said):
        _ = (recording.script, recording.limits)


@pytest.mark.parametrize("word", ["\x1b[2J\x07\u202ename", "name" * 100_000], ids=["terminal sequence", "long"])
@pytest.mark.parametrize("place", ["field", "event", "limit"])
def test_a_name_that_a_file_makes_up_is_shown_inert_and_cut(tmp_path, place, word):
    changed: dict[str, Any] = {"field": {word: 1}, "event": {"event": word}, "limit": {"limits": {word: 1}}}[place]
    lines = [json.loads(line) for line in LINES]
    next(line for line in lines if line["event"] == "begun").update({} if place == "event" else changed)
    lines[-1].update(changed if place == "event" else {})
    path = tmp_path / "run.jsonl"
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    with pytest.raises(RecordingError) as refused:
        _ = read_recording(path).limits
    said = str(refused.value).removeprefix(str(path))
    assert "name" in said
    assert said.isprintable()
    assert len(said) < 600


@pytest.mark.parametrize("details", [5, "x", [1], None])
def test_an_error_whose_details_are_none_of_ours_is_refused(tmp_path, details):
    lines = EXAMPLE.read_text().splitlines()[:-1]
    number = next(number for number, line in enumerate(lines) if json.loads(line)["event"] == "answered")
    for said, fits in (({"server": "git"}, True), (details, False)):
        error = {"kind": "ToolError", "message": "m", "details": said}
        event = json.loads(lines[number]) | {"result": {"value": {"error": error}}}
        path = tmp_path / "run.jsonl"
        path.write_text("\n".join([*lines[:number], json.dumps(event), *lines[number + 1 :], ""]))
        with contextlib.nullcontext() if fits else pytest.raises(RecordingError, match="neither a value nor an error"):
            RecordedAnswers(read_recording(path))


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no file without an end")
def test_a_name_of_a_file_without_an_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 1_000_000)
    (tmp_path / "run.jsonl").symlink_to("/dev/zero")
    with pytest.raises(RecordingError, match="it has more than the 1000000 bytes that are allowed"):
        read_recording(tmp_path / "run.jsonl")


MANY: list[list[object]] = [[]] * 600
KEPT = json.dumps(MANY)
DIGEST = hashlib.sha256(KEPT.encode()).hexdigest()


@pytest.mark.parametrize(
    "event",
    [
        {"event": "ended", "outcome": {"value": MANY}},
        {"event": "value", "sha256": DIGEST, "text": KEPT},
    ],
    ids=["in a line", "in a value that is kept"],
)
def test_a_line_of_too_many_values_is_not_decoded(tmp_path, monkeypatch, event):
    path = tmp_path / "run.jsonl"
    lines = EXAMPLE.read_text().splitlines(keepends=True)[:-1]
    path.write_text("".join([*lines, json.dumps(event | ({"at": 1} if event["event"] == "ended" else {})), "\n"]))
    assert len(read_file(path).lines) + len(read_file(path).values) == len(lines) + 1
    monkeypatch.setattr(lines_module, "MAX_LINE_VALUES", 1_000)
    with pytest.raises(RecordingError, match=f"line {len(lines) + 1}: it has more than the 1,000 values"):
        read_file(path)


def test_events_of_too_many_values_are_refused_and_commas_in_a_text_are_none(tmp_path, monkeypatch):
    monkeypatch.setattr(lines_module, "MAX_LINE_VALUES", 1_000)
    text = {"stream": "stdout", "text": {"value": "," * 5_000}}
    path = with_line(tmp_path, event="ended", outcome={"value": {}}, printed=[text])
    assert read_recording(path).calls
    monkeypatch.setattr(lines_module, "MAX_VALUES", 1_000)
    with pytest.raises(RecordingError, match=r"run\.jsonl: it has more than the 1,000 values that are allowed"):
        read_recording(path)


SPOILT = {
    "a line": (
        "UPDATE recording_line SET line = substr(line, 1, 20) || hex(zeroblob(33554433)) WHERE number = 9",
        r"run_\w+: line 10: it has 67108886 bytes, and 67108864 are allowed",
    ),
    "a line behind an end of text": (
        "UPDATE recording_line SET line = char(0) || hex(zeroblob(33554433)) WHERE number = 9",
        r"run_\w+: line 10: it has 67108867 bytes, and 67108864 are allowed",
    ),
    "lines of values": (
        "UPDATE recording_line SET line = '\"sha256\":' || replace(hex(zeroblob(2000001)), '00', '[]') WHERE number=9",
        r"run_\w+: line 10: it has more than the 2,000,000 values that are allowed",
    ),
    "a value": (
        "UPDATE recording_value SET text = '\"' || hex(zeroblob(33554433)) || '\"'",
        r"the value \w+…: it has 67108868 bytes, and 67108864 are allowed",
    ),
    "a value of values": (
        "UPDATE recording_value SET text = '[' || replace(hex(zeroblob(2000001)), '00', '0,') || '0]'",
        r"the value \w+…: it has more than the 2,000,000 values that are allowed",
    ),
}


@pytest.mark.parametrize(("statement", "said"), SPOILT.values(), ids=SPOILT)
def test_what_is_longer_in_the_store_than_a_file_may_be_is_refused(recordings, statement, said):
    import_file(recordings, EXAMPLE)
    [entry] = recordings.entries()
    assert load_whole(recordings, entry).calls
    recordings.store.execute(statement)
    with pytest.raises(RecordingError, match=said):
        load_whole(recordings, entry)
    with pytest.raises(RecordingError, match=said):
        list(exported(recordings, entry))


def with_kept(folder, text, count):
    """The example's recording, without its seal, whose end has printed one kept text many times."""
    text = json.dumps(text)
    kept = {"sha256": hashlib.sha256(text.encode()).hexdigest(), "characters": len(text)}
    ended = {"event": "ended", "at": 1, "outcome": {"value": {"completed": None}}, "printed": []}
    stepped = json.loads(next(line for line in LINES if b'"stepped"' in line))
    more = {"number": sum(b'"event":"stepped"' in line for line in LINES), "completions": [], "calls": []}
    printed = {"printed": [{"stream": "stdout", "text": kept}] * count}
    path = folder / "run.jsonl"
    value = {"event": "value", "sha256": kept["sha256"], "text": text}
    lines = (
        json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in (value, stepped | more | printed, ended)
    )
    path.write_bytes(b"".join([*LINES, *lines]))
    return path


@pytest.mark.parametrize("count", [60, 70])
def test_a_text_that_many_pieces_name_is_not_read_without_bound(tmp_path, monkeypatch, count):
    monkeypatch.setattr(recording_module, "MAX_PRINTED", len(read_recording(EXAMPLE).printed) + 65_000)
    path = with_kept(tmp_path, "x" * 1_000, count)
    if count > 65:
        with pytest.raises(RecordingError, match=r"it has printed more than the 65,\d+ characters that are allowed"):
            use(path)
        return
    assert read_recording(path).printed.endswith("x" * 60_000)
    use(path)


def answering(recording, stored):
    """Have all calls of a recording answered with a stored value, which is given the number of its call."""
    for number, story in recording.calls.items():
        story.answered = story.answered.model_copy(update={"result": stored(number)})
    return recording


def test_a_value_that_many_calls_name_is_read_once_for_a_page():
    text = json.dumps({"value": [[]] * 10})
    digest = hashlib.sha256(text.encode()).hexdigest()
    recording = answering(
        read_recording(EXAMPLE), lambda number: ByDigest(sha256=digest, characters=len(text) + number)
    )
    known, read = recording.value, []

    def value(sha256: str) -> str | None:
        read.append(sha256)
        return text if sha256 == digest else known(sha256)

    recording.value = value
    page = html_page(recording, picture_of(recording))
    assert len(recording.calls) > 20
    assert (read.count(digest), page.count(escape(json.dumps(json.loads(text), indent=2)))) == (1, len(recording.calls))


class Counted(list[Any]):
    """A list that counts how many of its items are read."""

    read = 0

    def __iter__(self):
        for item in super().__iter__():
            self.read += 1
            yield item


def test_no_more_of_a_value_is_written_as_json_than_a_page_shows():
    value = Counted([[]] * 900_000)
    recording = answering(read_recording(EXAMPLE), lambda _: Inline.model_construct(value=value))
    assert "[],\n" in html_page(recording, picture_of(recording))
    assert 0 < value.read < 10_000 * len(recording.calls)


@pytest.mark.parametrize("manifest", [[], {"git": 5}, {}])
def test_stubs_that_are_none_are_refused(tmp_path, manifest):
    path = tmp_path / "run.jsonl"
    lines = [json.loads(line) for line in LINES]
    lines = [one | {"manifest": {"value": manifest}} if one["event"] == "begun" else one for one in lines]
    path.write_text("".join(json.dumps(one, separators=(",", ":")) + "\n" for one in lines))
    refused = pytest.raises(RecordingError, match="its stubs are not written as a script can import them")
    with contextlib.nullcontext() if manifest == {} else refused:
        assert read_recording(path).manifest == {}


def test_a_run_during_which_the_clock_was_set_back_can_be_shown(tmp_path):
    lines = [json.loads(line) for line in EXAMPLE.read_text().splitlines()[:-1]]
    began = next(line["at"] for line in lines if line["event"] == "begun")
    for number, line in enumerate(lines):
        if "at" in line:
            line["at"] = began - number * 10**12
    path = tmp_path / "run.jsonl"
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    recording = read_recording(path)
    picture = picture_of(recording)
    assert all(0 <= span.begin <= span.end for span in picture.spans)
    shown(recording, picture)


def test_a_clock_that_was_set_back_by_centuries_does_not_keep_a_recording_out_of_the_store(tmp_path, recordings):
    path = tmp_path / "run.jsonl"
    times = [{"event": "resumed", "at": at} for at in (MAX_INTEGER, 0, 0)]
    path.write_bytes(b"".join([*LINES[:-1], *(json.dumps(event).encode() + b"\n" for event in times), LINES[-1]]))
    import_file(recordings, path)
    (entry,) = recordings.entries()
    assert (entry.state, entry.ran) == ("completed", MAX_INTEGER)


def test_of_a_file_that_cannot_be_imported_to_its_end_nothing_stays(recordings, monkeypatch):
    monkeypatch.setattr(Times, "ran", property(lambda _: 10**30))
    with pytest.raises(OverflowError):
        import_file(recordings, EXAMPLE)
    assert recordings.entries() == []
    monkeypatch.undo()
    assert import_file(recordings, EXAMPLE).state == "completed"


KILLED = """
import os, signal, sys
from pathlib import Path
from broker.recordings.keeping.recordings import Recordings
from broker.recordings.keeping.transfer import import_file
from broker.store import Store

Recordings.settle = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
with Store(sys.argv[1]) as store, Recordings(store) as recordings:
    import_file(recordings, Path(sys.argv[2]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is POSIX's")
def test_of_a_file_during_whose_import_the_process_is_killed_nothing_stays(recordings):
    killed = subprocess.run(  # noqa: S603  # the program above
        [sys.executable, "-c", KILLED, str(recordings.store.path), str(EXAMPLE)], timeout=120, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert recordings.entries() == []
    assert import_file(recordings, EXAMPLE).state == "completed"


def test_an_answer_about_a_call_that_was_never_made_is_refused(tmp_path):
    said = {"call": 999, "digest": "", "allow": True}
    with pytest.raises(RecordingError, match="call 999 was never made"):
        read_recording(with_line(tmp_path, event="decided", by="me", calls=[said]))


def test_blocks_that_no_client_could_show_are_left_out(tmp_path):
    good = {"type": "image", "data": "eA==", "mimeType": "image/png"}
    foreign = {"block_1": good, "block_2": {"type": "image", "data": 5}, "../x": good, f"block_{'9' * 5_000}": []}
    kept = {name: {"value": block} for name, block in foreign.items()}
    recording = read_recording(with_line(tmp_path, event="kept", call=1, blocks=kept))
    blocks = ContentBlocks(Redactor(()))
    for name, stored in recording.calls[1].kept.blocks.items():  # type: ignore[union-attr]  # the line above
        blocks.put_back(name, recording.load(stored), "desk")
    assert [blocks.find(name) for name in foreign] == [good, None, None, None]
