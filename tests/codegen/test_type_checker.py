"""What a script can do to the checker and to what reads its report: nothing that lasts, spreads or grows."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from codegen import CheckerError, check
from codegen.checking import type_checker
from tests.codegen.world import stubs

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = "from tools import hub\nprint(hub.nothing)\n"
LONG_REPORT = "from tools import hub\n" + "hub.nothing()\n" * 300
WITHOUT_END = "import random\nx = None\nwhile True:\n" + "".join(
    f"    if random.random():\n        x = [x, {n}]\n" for n in range(400)
)


def finds_the_mistake(script: str = SCRIPT) -> bool:
    return [one.code for one in check(script, stubs())] == ["missing-attribute"]


def test_a_script_that_overflows_the_checker_is_not_checked() -> None:
    with pytest.raises(CheckerError, match="ended with status"):
        check("x = " + "-" * 20_000 + "1", stubs())
    assert finds_the_mistake()


def test_a_script_that_keeps_the_checker_busy_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type_checker, "TIMEOUT_SECONDS", 1.0)
    with pytest.raises(CheckerError, match="took longer than 1 seconds"):
        check(WITHOUT_END, stubs())
    monkeypatch.undo()
    assert finds_the_mistake()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds another process")
def test_a_checker_gets_no_more_memory_than_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type_checker, "MEMORY_BYTES", 32 * 1024**2)
    with pytest.raises(CheckerError, match="ended with status"):
        check(SCRIPT, stubs())
    monkeypatch.undo()
    assert finds_the_mistake()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds another process")
def test_the_bounds_hold_for_the_process_that_reads_the_script() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        type_checker._bound(process.pid)
        bounds = [resource.prlimit(process.pid, kind) for kind in (resource.RLIMIT_AS, resource.RLIMIT_FSIZE)]
        process.kill()
    assert bounds == [(type_checker.MEMORY_BYTES,) * 2, (type_checker.REPORT_BYTES,) * 2]


@pytest.mark.skipif(sys.platform == "win32", reason="of Windows nothing is known")
def test_the_folders_of_killed_checks_are_removed_by_a_later_process_and_nothing_else_is(tmp_path: Path) -> None:
    temporary, elsewhere = tmp_path / "temporary", tmp_path / "elsewhere"
    for folder in (*(temporary / f"codemode-check-{name}" for name in ("old", "new")), elsewhere, temporary / "other"):
        (folder / "tools").mkdir(parents=True)
    (temporary / "codemode-check-link").symlink_to(elsewhere)
    (temporary / "codemode-check-file").touch()
    long_ago = time.time() - type_checker.LEFT_BEHIND_SECONDS - 60
    for path in [*temporary.iterdir(), elsewhere]:
        if not path.name.endswith("-new"):
            os.utime(path, (long_ago, long_ago), follow_symlinks=False)
    checks = "from codegen import check; check('x = 1', [])"
    environment = {**os.environ, "TMPDIR": str(temporary)}
    subprocess.run([sys.executable, "-c", checks], env=environment, check=True)  # noqa: S603  # ours
    left = {path.name for path in temporary.iterdir()}
    assert left == {"codemode-check-new", "codemode-check-link", "codemode-check-file", "other"}
    assert (elsewhere / "tools").is_dir()


def test_a_report_that_is_too_long_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type_checker, "REPORT_BYTES", 20_000)
    with pytest.raises(CheckerError, match=r"ended with status|longer than 20000 bytes"):
        check(LONG_REPORT, stubs())
    assert finds_the_mistake()
    monkeypatch.undo()
    assert len(check(LONG_REPORT, stubs())) == 20


def test_no_more_checkers_run_at_once_than_there_may(monkeypatch: pytest.MonkeyPatch) -> None:
    running, most, lock = 0, 0, threading.Lock()
    started = type_checker._status

    def counted(*arguments: object) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        try:
            return started(*arguments)  # type: ignore[arg-type]
        finally:
            with lock:
                running -= 1

    monkeypatch.setattr(type_checker, "_status", counted)
    with ThreadPoolExecutor(6 * type_checker.MAX_CHECKERS) as threads:
        scripts = [f"{SCRIPT}# {number}" for number in range(6 * type_checker.MAX_CHECKERS)]
        found = list(threads.map(finds_the_mistake, scripts))
    assert all(found)
    assert most == type_checker.MAX_CHECKERS


def test_a_check_that_gets_no_turn_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = threading.BoundedSemaphore(1)
    taken.acquire()
    monkeypatch.setattr(type_checker, "_RUNNING", taken)
    monkeypatch.setattr(type_checker, "TIMEOUT_SECONDS", 0.0)
    with pytest.raises(CheckerError, match="too many scripts"):
        check(SCRIPT, stubs())


READ = "from tools import files, hub\nd = await files.read_file(path='a')\nprint(d['x'])\n"
REPETITIONS = {
    "a name and a comma": READ + "(" + "d," * 8_000 + ")\n",
    "loops over a name": READ + "#" + " for d d d" * 5_000,
    "elements of a name": READ + "#" + " d[1]" * 10_000,
    "elements of an element": READ + "#d" + "[1]" * 10_000,
    "brackets that stay open": READ + "#" + "d[" * 20_000,
    "colons": READ + "#" + "d:" * 20_000,
    "calls of update": READ + "i = await hub.get_issue(repo='a', number=1)\nprint(i['x'])\n#" + "update(" * 10_000,
    "digits": READ + f"await hub.list_issues(repo='a', labels=[{'1' * 60}, d + 1, x])\n",
    "spaces in a list": READ + f"await hub.list_issues(repo='a', labels=[{'1,   ' * 60} x])\n",
    "one long word": READ + "await hub.get_issue(q=1)\n#" + "a" * 90_000,
    "words like the wrong one": READ + "print(wrongword)\n#" + " ".join(f"wrong{n}" for n in range(9_000)),
}


@pytest.mark.parametrize("script", REPETITIONS.values(), ids=REPETITIONS)
def test_repetitions_do_not_keep_the_reader_of_the_report_busy(script: str) -> None:
    # Time is not asserted: with patterns that backtrack, some of these take minutes and others never end.
    assert all(one.line > 2 for one in check(script, stubs()))


def test_a_script_that_is_too_long_is_not_checked() -> None:
    with pytest.raises(CheckerError, match="longer than 100000 characters"):
        check(SCRIPT + "#" * 100_000, stubs())
    assert finds_the_mistake()
