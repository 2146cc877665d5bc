"""Decides the calls of a recording again under another policy. Nothing is run and nothing is sent.

Above: `codemode replay --policy`. Below: the decision function, which has no I/O.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from broker.authorization.calls import Caller, PendingCall, ToolFacts
from broker.authorization.decision import Allow, Deny, authorize, basis_name
from broker.authorization.flow import FlowState
from broker.authorization.grants import GrantBook
from broker.authorization.model_calls import TOOL, model_call
from broker.authorization.quotas import Quotas
from broker.errors import PatternError
from broker.recordings.journal.recorded_grants import denial_of, grant_of

if TYPE_CHECKING:
    from broker.authorization.grants import Grant
    from broker.authorization.policy import Policy
    from broker.recordings.call_story import CallStory
    from broker.recordings.parts import RecordedTool
    from broker.recordings.recording import Recording

Decided = Literal["allowed", "denied", "asked", "not sent"]


@dataclass(frozen=True, slots=True)
class JudgedCall:
    """One call under two policies.

    Attributes:
        call: The call's id.
        name: `server.tool`.
        line: Where in the script.
        then: What became of it: allowed, also by somebody who was asked; denied; or not sent, which tells nothing of
            what was decided, as its arguments may not have fitted, or it may still wait for an answer.
        now: What the policy says.
        basis: The rule, grant or flow that says so.
    """

    call: int
    name: str
    line: int
    then: Decided
    now: Decided
    basis: str

    @property
    def is_same(self) -> bool:
        """Whether the policy decides as it was decided, if that is known; a question counts as any answer to it."""
        return self.then in {self.now, "not sent"} or self.now == "asked"


def judge_recording(recording: Recording, policy: Policy) -> list[JudgedCall]:
    """Judge the recorded calls in order, with what people had allowed and refused before the run.

    Raises:
        RecordingError: The recording does not hold the arguments of its calls.
    """
    tools = {tool.function: tool for tool in recording.begun.tools}
    book = GrantBook.of(_grants(recording), [denial_of(one, "session") for one in recording.begun.denials])
    flow = FlowState()
    made_at = 0.0
    quotas = Quotas(policy, clock=lambda: made_at)
    judged = []
    for story in recording.calls.values():
        tool = tools.get(story.function)
        if story.function == TOOL:
            pending = model_call(story.arguments, policy, _caller(recording))
        elif tool is not None:
            pending = _pending(recording, story, tool)
        else:
            continue  # it was not described, or is none: no policy was asked
        made_at = story.made / 1e9
        decision = authorize(
            pending,
            policy=policy,
            grants=book,
            flow=flow,
            now=recording.begun.at / 1e9,
            used_up=quotas.used_up(pending),
        )
        if isinstance(decision, Allow):
            quotas.count(pending)
        now: Decided = "allowed" if isinstance(decision, Allow) else "denied" if isinstance(decision, Deny) else "asked"
        basis = basis_name(decision.basis.kind, decision.basis.name)
        judged.append(JudgedCall(story.call.id, pending.qualified_name, story.line, _then(story), now, basis))
        answer = story.answer
        if answer is not None and story.sent is not None:
            flow.receive(pending, answer)
    return judged


def _pending(recording: Recording, story: CallStory, tool: RecordedTool) -> PendingCall:
    facts = ToolFacts.of(tool, trust_annotations=tool.is_trusted, labels=tool.labels)
    arguments = story.arguments
    return PendingCall(tool.server, tool.tool, tool.digest, arguments, facts, _caller(recording))


def _caller(recording: Recording) -> Caller:
    return Caller(run=recording.begun.run_id)


def _then(story: CallStory) -> Decided:
    if story.denied is not None:
        return "denied"
    return "allowed" if story.sent is not None else "not sent"


def _grants(recording: Recording) -> list[Grant]:
    grants = []
    for recorded in recording.begun.grants:
        try:
            grants.append(grant_of(recorded))
        except PatternError:
            continue  # used up, or none of ours: leaving it out can only ask more
    return grants
