from __future__ import annotations

import anyio
import pytest

from broker.authorize import Allow, Denial, Deny, Grant, PendingCall
from broker.consent import ConsentDesk

pytestmark = pytest.mark.anyio


def call(tool: str, number: int = 0) -> PendingCall:
    return PendingCall("git", tool, "sha256:1", {"number": number})


class Scripted:
    """Gives prepared answers, one list for each question."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.questions = []

    async def answer(self, question):
        self.questions.append([pending.tool for pending in question.calls])
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def decide_all(desk, *calls):
    decisions = [None] * len(calls)

    async def decide(index, pending):
        decisions[index] = await desk.decide(pending, order=index)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for index, pending in enumerate(calls):
                tasks.start_soon(decide, index, pending)
    return decisions


async def test_calls_that_wait_together_are_one_question():
    answerer = Scripted([Grant("git.*")])
    decisions = await decide_all(ConsentDesk([], answerer), *(call("git_log", number) for number in range(40)))
    assert decisions == [Allow(Grant("git.*"))] * 40
    assert answerer.questions == [["git_log"] * 40]


async def test_an_answer_may_cover_some_of_the_calls():
    answerer = Scripted([Grant("git.git_log"), Denial("git.git_push", "never")])
    decisions = await decide_all(
        ConsentDesk([], answerer), call("git_log"), call("git_push"), call("git_add"), call("git_log")
    )
    assert decisions == [
        Allow(Grant("git.git_log")),
        Deny("git.git_push was refused: never."),
        Deny("git.git_add was refused."),
        Allow(Grant("git.git_log")),
    ]
    assert len(answerer.questions) == 1


async def test_an_answer_holds_for_later_calls_and_is_not_asked_again():
    answerer = Scripted([Grant("git.git_log")])
    desk = ConsentDesk([], answerer)
    await desk.decide(call("git_log", 1))
    assert await desk.decide(call("git_log", 2)) == Allow(Grant("git.git_log"))
    assert len(answerer.questions) == 1


async def test_a_grant_given_beforehand_asks_nobody():
    answerer = Scripted()
    assert await ConsentDesk([Grant("*")], answerer).decide(call("git_log")) == Allow(Grant("*"))
    assert answerer.questions == []


async def test_without_an_answerer_the_refusal_says_what_to_do():
    assert await ConsentDesk([], None).decide(call("git_log")) == Deny(
        "git.git_log was not called: nobody has allowed it and nobody is there to ask. Allow it beforehand, as with "
        "--allow 'git.git_log'."
    )


@pytest.mark.parametrize("answer", [[], RuntimeError("terminal gone")])
async def test_an_answerer_that_says_nothing_or_fails_has_refused(answer):
    assert await ConsentDesk([], Scripted(answer)).decide(call("git_log")) == Deny("git.git_log was refused.")


async def test_a_refused_call_may_be_asked_about_when_it_is_made_again():
    answerer = Scripted([], [Grant("git.git_log")])
    desk = ConsentDesk([], answerer)
    assert isinstance(await desk.decide(call("git_log")), Deny)
    assert isinstance(await desk.decide(call("git_log")), Allow)


async def test_a_call_that_is_withdrawn_while_it_is_asked_about_leaves_the_others_alone():
    asked = anyio.Event()

    class Slow(Scripted):
        async def answer(self, question):
            if not self.questions:
                self.questions.append([])
                asked.set()
                await anyio.sleep_forever()
            return await super().answer(question)

    desk = ConsentDesk([], Slow([Grant("git.git_add")]))
    with anyio.fail_after(5):
        async with anyio.create_task_group() as withdrawn:
            withdrawn.start_soon(desk.decide, call("git_log"))
            await asked.wait()
            async with anyio.create_task_group() as others:
                others.start_soon(desk.decide, call("git_add"))
                withdrawn.cancel_scope.cancel()
        assert isinstance(await desk.decide(call("git_add")), Allow)
