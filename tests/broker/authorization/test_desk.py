from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.authorization.calls import PendingCall, ToolFacts
from broker.authorization.decision import Allow, Deny
from broker.authorization.desk import ConsentDesk
from broker.authorization.grants import Denial, Grant
from broker.authorization.policy import Policy
from broker.authorization.policy_config import PolicyConfig
from broker.authorization.questions import Verdict
from broker.authorization.quotas import Quotas
from broker.calls.call_journal import NoCallJournal
from broker.errors import StoreError
from codegen import ToolAnnotations, ToolSpec

pytestmark = pytest.mark.anyio

FAILED = ": whoever was asked failed to answer"
UNREADABLE = ": the answer cannot be read"


@pytest.fixture
def echo_spec():
    def make(description="Echoes."):
        return ToolSpec("odd", "echo", None, description, {"type": "object"}, None, ToolAnnotations())

    return make


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


def at(answerer=None, grants=(), **settings):
    return ConsentDesk(grants, answerer, **settings).for_run("run_1")


def said(decision) -> str:
    return decision.reason if isinstance(decision, Deny) else f"allowed by {decision.basis.kind}"


async def test_calls_that_wait_together_are_one_question():
    answerer = Scripted([Grant("git.*")])
    decisions = await decide_all(at(answerer), *(call("git_log", number) for number in range(40)))
    assert [said(one) for one in decisions] == ["allowed by grant"] * 40
    assert answerer.questions == [["git_log"] * 40]


async def test_an_answer_may_cover_some_of_the_calls():
    answerer = Scripted([Grant("git.git_log"), Denial("git.git_push", "never")])
    decisions = await decide_all(at(answerer), call("git_log"), call("git_push"), call("git_add"), call("git_log"))
    assert [said(one) for one in decisions] == [
        "allowed by grant",
        "git.git_push was refused: never.",
        "git.git_add was refused.",
        "allowed by grant",
    ]
    assert len(answerer.questions) == 1


async def test_an_answer_holds_for_later_calls_and_is_not_asked_again():
    answerer = Scripted([Grant("git.git_log")])
    desk = at(answerer)
    await desk.decide(call("git_log", 1))
    assert said(await desk.decide(call("git_log", 2))) == "allowed by grant"
    assert len(answerer.questions) == 1


async def test_a_yes_to_these_calls_is_a_yes_to_no_other():
    answerer = Scripted([Verdict((0, 2), allow=True), Verdict((1,), allow=False, note="not this one.")], [])
    desk = at(answerer)
    decisions = await decide_all(desk, *(call("git_add", number) for number in range(3)))
    assert [said(one) for one in decisions] == [
        "allowed by answer",
        "git.git_add was refused: not this one.",
        "allowed by answer",
    ]
    assert said(await desk.decide(call("git_add", 0))) == "git.git_add was refused."
    assert len(answerer.questions) == 2


async def test_a_no_to_a_call_counts_whatever_else_was_said_of_it():
    for answers in ([Verdict((0,), allow=False), Verdict((0,), allow=True)], [Verdict((0,), allow=True)] * 2):
        expected = "git.git_add was refused." if len({one.allow for one in answers}) == 2 else "allowed by answer"
        for order in (answers, answers[::-1]):
            assert said(await at(Scripted(order)).decide(call("git_add"))) == expected


async def test_a_grant_for_n_calls_is_good_for_n():
    answerer = Scripted([Grant("git.*", calls=2)], [])
    decisions = await decide_all(at(answerer), *(call("git_add", number) for number in range(3)))
    assert [said(one) for one in decisions] == ["allowed by grant", "allowed by grant", "git.git_add was refused."]


