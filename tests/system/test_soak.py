"""A short time of good and hostile scripts and dying upstreams; `benchmarks/soak` is the long one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.soak.held import STEADY_BYTES, TOTAL_BYTES, Held, memory_leaks

ROOT = Path(__file__).parents[2]
MEGABYTE = 1024 * 1024
HELD = Held(
    200 * MEGABYTE,
    threads=Counter({"MainThread": 1, "asyncio-waitpid-*": 2}),
    descriptors=Counter({"pipe:[*]": 11, "socket:[*]": 4}),
    children=Counter({"ty server": 2, "worker process": 2, "python hostile_upstream.py call_die": 1}),
)


def test_memory_threads_descriptors_and_children_come_back(data_home):
    command = [sys.executable, "-m", "benchmarks.soak", "--minutes", "0.2"]
    finished = subprocess.run(  # noqa: S603  # our own module
        command,
        cwd=ROOT,
        env=os.environ | {"XDG_DATA_HOME": data_home},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr[-3_000:]
    assert re.search(r"hostile_upstream\.py call_die +1 +1\n", finished.stdout), finished.stdout


def test_a_leaked_child_is_named_also_while_another_is_missing():
    after = replace(HELD, children=HELD.children + Counter({"ty server": 1}) - Counter({"worker process": 1}))
    assert after.children.total() == HELD.children.total()
    assert after.leaks(HELD) == [
        "children: 3 of 'ty server', and 2 before",
        "children: 1 of 'worker process', and 2 before",
    ]


def test_a_child_of_a_new_kind_is_named():
    zombie = "python, ended and not waited for"
    after = replace(HELD, children=HELD.children + Counter({zombie: 1}))
    assert after.leaks(HELD) == [f"children: 1 of {zombie!r}, and 0 before"]


def test_leaked_threads_and_descriptors_are_named():
    after = replace(
        HELD, threads=HELD.threads + Counter({"Thread-*": 1}), descriptors=HELD.descriptors + Counter({"pipe:[*]": 2})
    )
    assert after.leaks(HELD) == [
        "threads: 1 of 'Thread-*', and 0 before",
        "descriptors: 13 of 'pipe:[*]', and 11 before",
    ]


def test_what_is_as_before_leaks_nothing():
    assert replace(HELD).leaks(HELD) == []


@pytest.mark.parametrize(("leaked_bytes", "rounds"), [(MEGABYTE, 40), (MEGABYTE, 600), (64 * 1024, 600)])
def test_a_leak_in_each_round_is_told(leaked_bytes, rounds):
    assert memory_leaks([200 * MEGABYTE + number * leaked_bytes for number in range(rounds)])


def test_memory_that_grows_once_and_then_stays_is_no_leak():
    first = 200 * MEGABYTE
    grown = [first + min(number * MEGABYTE, TOTAL_BYTES) for number in range(600)]
    assert memory_leaks(grown) == []
    assert memory_leaks([*grown[:-1], grown[-1] + 1]) == ["memory: grew by 64 MB, and may by 64 MB"]


def test_memory_that_swings_about_a_mean_is_no_leak():
    assert memory_leaks([200 * MEGABYTE + (STEADY_BYTES if number % 2 else 0) for number in range(600)]) == []


def test_a_child_that_was_not_waited_for_and_one_that_runs_are_held_apart():
    command = [sys.executable, "-I", "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as child:  # noqa: S603  # our own interpreter
        assert child.stdin is not None
        before = Held.now()
        child.stdin.close()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        told = Held.now().leaks(before)
        child.wait()
    assert any("ended and not waited for" in line for line in told), told
    assert any("input()" in line and "0 of" in line for line in told), told
