"""What a model is replied for a run, and the output that is kept beside."""

from __future__ import annotations

from typing import Any

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


def test_a_failure_tells_calls_that_were_sent_from_calls_that_were_not():
    error = {"type": "ToolError", "message": "", "traceback": "ToolError"}
    refused = CallRecord(server="shop", tool="refund", status="refused")
    found = CallRecord(server="shop", tool="find", status="ok")
    assert text_of(outcome="raised", error=error, calls=[refused]).endswith("None of these calls was sent.")
    assert "What was sent stays done" in text_of(outcome="raised", error=error, calls=[found, refused])


def test_output_that_is_cut_in_two_places_counts_once_among_what_is_kept():
    outputs = KeptOutputs(most_characters=100_000)
    for number in range(50):
        text_of(outputs, run_id=f"run_{number}", stdout="x" * 20_000)
        outputs.keep(f"run_{number}", "x" * 20_000, "")
    kept = [number for number in range(50) if outputs.read(output_uri(f"run_{number}", 0), "") is not None]
    assert kept == [45, 46, 47, 48, 49]
