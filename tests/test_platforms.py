"""Code for systems that the tests do not run on asks for nothing that Python lacks there; mypy knows what it has."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OF_WORKERS = {"sandbox/worker.py", "sandbox/worker_line.py", "sandbox/worker_process.py"}
"""Windows has no worker processes; `Workers.start` refuses there before anything of these is called."""


@pytest.mark.parametrize(("platform", "left_out"), [("darwin", set()), ("win32", OF_WORKERS)])
def test_modules_use_nothing_that_python_lacks_on(platform: str, left_out: set[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--platform", platform, "--no-warn-unreachable", f"--cache-dir={tmp_path}"]
    checked = subprocess.run(  # noqa: S603  # our own command
        [*command, "broker", "codegen", "sandbox"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    found = {line for line in checked.stdout.splitlines() if ": error: " in line}
    assert re.search(r"\d{3} source files", checked.stdout), checked.stdout + checked.stderr
    assert [line for line in found if line.split(":")[0] not in left_out] == []