@given(st.permutations(range(6)), st.sets(st.integers(0, 5)), st.integers(1, 6))
def test_the_order_in_which_calls_arrive_does_not_matter(arrival, denied, count):
    """Each call is decided as its place in the script says, whichever task reaches the desk first."""

    class Person:
        async def answer(self, question):
            numbers = [one.arguments["number"] for one in question.calls]
            refused = tuple(index for index, number in enumerate(numbers) if number in denied)
            return [Grant("git.*", calls=count), Verdict(refused, allow=False)]

    async def decide_in(order):
        desk = at(Person())
        decided = {}

        async def decide(number):
            decided[number] = type(await desk.decide(call("git_add", number), order=number)).__name__

        async with anyio.create_task_group() as tasks:
            for number in order:
                tasks.start_soon(decide, number)
        return decided

    decided = anyio.run(decide_in, arrival)
    assert decided == anyio.run(decide_in, range(6))
    # A no to a call beats the grant that was given with it; the others use up the grant in the script's order.
    left = [number for number in range(6) if number not in denied][:count]
    assert decided == {number: "Allow" if number in left else "Deny" for number in range(6)}


async def test_a_grant_for_the_run_ends_with_it():
    answerer = Scripted([Grant("git.*", scope="run")], [])
    session = ConsentDesk((), answerer)
    first = session.for_run("run_1")
    of_run = replace(call("git_add"), caller=first.caller)
    assert said(await first.decide(of_run)) == "allowed by grant"
    first.close()
    assert said(await session.for_run("run_1").decide(of_run)) == "git.git_add was refused."
    assert session.book.held == ()


async def test_what_was_said_for_a_run_holds_when_another_run_of_the_session_ends():
    answerer = Scripted([Grant("git.git_add", scope="run"), Denial("git.git_push", "not now", scope="run")], [])
    policy = Policy(PolicyConfig.model_validate({"rules": [{"tools": "git.git_push", "effect": "allow"}]}))
    session = ConsentDesk((), answerer, policy=policy)
    staying, ending = session.for_run("run_1"), session.for_run("run_2")
    add, push = (replace(call(tool), caller=staying.caller) for tool in ("git_add", "git_push"))
    assert said(await staying.decide(add)) == "allowed by grant"
    assert said(await ending.decide(replace(push, caller=ending.caller))) == "allowed by rule"
    ending.close()
    assert [said(await staying.decide(one)) for one in (add, push)] == [
        "allowed by grant",
        "git.git_push was refused: not now.",
    ]
    staying.close()
    again = session.for_run("run_1")
    assert [said(await again.decide(one)) for one in (add, push)] == ["git.git_add was refused.", "allowed by rule"]


async def test_a_grant_that_is_revoked_refuses_the_next_call():
    session = ConsentDesk([Grant("git.*")])
    desk = session.for_run("run_1")
    assert said(await desk.decide(call("git_add"))) == "allowed by grant"
    assert session.book.revoke(session.book.held[0].id)
    assert "nobody has allowed it" in said(await desk.decide(call("git_add")))
    assert not session.book.revoke("g1")


NOT_COVERING = {
    "other arguments": (
        Grant.parse('git.git_add {"/path": {"glob": "notes/*"}}'),
        'git.git_add {"/path":{"glob":"notes/*"}} does not hold for these arguments',
    ),
    "used up": (Grant("git.git_add", calls=1), "git.git_add (1 call) is used up"),
    "over": (
        Grant("git.*", expires_at=datetime(2020, 1, 1, tzinfo=UTC)),
        "git.* (until 2020-01-01 00:00 UTC) has ended",
    ),
}


@pytest.mark.parametrize("case", NOT_COVERING)
async def test_a_call_that_a_grant_for_its_tool_does_not_cover_is_told_why(case):
    grant, why = NOT_COVERING[case]
    desk = ConsentDesk([Grant("mail.*"), grant]).for_run("run_1")
    if grant.calls:
        assert said(await desk.decide(call("git_add"))) == "allowed by grant"
    assert said(await desk.decide(call("git_add"))) == (
        f"git.git_add was not called: the grant {why}, and nobody is there to ask."
    )


async def test_a_call_that_waits_for_its_turn_is_not_made_once_it_is_denied():
    policy = Policy(PolicyConfig.model_validate({"rules": [{"tools": "mail.*", "effect": "allow"}]}))
    session = ConsentDesk([Grant("git.*")], policy=policy)
    desk = session.for_run("run_1")
    waiting = [call("git_push"), call("git_add"), PendingCall("mail", "send", "sha256:1", {})]
    allowed = [(one, by) for one in waiting if isinstance(by := await desk.decide(one), Allow)]
    assert [desk.still_allows(*one) for one in allowed] == [True, True, True]
    for denied in ("git.git_push", "mail.*"):
        session.book.deny(Denial(denied))
    assert [desk.still_allows(*one) for one in allowed] == [False, True, False]


