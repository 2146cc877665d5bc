"""A question in groups and words, and what a person can choose."""

from __future__ import annotations

import re
from typing import Any

import pytest

from broker.authorization.calls import PendingCall
from broker.authorization.choices import Choice, answers_of
from broker.authorization.decision import Ask, Basis, FlowUse
from broker.authorization.fingerprints import Copy
from broker.authorization.grants import Denial, Grant
from broker.authorization.predicates import ArgumentTest, Predicate
from broker.authorization.question_text import as_text, in_full
from broker.authorization.questions import Notes, Question, Verdict
from broker.errors import PatternError


def write(number: int, **more) -> PendingCall:
    arguments = {"path": f"notes/{number:02}.md", "text": f"line {number}", "mode": "w", **more}
    return PendingCall("files", "write", "sha256:1", arguments)


PUSH = PendingCall("git", "push", "sha256:2", {"branch": "main", "options": {"count": 3}})
QUESTION = Question((write(1), PUSH, write(2), write(3)))


def test_the_calls_of_one_tool_are_one_group():
    [files, git] = QUESTION.groups
    assert (files.indices, git.indices) == ((0, 2, 3), (1,))
    assert dict(files.same) == {"/mode": "w"}
    assert dict(files.varying) == {
        "/path": ("notes/01.md", "notes/02.md", "notes/03.md"),
        "/text": ("line 1", "line 2", "line 3"),
    }
    assert dict(git.same) == {"/branch": "main", "/options/count": 3}


def test_the_suggestion_is_what_the_calls_have_in_common_and_no_other_argument():
    assert QUESTION.groups[0].suggestion() == Predicate.parse(
        {
            "/mode": {"equals": "w"},
            "/path": {"path": "notes/*"},
            "/text": {"path": "line *"},
            "": {"keys": ["path", "text", "mode"]},
        }
    )


LIKE = {
    "another of the loop": (write(41), True),
    "out of the folder": (write(41, path="notes/../x"), False),
    "another folder": (write(41, path="other/41.md"), False),
    "another mode": (write(41, mode="a"), False),
    "one argument more": (write(41, force=True), False),
    "a folder below": (write(41, path="notes/more/41.md"), False),
    "out of the folder, encoded": (write(41, path="notes/%2e%2e/x"), False),
}


@pytest.mark.parametrize(("call", "is_like"), LIKE.values(), ids=LIKE.keys())
def test_calls_like_these_pass_the_suggestion(call, is_like):
    suggestion = QUESTION.groups[0].suggestion()
    assert suggestion.holds(call.arguments) is is_like


def test_every_waiting_call_passes_the_suggestion_of_its_group():
    odd: list[dict[str, Any]] = [
        {"a": 1},
        {"a": 5.5},
        {"b": [1, {"c": None}]},
        {"a": True},
        {},
        {"a": {"x~/y": "1"}},
        {"a": {}},
        {"a": "x"},
        {"k" * 2_000: "long"},
        {"a": "notes/1.md"},
        {"a": "notes/2/3.md"},
        {"a": "notes/../4.md"},
        {"a": "notes/../5.md"},
        {"a": "notes/[6]/7.md"},
        {"a": "notes/[6]/8.md"},
        {f"a{number}": number for number in range(50)},
        {"a": {str(number): {"n": number} for number in range(30)}, "b": {str(number): number for number in range(30)}},
    ]
    for first in odd:
        for second in odd:
            question = Question(tuple(PendingCall("s", "t", "d", one) for one in (first, second)))
            suggestion = question.groups[0].suggestion()
            assert all(map(suggestion.holds, (first, second))), (first, second, suggestion)


MORE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "of a tool that takes others": ({"to": "me"}, {"to": "me", "bcc": "you"}),
    "inside an object": ({"options": {"dry": True}}, {"options": {"dry": True, "force": True}}),
    "of a call without any": ({}, {"force": True}),
    "of many": ({f"a{n}": n for n in range(50)}, {f"a{n}": n for n in range(51)}),
    "behind many in an object": (
        {"a": {str(n): {str(m): m for m in range(15)} for n in range(3)}, "to": "me"},
        {"a": {str(n): {str(m): m for m in range(15)} for n in range(3)}, "to": "you"},
    ),
}


@pytest.mark.parametrize(("asked", "later"), MORE.values(), ids=MORE.keys())
def test_an_argument_more_is_not_like_these(asked, later):
    suggestion = Question((PendingCall("s", "t", "d", asked),)).groups[0].suggestion()
    assert (suggestion.holds(asked), suggestion.holds(later)) == (True, False)


@pytest.mark.parametrize("arguments", [MORE["of many"][0] | {"to": "you"}, MORE["behind many in an object"][1]])
def test_no_argument_is_left_out_of_a_question(arguments):
    question = Question((PendingCall("s", "t", "d", arguments),))
    assert "you" in str(question.groups[0].same)
    assert re.search("you|…", as_text(question)), "what is not shown is told"
    assert '"you"' in in_full(question.groups[0])


