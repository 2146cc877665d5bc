"""What a script can do to the checker and to what reads its report: nothing that lasts, spreads or grows."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from codegen import CheckerError, TypeChecker, check
from codegen.checking import language_server, type_checker
from codegen.checking.language_server import LanguageServer
from tests.codegen.script_cases import broken_scripts
from tests.codegen.world import stubs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from codegen.checking.language_server import Finding

SCRIPT = "from tools import hub\nprint(hub.nothing)\n"
LONG_REPORT = "from tools import hub\n" + "hub.nothing()\n" * 300
WITHOUT_END = "import random\nx = None\nwhile True:\n" + "".join(
    f"    if random.random():\n        x = [x, {n}]\n" for n in range(400)
)


OVERFLOWING = "x = " + "-" * 20_000 + "1"


def finds_the_mistake(script: str = SCRIPT, checker: TypeChecker | None = None) -> bool:
    return [one.code for one in check(script, stubs(), checker=checker)] == ["missing-attribute"]


def test_a_script_that_overflows_the_checker_is_not_checked() -> None:
    with pytest.raises(CheckerError, match="ended with status"):
        check(OVERFLOWING, stubs())
    assert finds_the_mistake()


def test_a_script_that_keeps_the_checker_busy_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_server, "TIMEOUT_SECONDS", 1.0)
    with pytest.raises(CheckerError, match="took longer than 1 seconds"):
        check(WITHOUT_END, stubs())
    monkeypatch.undo()
    assert finds_the_mistake()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds another process")
def test_a_checker_gets_no_more_memory_than_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_server, "MEMORY_BYTES", 32 * 1024**2)
    with pytest.raises(CheckerError, match="ended with status"):
        check(SCRIPT, stubs())
    monkeypatch.undo()
    assert finds_the_mistake()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds another process")
def test_the_bounds_hold_for_the_process_that_reads_the_script() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        language_server._bound(process.pid)
        bounds = [resource.prlimit(process.pid, kind) for kind in (resource.RLIMIT_AS, resource.RLIMIT_FSIZE)]
        process.kill()
    assert bounds == [(language_server.MEMORY_BYTES,) * 2, (language_server.REPORT_BYTES,) * 2]


@pytest.mark.skipif(sys.platform == "win32", reason="of Windows nothing is known")
def test_the_folders_of_killed_checks_are_removed_by_a_later_process_and_nothing_else_is(tmp_path: Path) -> None:
    temporary, elsewhere = tmp_path / "temporary", tmp_path / "elsewhere"
    for folder in (*(temporary / f"codemode-check-{name}" for name in ("old", "new")), elsewhere, temporary / "other"):
        (folder / "tools").mkdir(parents=True)
    (temporary / "codemode-check-link").symlink_to(elsewhere)
    (temporary / "codemode-check-file").touch()
    long_ago = time.time() - language_server.LEFT_BEHIND_SECONDS - 60
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
    monkeypatch.setattr(language_server, "REPORT_BYTES", 20_000)
    with pytest.raises(CheckerError, match=r"ended with status|longer than 20000 bytes"):
        check(LONG_REPORT, stubs())
    assert finds_the_mistake()
    monkeypatch.undo()
    assert len(check(LONG_REPORT, stubs())) == 20


def test_no_more_checkers_run_at_once_than_there_may(monkeypatch: pytest.MonkeyPatch) -> None:
    running, most, lock = 0, 0, threading.Lock()

    class Counted(LanguageServer):
        def findings(self, script: str, package: Mapping[str, str]) -> list[Finding]:
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
            try:
                return super().findings(script, package)
            finally:
                with lock:
                    running -= 1

    monkeypatch.setattr(type_checker, "LanguageServer", Counted)
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


def checkers() -> list[psutil.Process]:
    """The processes of `ty` that this one has started."""
    return [child for child in psutil.Process().children() if child.name().startswith("ty")]


@pytest.fixture
def kept() -> Iterator[TypeChecker]:
    """A checker whose process has checked a script."""
    with TypeChecker() as checker:
        assert finds_the_mistake(checker=checker)
        yield checker
    assert checkers() == []


def test_a_process_is_kept_for_the_next_script_and_ends_with_the_block(kept: TypeChecker) -> None:
    [process] = checkers()
    folder = Path(process.cwd())
    assert finds_the_mistake("# another\n" + SCRIPT, kept)
    assert checkers() == [process]
    kept.__exit__(None, None, None)
    assert checkers() == []
    assert not folder.exists()


def test_a_process_is_there_before_the_first_script() -> None:
    with TypeChecker() as checker:
        checker.prepare()
        [process] = checkers()
        assert finds_the_mistake(checker=checker)
        assert checkers() == [process]
    assert checkers() == []


def test_a_script_that_comes_too_early_waits_for_that_process() -> None:
    begun, coming, prepared, looked = threading.Event(), threading.Event(), threading.Event(), []

    class Watched(TypeChecker):
        def _asked(self, server: LanguageServer, script: str, package: Mapping[str, str]) -> list[Finding]:
            if coming.is_set():
                return super()._asked(server, script, package)
            begun.set()
            assert coming.wait(30)
            found = super()._asked(server, script, package)
            prepared.set()
            return found

        def _ask(self, script: str, package: Mapping[str, str]) -> list[Finding]:
            coming.set()
            return super()._ask(script, package)

        def _kept(self) -> LanguageServer | None:
            looked.append(prepared.is_set())
            return super()._kept()

    with Watched() as checker, ThreadPoolExecutor(1) as threads:
        threads.submit(checker.prepare)
        assert begun.wait(30)
        assert finds_the_mistake(checker=checker)
        assert len(checkers()) == 1
    assert looked == [True]


def test_a_checker_that_cannot_be_prepared_says_so_to_the_first_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_server, "find_ty_bin", lambda: "/nowhere/ty")
    with TypeChecker() as checker:
        checker.prepare()
        with pytest.raises(CheckerError, match="could not be started"):
            check(SCRIPT, stubs(), checker=checker)
        monkeypatch.undo()
        assert finds_the_mistake(checker=checker)


def test_nothing_is_prepared_where_as_many_scripts_are_checked_as_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = threading.BoundedSemaphore(1)
    monkeypatch.setattr(type_checker, "_RUNNING", taken)
    with TypeChecker() as checker, taken:
        checker.prepare()
        assert checkers() == []


def test_outside_of_the_block_each_check_ends_its_process() -> None:
    assert finds_the_mistake(checker=TypeChecker())
    assert checkers() == []


def test_a_kept_process_says_of_every_script_what_a_new_one_says(kept: TypeChecker) -> None:
    lists: tuple[dict[str, list[str]], ...] = ({}, {"other": ["look"], "hub": ["more"]})
    scripts = [case.script for case in broken_scripts()]
    by_new_ones = {script: [check(script, stubs(), listed=listed) for listed in lists] for script in scripts}
    # The other way round, too: what was there before must be forgotten, and not only what is new be seen.
    for script in [*scripts, *reversed(scripts)]:
        assert [check(script, stubs(), listed=listed, checker=kept) for listed in lists] == by_new_ones[script]


def test_files_that_come_and_go_are_seen(kept: TypeChecker) -> None:
    script = "from tools import other\nawait other.look()\nhub.nothing()\n"
    listed = {"other": ["look"]}
    for _ in range(2):
        assert [one.line for one in check(script, stubs(), listed=listed, unimported=["hub"], checker=kept)] == [3]
        assert [one.line for one in check("#\n" + script, stubs(), unimported=["hub"], checker=kept)] == [2, 4]
        assert len(check(script, stubs(), listed=listed, checker=kept)) == 1


def test_a_script_that_ends_the_kept_process_spoils_no_other(kept: TypeChecker) -> None:
    with pytest.raises(CheckerError, match="ended with status"):
        check(OVERFLOWING, stubs(), checker=kept)
    assert finds_the_mistake("# another\n" + SCRIPT, kept)


@pytest.mark.parametrize("how", ["killed", "without its folder"])
def test_a_process_that_is_gone_is_replaced(kept: TypeChecker, how: str) -> None:
    [process] = checkers()
    if how == "killed":
        process.kill()
    else:
        shutil.rmtree(process.cwd())
    assert finds_the_mistake("# another\n" + SCRIPT, kept)
    assert checkers() != [process]


def test_a_script_that_keeps_the_kept_process_busy_is_not_tried_twice(
    kept: TypeChecker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language_server, "TIMEOUT_SECONDS", 1.0)
    monkeypatch.setattr(type_checker, "LanguageServer", None)
    with pytest.raises(CheckerError, match="took longer than 1 seconds"):
        check(WITHOUT_END, stubs(), checker=kept)
    monkeypatch.undo()
    assert finds_the_mistake("# another\n" + SCRIPT, kept)


@pytest.mark.parametrize(("bound", "value"), [("_IDLE_SECONDS", -1.0), ("_MAX_CHARACTERS", 0)])
def test_a_process_that_idled_or_has_read_much_is_replaced(
    kept: TypeChecker, monkeypatch: pytest.MonkeyPatch, bound: str, value: float
) -> None:
    before = checkers()
    monkeypatch.setattr(type_checker, bound, value)
    for number in range(2):
        assert finds_the_mistake(f"# {number}\n" + SCRIPT, kept)
    assert not set(before) & set(checkers())


def test_a_check_that_goes_on_fails_when_the_block_ends() -> None:
    begun = threading.Event()

    class Begun(TypeChecker):
        def _asked(self, server: LanguageServer, script: str, package: Mapping[str, str]) -> list[Finding]:
            begun.set()
            return super()._asked(server, script, package)

    with ThreadPoolExecutor(1) as threads:
        with Begun() as checker:
            check(SCRIPT, stubs(), checker=checker)
            begun.clear()
            going_on = threads.submit(check, WITHOUT_END, stubs(), checker=checker)
            assert begun.wait(60)
        with pytest.raises(CheckerError, match="ended with status"):
            going_on.result(60)
    assert checkers() == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends no process by a signal")
def test_the_process_ends_with_one_that_is_killed() -> None:
    checks = (
        "import sys; from codegen import *; c = TypeChecker().__enter__(); check('x = 1', [], checker=c); "
        "print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", checks], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:  # noqa: S603  # ours
        assert process.stdout is not None
        process.stdout.readline()
        [child] = psutil.Process(process.pid).children()
        folder = child.cwd()
        process.kill()
    gone, left = psutil.wait_procs([child], timeout=30)
    assert (gone, left) == ([child], [])
    shutil.rmtree(folder)