async def test_a_grant_is_revoked_also_where_that_cannot_be_written_down():
    class FullDisk(NoCallJournal):
        def revoked(self, grant_id):
            raise StoreError(f"the disk is full: {grant_id}")

    session = ConsentDesk([Grant("git.*")])
    desk = session.for_run("run_1", journal=FullDisk())
    with pytest.raises(StoreError):
        session.revoke("g1")
    assert "nobody has allowed it" in said(await desk.decide(call("git_add")))


def test_a_grant_is_revoked_with_the_copies_that_resumed_runs_hold():
    session = ConsentDesk([Grant("git.*"), Grant("mail.*")])
    copy = session.book.add(Grant("git.git_add"), run="run_1", stands_for=str(Grant("git.*")))
    session.revoke("g1")
    assert not session.book.holds(copy)
    assert [held.grant for held in session.book.held] == [Grant("mail.*")]


async def test_a_grant_given_beforehand_asks_nobody():
    answerer = Scripted()
    assert said(await at(answerer, [Grant("*")]).decide(call("git_log"))) == "allowed by grant"
    assert answerer.questions == []


async def test_without_an_answerer_the_refusal_says_what_to_do():
    assert said(await at().decide(call("git_log"))) == (
        "git.git_log was not called: nobody has allowed it and nobody is there to ask. Allow it beforehand, as with "
        "--allow 'git.git_log'."
    )


class Hostile:
    """Answers whatever it was made with."""

    def __init__(self, answer):
        self.given = answer

    async def answer(self, question):
        question.calls[0].arguments["number"] = "changed"
        return self.given


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ([], ""),
        (None, UNREADABLE),
        (5, UNREADABLE),
        (Verdict((0,), allow=True), UNREADABLE),
        ("yes", UNREADABLE),
        ([True], UNREADABLE),
        ([Grant("*"), "yes"], UNREADABLE),
        ([Verdict((5, -1), allow=True)], ""),
        ([Grant("hub.*")], ""),
        ([Grant("git.git_log@sha256:2")], ""),
        (RuntimeError("terminal gone"), FAILED),
        (ExceptionGroup("several", [ValueError("x")]), FAILED),
    ],
    ids=repr,
)
async def test_an_answerer_that_fails_or_does_not_say_yes_has_refused(answer, why):
    answerer = Scripted(answer) if isinstance(answer, Exception) else Hostile(answer)
    pending = call("git_log")
    assert said(await at(answerer).decide(pending)) == f"git.git_log was refused{why}."
    assert pending.arguments == {"number": 0}


async def test_no_answer_in_time_is_a_refusal():
    class Silent:
        async def answer(self, _question):
            await anyio.sleep_forever()

    policy = Policy(PolicyConfig(answer_timeout_seconds=0.01))
    with anyio.fail_after(5):
        decision = await at(Silent(), policy=policy).decide(call("git_log"))
    assert said(decision) == "git.git_log was refused: nobody answered within 0.01 s."
    assert decision.basis.reason == "nobody answered within 0.01 s"


async def test_an_answer_that_comes_after_the_time_is_a_refusal():
    class InAThread:
        async def answer(self, question):
            with anyio.move_on_after(question.timeout_seconds + 0.01, shield=True):  # as `to_thread.run_sync(input)`
                await anyio.sleep_forever()
            return [Verdict((0,), allow=True)]

    policy = Policy(PolicyConfig(answer_timeout_seconds=0.01))
    with anyio.fail_after(5):
        decision = await at(InAThread(), policy=policy).decide(call("git_log"))
    assert said(decision) == "git.git_log was refused: nobody answered within 0.01 s."


@pytest.mark.parametrize(
    "wrong", [{"allow": "no"}, {"allow": 1}, {"calls": 0}, {"calls": "0"}, {"note": None}], ids=repr
)
async def test_a_verdict_that_is_no_clear_yes_or_no_is_a_refusal(wrong):
    class Person:
        async def answer(self, _question):
            return [Verdict(**{"calls": (0,), "allow": True, **wrong})]

    assert said(await at(Person()).decide(call("git_log"))) == f"git.git_log was refused{FAILED}."


