"""A short time of good and hostile scripts and dying upstreams; `benchmarks/soak.py` is the long one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_memory_threads_descriptors_and_children_come_back(data_home):
    command = [sys.executable, "-m", "benchmarks.soak", "--minutes", "0.2"]
    finished = subprocess.run(  # noqa: S603  # our own module
        command,
        cwd=ROOT,
        env=os.environ | {"XDG_DATA_HOME": data_home},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr[-3_000:]
