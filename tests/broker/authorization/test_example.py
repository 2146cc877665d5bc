"""The example of a loop that is approved by one answer, as a person runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "approve_a_loop.py"


def test_forty_writes_are_approved_by_one_answer_and_the_forty_first_is_refused():
    finished = subprocess.run(  # noqa: S603  # ours
        [sys.executable, EXAMPLE], capture_output=True, text=True, timeout=120, check=False
    )
    assert finished.stdout == (
        'allowed: files.write {"":{"keys":["path","text"]},"/path":{"path":"notes/*"},"/text":{"path":"Note *"}}\n'
        "files.write was refused: only notes are written here.\n"
        "40 files written after 2 questions, 41 calls attempted\n"
    ), finished.stderr
