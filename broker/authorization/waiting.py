"""A call that waits for a decision, with what a person said about this call.

Above: run_desk.py. Below: calls, questions. What was said is written down in a form that outlives the process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.authorization.calls import PendingCall
from broker.authorization.decision import Ask, Basis, FlowUse
from broker.authorization.patterns import exact_pattern
from broker.authorization.questions import Verdict
from broker.recordings.parts import CallAnswer
from broker.texts import refusal_texts

if TYPE_CHECKING:
    from broker.authorization.decision import Allow, Deny


@dataclass(slots=True, eq=False)
class Waiting:
    """A call that waits; `verdict` is what a person said about this call, `order` its place in the run.

    `is_left` means that it was put aside for somebody who may come back; `why` says what kept anybody from answering.
    """

    call: PendingCall
    ask: Ask
    order: int = 0
    decision: Allow | Deny | None = None
    verdict: Verdict | None = None
    is_refused: bool = False
    is_left: bool = False
    why: str = ""


def labels_of(ask: Ask) -> frozenset[str]:
    """Return the labels whose flow asks."""
    return frozenset(use.label for use in ask.flows)


def said_of(waiting: Waiting) -> CallAnswer:
    """Return what was said of a call, in the form for the recording."""
    verdict = waiting.verdict
    return CallAnswer(
        call=waiting.order,
        digest=waiting.call.digest,
        after=tuple(sorted(labels_of(waiting.ask))),
        allow=None if verdict is None else verdict.allow,
        note="" if verdict is None else verdict.note,
    )


def waiting_of(said: CallAnswer) -> Waiting:
    """Return the recorded answer about a call that a script is about to make again."""
    ask = Ask(Basis("answer", ""), tuple(FlowUse(label, (), "", "ask", "") for label in said.after))
    verdict = None if said.allow is None else Verdict((), allow=said.allow, note=said.note)
    call = PendingCall("", "", said.digest, {})
    return Waiting(call, ask, said.call, verdict=verdict, is_refused=verdict is None)


def nobody_answers(call: PendingCall, ask: Ask, not_covered: str = "") -> str:
    """Return the text for a script if nobody was there to ask.

    `not_covered` tells why a grant for the tool does not cover the call; empty if there is none.
    """
    if ask.flows:
        return refusal_texts.nobody_agreed(call.shown_name, str(ask.flows[0]))
    if not_covered:
        return refusal_texts.not_covered(call.shown_name, not_covered)
    return refusal_texts.nobody_allowed(call.shown_name, exact_pattern(call.qualified_name))
