"""Decides the calls of one run, and puts the undecided ones to a person in one question.

Above: tool_calls.py. Below: decision.py, desk.py for what the session holds, run_answerer.py. An answerer that fails,
is late or leaves calls out has refused them. After a no to a call, nobody is asked about an equal one in the same run.
A call is counted when it is allowed, before it is made.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel

from broker.authorization.decision import Allow, Ask, Basis, Decision, Deny, authorize
from broker.authorization.grants import Denial, Grant
from broker.authorization.questions import NoAnswerError, Notes, Question, Verdict, answers_from
from broker.authorization.run_answerer import RunAnswerer
from broker.authorization.waiting import Waiting, labels_of, nobody_answers, said_of, waiting_of
from broker.texts import refusal_texts
from codegen.tool_spec import canonical_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager

    from broker.authorization.calls import Caller, PendingCall
    from broker.authorization.desk import ConsentDesk
    from broker.authorization.flow import FlowState
    from broker.authorization.questions import Answer, Answerer
    from broker.calls.call_journal import CallJournal
    from broker.recordings.parts import CallAnswer

# The calls of one step reach the desk within a few turns of the event loop.
_TURNS = 5


class RunDesk:
    """Decides the calls of one run."""

    def __init__(self, desk: ConsentDesk, caller: Caller, flow: FlowState, journal: CallJournal) -> None:
        """Share the session's grants; the waiting calls are the run's own."""
        self.caller = caller
        self.flow = flow
        self.journal = journal
        self.audit = desk.audit
        self.policy = desk.policy
        self.answerer = RunAnswerer(desk)
        self._desk = desk
        self._waiting: dict[tuple[int, int], Waiting] = {}
        self._said: dict[int, Waiting] = {}
        self._left: dict[int, Waiting] = {}
        self._refused: set[tuple[str, str, str]] = set()
        desk.open_runs.add(self)
        self._number = 0

    @property
    def _may_leave(self) -> bool:
        """Whether an unanswered call may wait until somebody comes, with the run parked meanwhile."""
        return self.answerer.comes_back and self.journal.can_resume

    def leave(self, call: PendingCall, ask: Ask, *, order: int) -> bool:
        """Put a call aside for a person who is not there yet; return False if the run cannot wait for one."""
        if not (self.answerer.is_away and self._may_leave):
            return False
        self._left[order] = Waiting(call, ask, order)
        return True

    @property
    def question(self) -> Question | None:
        """The question that the run is parked with: the calls that were put aside."""
        return self._question([self._left[order] for order in sorted(self._left)]) if self._left else None

    def take(self, question: Question, answers: Sequence[Answer], by: str) -> None:
        """Take the answers to the question with which the run was parked, for when its calls come again."""
        asked = [
            Waiting(call, notes.ask, order)
            for call, notes, order in zip(question.calls, question.notes, question.numbers, strict=True)
        ]
        self._accept(asked, answers, by)
        self._said |= {waiting.order: waiting for waiting in asked}

    def judge(self, call: PendingCall) -> Decision:
        """Decide by what is known now. Asks nobody, and uses nothing up."""
        desk = self._desk
        return authorize(
            call,
            policy=self.policy,
            grants=desk.book,
            flow=self.flow,
            now=desk.clock(),
            used_up=desk.quotas.used_up(call),
        )

    def decide_now(self, call: PendingCall, *, order: int = 0) -> Decision:
        """Decide without asking, and use up what allows the call. `order` is its place in the run."""
        said = self._said.pop(order, None)
        if said is not None and said.call.digest == call.digest:
            settled = self._settled(replace(said, call=call))
            if settled is not None:
                return settled
        decision = self.judge(call)
        while isinstance(decision, Allow) and not self._use(call, decision):
            decision = self.judge(call)
        return decision

    async def decide(self, call: PendingCall, *, order: int = 0) -> Allow | Deny | None:
        """Decide, asking a person if need be; None if the person may come back to it later.

        Calls that come while a question is open join the next one, in the `order` of the run: tasks reach this point in
        any order.
        """
        decision = self.decide_now(call)
        if not isinstance(decision, Ask):
            return decision
        answerer = self.answerer.present
        if answerer is None:
            why = nobody_answers(call, decision, self._desk.book.not_covered(call, self._desk.clock()))
            return Deny(why, Basis("nobody", decision.basis.name, decision.basis.reason))
        self._number += 1
        ticket = (order, self._number)
        waiting = self._waiting[ticket] = Waiting(call, decision, order)
        try:
            async with self.answerer.turn:
                while (settled := waiting.decision or self._settled(waiting)) is None and not waiting.is_left:
                    await self._ask(answerer)
        finally:
            del self._waiting[ticket]
        return settled

    def still_allows(self, call: PendingCall, decision: Allow) -> bool:
        """Tell whether a call that waited for its turn is still allowed: nothing was revoked or denied meanwhile."""
        if self._desk.book.denial_of(call) is not None:
            return False
        return decision.held is None or self._desk.still_holds(decision.held)

    def turn(self, call: PendingCall) -> AbstractAsyncContextManager[None]:
        """Wait until quotas let one more call run at the same time, and count it as running inside the block."""
        return self._desk.quotas.slot(call)

    def receive(self, call: PendingCall, value: object) -> None:
        """Note data of a server that the script gets."""
        self.flow.receive(call, value)

    def give_back(self, grant: Grant, *, of: Grant, by: str) -> str:
        """Add what is left of a grant that the run had before it was resumed; return its id."""
        return self._desk.book.add(grant, run=self.caller.run, by=by, stands_for=str(of)).id

    def deny(self, denial: Denial) -> None:
        """Add a denial that the run had before it was resumed."""
        self._desk.book.deny(denial, run=self.caller.run)

    def remember(self, said: CallAnswer) -> None:
        """Note what a person said of a call that the script is about to make again."""
        self._said[said.call] = waiting_of(said)

    def count_again(self, call: PendingCall) -> None:
        """Count a call that the run had sent before it was resumed."""
        self._desk.quotas.count_again(call)

    def close(self) -> None:
        """End the run, and forget what held only for it."""
        self._desk.open_runs.discard(self)
        self._desk.book.end_run(self.caller.run)
        self._desk.quotas.end_run(self.caller.run)

    def _use(self, call: PendingCall, decision: Allow) -> bool:
        """Use up what allows a call; return False if it no longer does."""
        if decision.held is not None and not self._desk.use(decision.held):
            return False
        self._desk.quotas.count(call)
        return True

    def _settled(self, waiting: Waiting) -> Allow | Deny | None:
        """Return the decision about a waiting call, or None if somebody still has to be asked."""
        call, verdict = waiting.call, waiting.verdict
        if verdict is not None and not verdict.allow:
            # Stronger than a grant, even one in the same answer.
            self._refused.add(_key(call))
            said = refusal_texts.refused(call.shown_name, why=verdict.note)
            return Deny(said, Basis("answer", "this call", verdict.note, self.answerer.name))
        decision = self.decide_now(call)
        if not isinstance(decision, Ask):
            return decision
        # The person agreed to the flows that they were shown, not to those of data received since.
        if verdict is not None and verdict.allow and labels_of(decision) <= labels_of(waiting.ask):
            allowed = Allow(Basis("answer", "this call", decision.basis.reason, self.answerer.name))
            self._use(call, allowed)
            return allowed
        waiting.verdict = None
        if waiting.is_refused:
            basis = Basis("answer", "no yes", waiting.why or decision.basis.reason, self.answerer.name)
            return Deny(refusal_texts.refused(call.shown_name, why=waiting.why), basis)
        if _key(call) in self._refused:
            why = refusal_texts.EQUAL_REFUSED
            return Deny(
                refusal_texts.refused(call.shown_name, why=why), Basis("answer", "equal call", why, self.answerer.name)
            )
        return None

    async def _ask(self, answerer: Answerer) -> None:
        for _ in range(_TURNS):
            await anyio.lowlevel.checkpoint()
        asked: list[Waiting] = []
        for _, waiting in sorted(self._waiting.items(), key=lambda item: item[0]):
            decision = self.judge(waiting.call)
            if isinstance(decision, Ask) and waiting.decision is None and not waiting.is_left:
                waiting.ask = decision
                asked.append(waiting)
        why = ""
        try:
            answers = await answers_from(answerer, self._question(asked))
        except NoAnswerError as error:
            answers, why = (), str(error)
        if answers is None and self._may_leave:
            for waiting in asked:
                waiting.is_left = True
                self._left[waiting.order] = waiting
            return
        if answers is None:
            why = refusal_texts.nobody_answered(self.answerer.timeout_seconds)
        self._accept(asked, answers or (), self.answerer.name, why)
        # In the order of the calls, so that a grant for a number of calls covers the first ones.
        for waiting in asked:
            waiting.decision = self._settled(waiting)

    def _accept(self, asked: Sequence[Waiting], answers: Sequence[Answer], by: str, why: str = "") -> None:
        """Add the grants and denials in the answers, and note what was said of each call; `why` says why not more."""
        given: dict[int, Verdict] = {}
        held, denials = [], []
        for answer in answers:
            match answer:
                case Grant():
                    held.append(self._desk.give(answer, run=self.caller.run, by=by))
                case Denial():
                    self._desk.book.deny(answer, run=self.caller.run)
                    denials.append(answer)
                case Verdict():
                    # A no to a call counts, whatever else was said of it.
                    given |= {index: answer for index in answer.calls if not (index in given and answer.allow)}
        for index, waiting in enumerate(asked):
            waiting.verdict = given.get(index)
            waiting.is_refused = waiting.verdict is None
            waiting.why = why
        said = [said_of(waiting) for waiting in asked if waiting.order]
        self.journal.decided(by, said, grants=held, denials=denials)

    def _question(self, asked: Sequence[Waiting]) -> Question:
        return Question(
            tuple(replace(waiting.call, arguments=deepcopy(waiting.call.arguments)) for waiting in asked),
            tuple(self._notes(waiting) for waiting in asked),
            self.answerer.timeout_seconds,
            tuple(waiting.order for waiting in asked),
        )

    def _notes(self, waiting: Waiting) -> Notes:
        call = waiting.call
        name, definitions = call.qualified_name, self._desk.book.definitions
        return Notes(waiting.ask, self.flow.copies(call), self._desk.change(name), definitions.shown(name))


def _key(call: PendingCall) -> tuple[str, str, str]:
    """Return what equal calls share."""
    return call.qualified_name, call.digest, canonical_json(call.arguments)