async def test_of_equal_calls_of_a_run_that_were_refused_one_is_asked_about():
    answerer = Scripted(
        [Verdict((0,), allow=False, note="no")], [Verdict((0,), allow=True)], [Verdict((0,), allow=True)]
    )
    session = ConsentDesk((), answerer)
    run = session.for_run("run_1")
    assert said(await run.decide(call("git_add", 1))) == "git.git_add was refused: no."
    assert said(await run.decide(call("git_add", 1))) == (
        "git.git_add was refused: an equal call was refused in this run, and nobody is asked again."
    )
    assert len(answerer.questions) == 1
    assert isinstance(await run.decide(call("git_add", 2)), Allow)
    assert isinstance(await session.for_run("run_2").decide(call("git_add", 1)), Allow)
    assert len(answerer.questions) == 3


async def test_a_grant_given_later_covers_a_call_that_was_refused():
    answerer = Scripted([Verdict((0,), allow=False)], [Grant("git.git_add")])
    desk = at(answerer)
    assert isinstance(await desk.decide(call("git_add", 1)), Deny)
    assert isinstance(await desk.decide(call("git_add", 2)), Allow)
    assert isinstance(await desk.decide(call("git_add", 1)), Allow)


async def test_a_call_that_nobody_has_said_anything_of_may_be_asked_about_when_it_is_made_again():
    answerer = Scripted([], [Grant("git.git_log")])
    desk = at(answerer)
    assert isinstance(await desk.decide(call("git_log")), Deny)
    assert isinstance(await desk.decide(call("git_log")), Allow)


async def test_runs_of_a_session_are_asked_about_separately():
    both = anyio.Event()
    asked = []

    class Two:
        async def answer(self, question):
            asked.append([one.tool for one in question.calls])
            if len(asked) == 2:
                both.set()
            await both.wait()
            return [Grant("git.git_log")]

    session = ConsentDesk((), Two())
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.for_run("run_1").decide, call("git_log"))
            tasks.start_soon(session.for_run("run_2").decide, call("git_add"))
    assert sorted(asked) == [["git_add"], ["git_log"]]


async def test_an_answer_covers_the_flows_that_were_shown_and_no_later_ones():
    sending = PendingCall("mail", "send", "d", {}, ToolFacts(labels=frozenset({"egress"})))

    class Late:
        """Something private comes in while the person thinks."""

        def __init__(self):
            self.shown = []

        async def answer(self, question):
            self.shown.append([str(use) for use in question.notes[0].ask.flows])
            if len(self.shown) == 1:
                reading = PendingCall("notes", "read", "d", {}, ToolFacts(labels=frozenset({"private"})))
                desk.receive(reading, "secret plans")
            return [Verdict((0,), allow=True)]

    answerer = Late()
    desk = at(answerer)
    assert said(await desk.decide(sending)) == "allowed by answer"
    assert answerer.shown == [[], ["after private from notes.read (1 call), to egress"]]


async def test_a_quota_counts_what_is_allowed_and_refuses_the_rest():
    policy = Policy(PolicyConfig.model_validate({"quotas": [{"tools": "git.*", "per_run": 2}]}))
    quotas = Quotas(policy)
    session = ConsentDesk([Grant("*")], policy=policy, quotas=quotas)
    desk = session.for_run("run_1")
    of_run = replace(call("git_add"), caller=desk.caller)
    decisions = [await desk.decide(of_run) for _ in range(3)]
    assert [said(one) for one in decisions] == [
        "allowed by grant",
        "allowed by grant",
        "git.git_add was refused: the quota 1 (2 calls in a run) is used up.",
    ]
    assert said(await session.for_run("run_2").decide(call("git_add"))) == "allowed by grant"


