"""Runs put side by side: the same as difflib says for as long as that is quick, and something honest beyond."""

from __future__ import annotations

import difflib
import json
from difflib import SequenceMatcher
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from broker.recordings.reading import recording_of_lines
from broker.recordings.replay import alignment, text_diff
from broker.recordings.replay.alignment import Alignment
from broker.recordings.replay.compare import Change, compare_recordings, fields
from broker.recordings.replay.replay import Difference
from broker.recordings.showing.picture import _Clock

EXAMPLE = Path(__file__).parents[3] / "examples" / "history" / "recording.jsonl"
BEGUN = next(line for line in EXAMPLE.read_text().splitlines() if line.startswith('{"event":"begun"'))
MANY = 100_000
"""What takes the square of this takes hours."""


def recording(calls):
    """A run of calls, each a function, its argument and its result."""
    made = [
        {"id": number, "function": function, "line": number, "arguments": {"value": {"n": argument}}}
        for number, (function, argument, _) in enumerate(calls, start=1)
    ]
    step = {"number": 0, "now_ns": 0, "completions": [], "calls": made, "cancelled": [], "timer": None}
    lines = [BEGUN, json.dumps({"event": "stepped", "at": 1, **step, "printed": [], "outcome": None})]
    lines += [
        json.dumps({"event": "answered", "at": 2, "call": number, "result": {"value": {"value": result}}})
        for number, (_, _, result) in enumerate(calls, start=1)
    ]
    return recording_of_lines(lines, lambda _: None)


def changed(old, new):
    """Whether two calls that belong together differ; each is a function, its argument, its result and its line."""
    then, now = ({"arguments": {"n": call[1]}, "result": call[2]} for call in (old, new))
    found = tuple(fields(then, now, ()))
    return [Change("changed", new[0], new[3], found)] if found else []


