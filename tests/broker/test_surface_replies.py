"""What a model is replied for a run, and the output that is kept beside."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.calls.attempts import CallRecord
from broker.runs.envelope import ExecutionResult, StoppedBy
from broker.surface import KeptOutputs, run_texts
from broker.surface.outputs import output_uri
from broker.surface.replies import reply_of

IMAGE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}


def text_of(outputs: KeptOutputs | None = None, *, output_tokens: int = 100, **fields: Any) -> str:
    plain = {"outcome": "completed", "run_id": "run_1", "duration_ms": 1.0, "calls": [], "usage": {}}
    result = ExecutionResult.model_validate(plain | fields)
    return reply_of(result, outputs or KeptOutputs(), owner="", session=None, output_tokens=output_tokens).text


def test_a_script_that_only_displays_has_a_text_all_the_same():
    # Some model APIs refuse an empty text block.
    assert text_of(displayed=[IMAGE]) == "The script displayed 1 block, below."
    assert text_of(displayed=[IMAGE, IMAGE]) == "The script displayed 2 blocks, below."
    assert text_of(displayed=[IMAGE], stdout="see:\n") == "see:"


def test_a_script_that_prints_blanks_has_shown_nothing():
    assert text_of(stdout="\n \n") == run_texts.NOTHING_TO_SHOW


def test_a_script_that_was_stopped_is_told_where():
    stopped = StoppedBy(limit="wall_seconds", amount=30, line=7)
    assert text_of(outcome="stopped", stopped=stopped).startswith("The script was stopped at line 7: limit")


def test_a_script_that_made_the_same_call_over_and_over_is_told_so():
    calls, wall = StoppedBy(limit="calls", amount=1_000), StoppedBy(limit="wall_seconds", amount=30)
    said = "Its last 20 calls were the same: a loop over pages passes each call the cursor of the page before."
    assert said in text_of(outcome="stopped", stopped=calls, alike_calls=20)
    assert "Ask for more in each call" in text_of(outcome="stopped", stopped=calls, alike_calls=19)
    assert f"Pass a larger timeout (600 at most), or do less in one script. {said}" in text_of(
        outcome="stopped", stopped=wall, alike_calls=20
    )
    memory = StoppedBy(limit="memory_bytes", amount=1)
    assert "the same" not in text_of(outcome="stopped", stopped=memory, alike_calls=20)


def test_a_failure_tells_calls_that_were_sent_from_calls_that_were_not():
    error = {"type": "ToolError", "message": "", "traceback": "ToolError"}
    refused = CallRecord(server="shop", tool="refund", status="refused")
    found = CallRecord(server="shop", tool="find", status="ok")
    assert text_of(outcome="raised", error=error, calls=[refused]).endswith("None of these calls was sent.")
    assert "Calls that were sent stay done" in text_of(outcome="raised", error=error, calls=[found, refused])


def test_what_a_script_printed_before_it_failed_is_told_from_the_failure():
    error = {"type": "SystemExit", "message": "bad thing", "traceback": "SystemExit: bad thing"}
    assert text_of(outcome="raised", error=error, stdout="partial\n").startswith(
        "SystemExit: bad thing\nstdout:\npartial\n"
    )
    assert text_of(stdout="whole\n") == "whole"


def test_output_that_is_cut_in_two_places_counts_once_among_what_is_kept():
    outputs = KeptOutputs(most_characters=100_000)
    for number in range(50):
        text_of(outputs, run_id=f"run_{number}", stdout="x" * 20_000)
        outputs.keep(f"run_{number}", "x" * 20_000, "")
    kept = [number for number in range(50) if outputs.read(output_uri(f"run_{number}", 0), "") is not None]
    assert kept == [45, 46, 47, 48, 49]


def readable(outputs: KeptOutputs, owner: str) -> list[int]:
    """The runs of an owner, which are named after it and numbered."""
    numbers = range(400)
    return [n for n in numbers if outputs.read(output_uri(f"run_{owner}{n}", 0), owner) is not None]


@pytest.mark.parametrize(
    ("most_characters", "most_runs", "modest", "greedy"),
    [
        (100_000, 1_000, (5, 1_000), (400, 9_000)),
        (100_000, 1_000, (50, 100), (90, 30_000)),
        (10**6, 20, (4, 9_000), (99, 1)),
    ],
    ids=["many that are long", "few that are longer than many", "many that are short"],
)
def test_who_takes_all_room_for_output_displaces_its_own(most_characters, most_runs, modest, greedy):
    outputs = KeptOutputs(most_characters=most_characters, most_runs=most_runs)
    for owner, (count, size) in (("b", modest), ("a", greedy), ("b", (modest[0] + 1, modest[1]))):
        for number in range(count):
            outputs.keep(f"run_{owner}{number}", "x" * size, owner)
    assert readable(outputs, "b") == list(range(modest[0] + 1))
    kept = readable(outputs, "a")
    assert kept
    assert kept == list(range(greedy[0] - len(kept), greedy[0]))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 40)), max_size=60))
def test_kept_output_stays_within_its_room(made):
    outputs = KeptOutputs(most_characters=100, most_runs=10)
    for number, (owner, size) in enumerate(made):
        outputs.keep(f"run_{owner}{number}", "x" * size, owner)
        found = [kept for name in "abc" for kept in readable(outputs, name)]
        assert number in found
        assert len(found) <= 10
        assert sum(made[kept][1] for kept in found) <= 100