CHOICES = {
    "these": (Choice(group=0, decision="these"), [Verdict((0, 2, 3), allow=True)]),
    "the first of these": (Choice(group=0, decision="these", calls=2), [Verdict((0, 2), allow=True)]),
    "any": (Choice(group=1, decision="any"), [Grant("git.push", "sha256:2", scope="run")]),
    "any, for the session": (
        Choice(group=1, decision="any", scope="session", calls=5),
        [Grant("git.push", "sha256:2", calls=5)],
    ),
    "alike": (
        Choice(group=1, decision="alike", arguments={"/branch": ArgumentTest(equals="main")}),
        [Grant("git.push", "sha256:2", Predicate.parse({"/branch": {"equals": "main"}}), scope="run")],
    ),
    "none": (Choice(group=1, decision="none", note="stop"), [Denial("git.push", "stop", scope="run")]),
    "none, for the session": (Choice(group=1, decision="none", scope="session"), [Denial("git.push")]),
    "deny all": (
        Choice(decision="deny", note="no"),
        [Verdict((0, 2, 3), allow=False, note="no"), Verdict((1,), allow=False, note="no")],
    ),
}


@pytest.mark.parametrize(("choice", "answers"), CHOICES.values(), ids=CHOICES.keys())
def test_a_choice_becomes_answers(choice, answers):
    parsed = Choice.model_validate_json(choice.model_dump_json(exclude_unset=True, by_alias=True))
    assert list(answers_of(QUESTION, [parsed])) == answers


def test_alike_without_arguments_is_the_suggestion():
    [grant] = answers_of(QUESTION, [Choice(group=0, decision="alike")])
    assert isinstance(grant, Grant)
    assert grant.arguments == QUESTION.groups[0].suggestion()


def test_a_tool_is_not_refused_always():
    with pytest.raises(PatternError, match="a rule of the policy refuses a tool always"):
        answers_of(QUESTION, [Choice(group=1, decision="none", scope="always")])


def test_alike_without_any_test_is_refused():
    with pytest.raises(PatternError, match="no test is given, which every call passes"):
        answers_of(QUESTION, [Choice(group=0, decision="alike", arguments={})])


def test_a_choice_for_a_tool_that_is_not_asked_about_is_refused():
    with pytest.raises(PatternError, match="the question has 2 tools, counted from 0, and none at 2"):
        answers_of(QUESTION, [Choice(group=2, decision="these")])


def test_a_question_in_words_shows_what_varies_and_hides_nothing():
    sneaky = PendingCall("m\u0430il", "se\u200bnd", "d", {"to": "a\u202eb\x1b[2J", "n": 1})
    ask = Ask(
        Basis("flow", "x"), (FlowUse("private", ("notes.read (1 call)",), "egress", "ask", "private data could leave"),)
    )
    notes = Notes(ask, (Copy("notes.read", "/body", "the launch code"),), ("- old", "+ new\\u200b"))
    question = Question(
        (write(1), *(write(n) for n in range(2, 41)), sneaky), (*[Notes(Ask(Basis("rule", "x")))] * 40, notes)
    )
    assert as_text(question) == (
        "A script wants to call tools:\n"
        "1. files.write: 40 calls\n"
        '   mode="w"\n'
        '   path="notes/01.md", "notes/02.md", … "notes/40.md" (40 values)\n'
        '   text="line 1", "line 2", … "line 40" (40 values)\n'
        "2. m\\u0430il.se\\u200bnd: 1 call\n"
        '   to="a\\u202eb\\u001b[2J"\n'
        "   n=1\n"
        "   ! after private from notes.read (1 call), to egress: private data could leave\n"
        "   ! /body holds text that notes.read returned: the launch code\n"
        "   ! the definition of the tool has changed since it was first seen:\n"
        "   ! - old\n"
        "   ! + new\\u200b"
    )


def test_neither_many_arguments_nor_many_tools_push_one_out_of_sight():
    harmless = {f"option_{number}": number for number in range(30)}
    calls = [PendingCall("files", f"read_{number}", "d", {"path": "a"}) for number in range(31)]
    question = Question((*calls, PendingCall("mail", "send", "d", harmless | {"to": "mallory"})))
    shown = as_text(question)
    assert "32. mail.send: 1 call" in shown
    assert shown.endswith('to="mallory"')


def test_the_end_of_a_long_argument_is_shown_and_all_of_it_on_demand():
    command = "ls" + " " * 1_000 + "; rm -rf /\n\x1b[2J" + "x" * 500 + "; halt"
    question = Question((PendingCall("shell", "run", "d", {"command": command}),))
    assert re.search(r'command="ls +\[… 1,5\d\d characters …\] x+; halt"', as_text(question))
    whole = in_full(question.groups[0])
    assert whole.splitlines()[0] == "call 1:"
    assert all(line.startswith("| ") for line in whole.splitlines()[1:])
    assert r"; rm -rf /\n\u001b[2Jxxx" in whole
    assert "\x1b" not in whole


def test_what_is_too_long_to_be_shown_in_full_says_how_much_is_missing():
    question = Question((PendingCall("shell", "run", "d", {"command": "x" * 300_000}),))
    assert re.search(r"\(not shown: 200,\d\d\d more characters\)$", in_full(question.groups[0]))
