"""Equal checks share one run of the type checker, and nothing else does."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from codegen import CheckerError, TypeChecker
from codegen.checking.finding_cache import FindingCache

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codegen.checking.language_server import Finding

WRONG = 'from tools import hub\nhub.look(path=1)\n"" + 1\n'
PACKAGE = {"tools/__init__.pyi": "from . import hub as hub\n", "tools/hub.pyi": "def look(*, path: str) -> None: ...\n"}


class Checker:
    """The type checker, counted, and held back until it is let go."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.begun, self.may_go_on = threading.Event(), threading.Event()
        self.may_go_on.set()
        self._findings = TypeChecker().findings

    def __call__(self, script: str, package: Mapping[str, str]) -> tuple[Finding, ...]:
        self.asked.append(script)
        self.begun.set()
        assert self.may_go_on.wait(60)
        return self._findings(script, package)


@pytest.fixture
def checker() -> Checker:
    return Checker()


def test_an_equal_script_is_not_checked_again(checker: Checker) -> None:
    cache = FindingCache(checker)
    found = cache.findings(WRONG, PACKAGE)
    assert {one.rule for one in found} == {"invalid-argument-type", "unsupported-operator"}
    assert cache.findings(WRONG, dict(reversed(PACKAGE.items()))) == found
    assert len(checker.asked) == 1


def test_other_stubs_or_another_script_are_checked(checker: Checker) -> None:
    cache = FindingCache(checker)
    cache.findings(WRONG, PACKAGE)
    takes_numbers = PACKAGE | {"tools/hub.pyi": "def look(*, path: int) -> None: ...\n"}
    assert [one.rule for one in cache.findings(WRONG, takes_numbers)] == ["unsupported-operator"]
    assert cache.findings("1", PACKAGE) == ()
    assert len(checker.asked) == 3


def test_equal_checks_at_the_same_time_wait_for_one_answer(checker: Checker) -> None:
    cache = FindingCache(checker)
    checker.may_go_on.clear()
    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(cache.findings, WRONG, PACKAGE) for _ in range(4)]
        assert checker.begun.wait(60)
        checker.may_go_on.set()
        found = [one.result(60) for one in asked]
    assert len({id(one) for one in found}) == 1
    assert len(checker.asked) == 1


def test_a_failed_check_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = FindingCache(TypeChecker().findings)
    monkeypatch.setattr("codegen.checking.language_server.find_ty_bin", lambda: "/nowhere/ty")
    with pytest.raises(CheckerError):
        cache.findings(WRONG, PACKAGE)
    monkeypatch.undo()
    assert len(cache.findings(WRONG, PACKAGE)) == 2


def test_what_was_asked_for_longest_ago_is_forgotten(checker: Checker) -> None:
    cache = FindingCache(checker, entries=2)
    for script in ("1", "2", "1", "3", "1", "2"):
        cache.findings(script, PACKAGE)
    assert checker.asked == ["1", "2", "3", "2"]


@pytest.mark.parametrize(
    ("line", "kept", "not_kept"), [("missing\n", 60, 90), ("a" * 3_000 + "\n", 4, 5)], ids=["many", "long"]
)
def test_findings_that_take_much_room_are_not_kept(checker: Checker, line: str, kept: int, not_kept: int) -> None:
    cache = FindingCache(checker)
    for count in (kept, kept, not_kept, not_kept):
        assert len(cache.findings(line * count, PACKAGE)) == count
    assert checker.asked == [line * count for count in (kept, not_kept, not_kept)]
