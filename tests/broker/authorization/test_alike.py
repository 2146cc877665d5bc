"""What calls like these may have in their arguments: never more than a person sees in the question."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.authorization.alike import common_test, distinct
from broker.authorization.calls import PendingCall
from broker.authorization.question_text import as_text
from broker.authorization.questions import Question


def suggested(*arguments: dict[str, Any]):
    return Question(tuple(PendingCall("files", "write", "d", one) for one in arguments)).groups[0].suggestion()


ALIKE: dict[str, tuple[list[Any], dict[str, Any] | None]] = {
    "files of a folder": (["notes/a", "notes/b", "notes/c"], {"path": "notes/*"}),
    "files below a folder": (["notes/a", "notes/b/c"], {"path": "notes/**"}),
    "one that is elsewhere": (["notes/a", "notes/b", "tmp", "notes/d"], None),
    "one that leads elsewhere": (["notes/a", "notes/../b"], None),
    "one with a backslash": (["notes/a", "notes/b\\c"], None),
    "one with an encoded slash": (["notes/a", "notes/50%25%2f"], None),
    "a folder and a file of it": (["notes", "notes/a"], None),
    "names that begin alike": (["report1.md", "report2.md"], {"path": "report*"}),
    "roots": (["/etc/a", "/etb/b"], None),
    "drives": (["C:/a/x", "C:/b/x"], None),
    "above here": (["../a/x", "../b/x"], None),
    "hosts that begin alike": (["https://ours.example/a", "https://ours.example.org/b"], None),
    "pages of a host": (["https://ours.example/a", "https://ours.example/b?c"], {"path": "https://ours.example/*"}),
    "wildcards": (["notes/*/a", "notes/*/b"], None),
    "too short": (["ab", "ac"], None),
    "numbers": ([3, 1.5, 2], {"min": 1.5, "max": 3}),
    "truth": ([True, False], None),
    "kinds": (["notes/a", 1], None),
}


@pytest.mark.parametrize("case", ALIKE)
def test_values_have_in_common(case):
    values, test = ALIKE[case]
    assert common_test(values) == test


def test_of_equal_values_the_first_stays():
    assert distinct([2, "b", 1, "b", True, 1.0, 2]) == [2, "b", 1, True, 1.0]


ELSEWHERE = [
    "/home/ada/.ssh/authorized_keys",
    "notes/../../etc/shadow",
    "notes/%2e%2e/x",
    "notes\\..\\x",
    "https://evil",
]


@pytest.mark.parametrize("case", [case for case, (values, _) in ALIKE.items() if isinstance(values[0], str)])
@pytest.mark.parametrize("elsewhere", [*ELSEWHERE, "report/../../../etc/shadow", "https://ours.example/../x", ""])
def test_calls_like_these_lead_nowhere_else(case, elsewhere):
    values, _ = ALIKE[case]
    suggestion = suggested(*({"path": value} for value in values))
    assert all(suggestion.holds({"path": value}) for value in values)
    assert not suggestion.holds({"path": elsewhere})


TEXTS = st.text(alphabet="ab/.%2e\\*", min_size=1, max_size=8).map("notes/".__add__) | st.text("abc/.", max_size=6)


@given(st.lists(TEXTS, min_size=2, max_size=4), TEXTS)
def test_calls_like_these_have_these_values_or_are_below_what_these_have_in_common(values, other):
    suggestion = suggested(*({"path": value} for value in values))
    assert all(suggestion.holds({"path": value}) for value in values)
    if suggestion.holds({"path": other}) and other not in values:
        common = (
            next(n for n in range(9) if n > len(min(values)) or not all(v[:n] == values[0][:n] for v in values)) - 1
        )
        beginning = values[0][:common]
        assert other.startswith(beginning[: beginning.rfind("/") + 1] or beginning)
        assert ".." not in other.split("/")


def test_an_argument_that_some_calls_lack_may_be_nothing_else():
    suggestion = suggested({"path": "notes/a"}, {"path": "notes/b", "mode": "w"})
    assert suggestion.holds({"path": "notes/b", "mode": "w"})
    assert not suggestion.holds({"path": "notes/b", "mode": "x"})


def test_a_person_who_edits_the_tests_begins_with_those_of_arguments_that_all_calls_have():
    calls = [
        PendingCall("files", "write", "d", {"path": f"notes/{n}", "options": {"force": True} | more})
        for n, more in enumerate([{}, {"mode": "w"}])
    ]
    assert Question(tuple(calls)).groups[0].tests == {
        "": {"keys": ("path", "options")},
        "/path": {"path": "notes/*"},
        "/options": {"keys": ("force", "mode")},
        "/options/force": {"equals": True},
    }


def shown(*values: str) -> str:
    calls = [PendingCall("shell", "run", "d", {"command": value}) for value in values]
    return as_text(Question(tuple(calls))).splitlines()[-1].strip()


def test_values_that_have_nothing_in_common_are_shown():
    assert shown("notes/a", "notes/b", "tmp", "notes/d") == 'command="notes/a", "notes/b", "tmp", "notes/d"'
    assert shown(*(f"notes/{n}" for n in range(9))) == 'command="notes/0", "notes/1", … "notes/8" (9 values)'
    *first, last = [chr(ord("a") + n) for n in range(12)]
    assert shown(*first, last) == "command=" + ", ".join(map('"{}"'.format, first[:9])) + ', … "l" (12 values)'


def test_values_that_look_alike_are_counted():
    harmless, other = "echo " + "a" * 60 + "; ls; " + "b" * 60, "echo " + "a" * 60 + "; rm; " + "b" * 60
    assert shown(harmless, other).endswith(" (2 values)")
    assert "values" not in shown(harmless, harmless)
