"""Whether a call may be made: one function, without I/O, clock or MCP.

Above: run_desk.py, which asks people where the decision is `Ask`. Below: policy, grants, flow. A call that nothing
allows is `Ask`, and an `Ask` that nobody answers is a refusal. The first of these that applies decides: a person's
denial, a rule that denies, a flow that is denied, a quota that is used up; then a rule that allows, unless a flow asks;
then a grant; then a person.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from broker.authorization.policy_config import COPIED
from broker.authorization.shown import shown_name
from broker.texts import refusal_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.authorization.calls import PendingCall
    from broker.authorization.flow import FlowState
    from broker.authorization.grants import Denial, GrantBook, Held
    from broker.authorization.policy import Policy
    from broker.authorization.policy_config import Effect, Rule

BasisKind: TypeAlias = Literal["rule", "grant", "answer", "denial", "flow", "quota", "nobody"]

_KINDS = {"rule": "", "quota": "", "nobody": refusal_texts.NOBODY_WAS_THERE}
"""What stands before the name of what decided, if not its kind."""


@dataclass(frozen=True, slots=True)
class Basis:
    """What decided a call, or made it a question.

    Attributes:
        kind: What sort of thing it is; `answer` is one for this call alone, `nobody` the lack of one.
        name: Which one, as people read it.
        reason: Why, in the words of who wrote it.
        by: Who answered, where somebody was asked; for a grant, who gave it.
    """

    kind: BasisKind
    name: str
    reason: str = ""
    by: str = ""


def basis_name(kind: str, name: str) -> str:
    """Return what decided a call, in words."""
    return f"{_KINDS.get(kind, kind)} {name}".strip()


@dataclass(frozen=True, slots=True)
class FlowUse:
    """A flow that a call would be part of: the label received, where it came from, the label it would reach."""

    label: str
    sources: tuple[str, ...]
    to: str
    effect: Effect
    reason: str

    def __str__(self) -> str:
        """Return `after private from notes.read (2 calls), to egress`."""
        return refusal_texts.after_data(self.label, self.sources, self.to)


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may be made; `held` is the grant that allows it, if one does."""

    basis: Basis
    held: Held | None = None


@dataclass(frozen=True, slots=True)
class Deny:
    """The call may not be made; `reason` is a sentence for the script."""

    reason: str
    basis: Basis


@dataclass(frozen=True, slots=True)
class Ask:
    """Nothing has decided the call yet: a person has to.

    Attributes:
        flows: The flows that ask; whoever answers the question answers for them.
    """

    basis: Basis
    flows: tuple[FlowUse, ...] = ()


Decision: TypeAlias = Allow | Deny | Ask


def authorize(
    call: PendingCall,
    *,
    policy: Policy,
    grants: GrantBook,
    flow: FlowState,
    now: float,
    used_up: str = "",
) -> Decision:
    """Decide one call.

    Args:
        call: The call with what is known about its tool and caller.
        policy: What the operator configured.
        grants: What people have allowed and denied.
        flow: What the run has received.
        now: Seconds since the epoch, for grants that expire.
        used_up: Says which quota is used up; empty if none is.
    """
    rule, title = policy.rule_for(call)
    flows = _flows(call, policy, flow)
    refusal = _refusal(call, rule, title, flows, denial=grants.denial_of(call), used_up=used_up)
    if refusal is not None:
        return refusal
    asking = tuple(use for use in flows if use.effect == "ask")
    if rule.effect == "allow" and not asking:
        return Allow(Basis("rule", title, rule.reason))
    held = grants.covering(call, frozenset(use.label for use in asking), now)
    if held is not None:
        return Allow(Basis("grant", held.title, by=held.by), held)
    if asking:
        return Ask(Basis("flow", str(asking[0]), asking[0].reason), asking)
    return Ask(Basis("rule", title, rule.reason))


def _refusal(
    call: PendingCall, rule: Rule, title: str, flows: Sequence[FlowUse], *, denial: Denial | None, used_up: str
) -> Deny | None:
    """Return what refuses a call whatever else allows it."""
    if denial is not None:
        by = "" if denial.note else refusal_texts.BY_A_PERSON
        return _refused(call, Basis("denial", denial.pattern, denial.note), by)
    if rule.effect == "deny":
        return _refused(call, Basis("rule", title, rule.reason), refusal_texts.by_a_rule(title))
    for use in flows:
        if use.effect == "deny":
            return _refused(call, Basis("flow", str(use), use.reason), refusal_texts.by_a_flow(str(use)))
    if not used_up:
        return None
    return Deny(refusal_texts.refused(call.shown_name, why=used_up), Basis("quota", used_up))


def _flows(call: PendingCall, policy: Policy, flow: FlowState) -> Sequence[FlowUse]:
    """Return the flows that a call would be part of, one for each label received and label reached."""
    reached = call.facts.labels
    if not reached:
        return ()
    uses: dict[tuple[str, str], FlowUse] = {}
    for rule in policy.flows:
        pair = (rule.source, rule.to)
        if rule.to in reached and pair not in uses:
            if rule.source == COPIED:
                sources = tuple(dict.fromkeys(shown_name(copy.source) for copy in flow.copies(call)))
            else:
                sources = flow.sources(rule.source, call.qualified_name)
            if sources:
                uses[pair] = FlowUse(rule.source, sources, rule.to, rule.effect, rule.reason)
    return tuple(uses.values())


def _refused(call: PendingCall, basis: Basis, by: str) -> Deny:
    return Deny(refusal_texts.refused(call.shown_name, by, basis.reason), basis)