def plainly_compared(then, now):
    """The changes as they are found without a bound on the time."""
    old, new = ([(*call, line) for line, call in enumerate(calls, start=1)] for calls in (then, now))
    changes = []
    matcher = SequenceMatcher(None, [call[:2] for call in then], [call[:2] for call in now], autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            for one, other in zip(old[a:b], new[c:d], strict=True):
                changes += changed(one, other)
            continue
        left = new[c:d]
        for call in old[a:b]:
            partner = next((one for one in left if one[0] == call[0]), None)
            if partner is None:
                changes.append(Change("removed", call[0], call[3]))
            else:
                left.remove(partner)
                changes += changed(call, partner)
        changes += [Change("added", call[0], call[3]) for call in left]
    return tuple(changes)


CALLS = st.lists(st.tuples(st.sampled_from(["a.f", "a.g", "b.f"]), st.integers(0, 3), st.integers(0, 1)), max_size=25)


@given(CALLS, CALLS)
def test_short_runs_are_compared_as_ever(then, now):
    found = compare_recordings(recording(then), recording(now))
    assert (found.changes, found.notes) == (plainly_compared(then, now), ())


@given(CALLS, CALLS)
def test_whatever_the_time_every_call_is_accounted_for_once(then, now):
    found = Alignment([str(call) for call in then], [str(call) for call in now])
    found._left = 0
    blocks = [block for block in found.get_opcodes() if block[0] == "equal"]
    assert [call for _, a, b, _, _ in blocks for call in then[a:b]] == [
        call for _, _, _, c, d in blocks for call in now[c:d]
    ]
    if then == now:
        assert (found.ratio(), found.is_complete) == (1.0, True)


def test_very_many_calls_that_are_alike_are_put_side_by_side():
    found = Alignment(["poll"] * MANY, ["begin", *["poll"] * MANY, "end"])
    assert [kind for kind, *_ in found.get_opcodes()] == ["replace"]
    assert not found.is_complete
    found = Alignment(["poll"] * MANY, [*["poll"] * MANY, "end"])
    assert [(kind, b - a) for kind, a, b, _, _ in found.get_opcodes()] == [("equal", MANY), ("insert", 0)]
    assert found.is_complete


def test_very_many_calls_of_which_every_other_one_changed_are_put_side_by_side():
    then, now = ([str(n) if n % 2 else f"{n} {run}" for n in range(MANY)] for run in ("then", "now"))
    found = Alignment(then, ["new", *now])
    assert len(found.get_opcodes()) > 1
    assert not found.is_complete
    gone, come = [f"gone {n}" for n in range(MANY)], [f"come {n}" for n in range(MANY)]
    found = Alignment(gone, come)
    assert found.get_opcodes() == [("replace", 0, MANY, 0, MANY)]
    assert found.is_complete


def test_where_the_order_is_too_long_to_find_equal_calls_are_paired_all_the_same_and_that_is_said(monkeypatch):
    monkeypatch.setattr(alignment, "MAX_PAIRS", 10)
    then = [(f"a.{n % 2}", n, n) for n in range(20)]
    now = [("a.0", 100, 0), *(call if call[1] % 3 else (call[0], call[1] + 200, call[2]) for call in then)]
    found = compare_recordings(recording(then), recording(now))
    assert "too many calls that are alike or changed to find each in its order" in found.notes[0]
    assert {change.kind for change in found.changes} == {"changed", "added"}
    assert len(found.changes) == 8, "seven have another argument, and one is new"


def test_very_many_calls_that_came_and_went_are_counted():
    then, now = recording([("a.f", 1, 1)] * 10_000), recording([("a.g", 1, 1)] * 10_000)
    kinds = [change.kind for change in compare_recordings(then, now).changes]
    assert kinds == ["removed"] * 10_000 + ["added"] * 10_000


LINES = st.lists(st.sampled_from(["a", "b", "", "  c"]), max_size=40).map("\n".join)


def plain_diff(then, now):
    lines = list(difflib.unified_diff(then.splitlines(), now.splitlines(), "recorded", "replayed", n=2, lineterm=""))
    left_out = [f"… {len(lines) - 60} more lines"] if len(lines) > 60 else []
    return "\n".join(lines[:60] + left_out)


@given(LINES, LINES)
def test_short_texts_are_compared_as_ever(then, now):
    if then.splitlines() != now.splitlines():
        assert Difference("text", 1, then, now).diff == plain_diff(then, now)


def test_a_difference_in_the_ends_of_lines_alone_is_said():
    for then, now in (("a", "a\n"), ("a\nb\n", "a\r\nb\n")):
        assert Difference("text", 1, then, now).diff == "the lines are the same, but not what they end with"


def test_one_change_in_a_very_long_text_is_shown_whole():
    then = [f"line {n}" for n in range(MANY)]
    now = [*then[:70_000], "new", *then[70_000:]]
    lines = ["--- recorded", "+++ replayed", "@@ -69999,4 +69999,5 @@"]
    lines += [" line 69998", " line 69999", "+new", " line 70000", " line 70001"]
    assert text_diff.text_diff("\n".join(then), "\n".join(now)).splitlines() == lines


def test_of_a_very_long_text_that_changed_all_over_the_beginning_is_shown_and_that_is_said():
    then, now = ("\n".join(f"{n} {run}" if n % 2 else str(n) for n in range(MANY)) for run in ("then", "now"))
    lines = text_diff.text_diff(then, now).splitlines()
    assert lines[:6] == ["--- recorded", "+++ replayed", "@@ -1,1000 +1,1000 @@", " 0", "-1 then", "+1 now"]
    assert len(lines) == text_diff.MAX_DIFF_LINES + 1
    assert lines[-1] == "… of 100000 and 100000 lines, 1000 from line 1 on were compared"


@given(st.lists(st.integers(0, 50), min_size=2, max_size=12), st.integers(0, 60))
def test_a_time_in_a_run_with_gaps_is_what_it_was_without_them(times, at):
    gaps, last = [], 0
    for since, until in zip(times[::2], times[1::2], strict=False):
        last = max(last, since)
        gaps.append((last, until))  # also when the clock was set back
        last = max(last, until)
    lain = sum(min(at, until) - since for since, until in gaps if since < at)
    assert _Clock(0, gaps).seconds(at) == max((at - lain) / 1e9, 0.0)


def test_a_run_that_was_resumed_very_often_can_be_shown():
    clock = _Clock(0, [(10 * n, 10 * n + 5) for n in range(MANY)])
    assert clock.gaps[-1] == (10 * MANY / 2 / 1e9 - 5e-9, 5e-9)


def test_values_that_python_holds_equal_differ_by_their_kind():
    assert tuple(fields({"a": 1}, {"a": True}, ())) == (("/a", "1", "true"),)
    assert tuple(fields([1], [1.0], ())) == (("/0", "1", "1.0"),)


def test_a_place_that_is_ignored_is_ignored_at_its_own_depth():
    then, now = {"a": {"b": 1}, "c": 1}, {"a": {"b": 2}, "c": 2}
    assert tuple(fields(then, now, ("/*",))) == ()
    assert tuple(fields(then, now, ("/a/*",))) == (("/c", "1", "2"),)
    assert tuple(fields(then, now, ("/*/b", "/c/b/d"))) == (("/c", "1", "2"),)