async def test_a_quota_counts_what_is_allowed_by_a_yes_to_the_call_alone():
    policy = Policy(PolicyConfig.model_validate({"quotas": [{"tools": "git.*", "per_run": 1}]}))
    person = Scripted([Verdict((0,), allow=True)])
    desk = at(person, policy=policy)
    of_run = replace(call("git_add"), caller=desk.caller)
    assert [said(await desk.decide(of_run)) for _ in range(2)] == [
        "allowed by answer",
        "git.git_add was refused: the quota 1 (1 call in a run) is used up.",
    ]


async def test_a_quota_of_a_minute_says_when_there_is_room_again():
    seconds = [0.0]
    policy = Policy(
        PolicyConfig.model_validate({"quotas": [{"name": "few", "tools": "*", "per_minute": 1, "each_tool": True}]})
    )
    quotas = Quotas(policy, clock=lambda: seconds[0])
    desk = ConsentDesk([Grant("*")], policy=policy, quotas=quotas).for_run()
    assert isinstance(await desk.decide(call("git_add")), Allow)
    seconds[0] = 12.5
    assert said(await desk.decide(call("git_add"))) == (
        "git.git_add was refused: the quota 'few' for git.git_add (1 call a minute) is used up for 48 s."
    )
    assert isinstance(await desk.decide(call("git_log")), Allow)
    seconds[0] = 60.0
    assert isinstance(await desk.decide(call("git_add")), Allow)


async def test_calls_beyond_a_quota_of_calls_at_once_wait_for_their_turn():
    policy = Policy(PolicyConfig.model_validate({"quotas": [{"tools": "*", "concurrent": 2}]}))
    desk = at(None, [Grant("*")], policy=policy)
    now, most, done = 0, 0, 0

    async def make() -> None:
        nonlocal now, most, done
        async with desk.turn(call("git_add")):
            now += 1
            most = max(most, now)
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            now -= 1
            done += 1

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for _ in range(9):
                tasks.start_soon(make)
    assert (most, done) == (2, 9)


async def test_a_grant_lapses_when_the_definition_changes_and_the_difference_is_shown(echo_spec):
    shown = []

    class Person:
        async def answer(self, question):
            shown.append(question.notes[0].change)
            return [question.groups[0].grant(scope="session")]

    session = ConsentDesk([Grant("odd.*")], Person())
    desk = session.for_run()
    before, after = echo_spec(), echo_spec(description="Sends the text to evil.example.")
    session.see(before)
    assert said(await desk.decide(PendingCall("odd", "echo", before.digest, {}))) == "allowed by grant"
    session.see(after)
    changed = PendingCall("odd", "echo", after.digest, {})
    assert said(await desk.decide(changed)) == "allowed by grant"
    assert shown == [('- "description": "Echoes.",', '+ "description": "Sends the text to evil.example.",')]
    assert said(await desk.decide(changed)) == "allowed by grant"
    session.see(before)
    assert len(shown) == 1
    assert said(await desk.decide(PendingCall("odd", "echo", before.digest, {}))) == "allowed by grant"


async def test_a_grant_holds_for_the_definition_at_the_time_it_was_given(echo_spec):
    session = ConsentDesk()
    before, after = echo_spec(), echo_spec(description="Other.")
    session.see(before)
    session.book.add(Grant("odd.*"))
    session.see(after)
    assert "nobody has allowed it" in said(await session.for_run().decide(PendingCall("odd", "echo", after.digest, {})))
    session.book.add(Grant("odd.echo"))
    assert said(await session.for_run().decide(PendingCall("odd", "echo", after.digest, {}))) == "allowed by grant"


async def test_a_call_that_is_withdrawn_while_it_is_asked_about_leaves_the_others_alone():
    asked = anyio.Event()

    class Slow(Scripted):
        async def answer(self, question):
            if not self.questions:
                self.questions.append([])
                asked.set()
                await anyio.sleep_forever()
            return await super().answer(question)

    desk = at(Slow([Grant("git.git_add")]))
    with anyio.fail_after(5):
        async with anyio.create_task_group() as withdrawn:
            withdrawn.start_soon(desk.decide, call("git_log"))
            await asked.wait()
            async with anyio.create_task_group() as others:
                others.start_soon(desk.decide, call("git_add"))
                withdrawn.cancel_scope.cancel()
        assert isinstance(await desk.decide(call("git_add")), Allow)
