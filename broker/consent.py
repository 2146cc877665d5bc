"""Questions to people: the calls of one run that nobody has allowed yet are asked about together.

Above: tool_calls.py. Below: an `Answerer`, which is the terminal, a client or the embedding host. An answerer
that fails, or answers less than it was asked, has refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

import anyio
import anyio.lowlevel

from broker.authorize import Allow, Ask, Decision, Denial, Deny, Grant, PendingCall, authorize
from broker.logging import logger

if TYPE_CHECKING:
    from collections.abc import Sequence

# The calls of one step reach the desk within a few turns of the event loop.
_TURNS = 5


@dataclass(frozen=True, slots=True)
class Question:
    """The calls of one run that wait for an answer, in the order in which they were made."""

    calls: tuple[PendingCall, ...]


Answer: TypeAlias = Grant | Denial
"""What a person said. It holds for the rest of the session, and for every waiting call that it covers."""


class Answerer(Protocol):
    """Whoever can say yes or no."""

    async def answer(self, question: Question) -> Sequence[Answer]:
        """Return grants and denials; a call that none of them covers is refused."""


class ConsentDesk:
    """What has been allowed and denied in a session, and the one place that asks for more."""

    def __init__(self, grants: Sequence[Grant], answerer: Answerer | None) -> None:
        """Start with the grants given beforehand; without an answerer nobody is asked."""
        self.grants: list[Grant] = list(grants)
        self.denials: list[Denial] = []
        self._answerer = answerer
        self._waiting: dict[tuple[int, int], PendingCall] = {}
        self._refused: set[tuple[int, int]] = set()
        self._number = 0
        self._asking = anyio.Lock()

    def judge(self, call: PendingCall) -> Decision:
        """Decide by what is known now, without asking."""
        return authorize(call, grants=self.grants, denials=self.denials)

    async def decide(self, call: PendingCall, *, order: int = 0) -> Allow | Deny:
        """Decide, asking when nobody has said yet. Calls that come while a question is open join the next one.

        `order` is the call's place in its question: tasks reach this point in any order.
        """
        decision = self.judge(call)
        if not isinstance(decision, Ask):
            return decision
        if self._answerer is None:
            return Deny(nobody_answers(call))
        self._number += 1
        ticket = (order, self._number)
        self._waiting[ticket] = call
        try:
            async with self._asking:
                decision = self.judge(call)
                if isinstance(decision, Ask) and ticket not in self._refused:
                    await self._ask(self._answerer)
                    decision = self.judge(call)
        finally:
            self._waiting.pop(ticket, None)
            self._refused.discard(ticket)
        return Deny(f"{call.qualified_name} was refused.") if isinstance(decision, Ask) else decision

    async def _ask(self, answerer: Answerer) -> None:
        for _ in range(_TURNS):
            await anyio.lowlevel.checkpoint()
        asked = {ticket: call for ticket, call in sorted(self._waiting.items()) if isinstance(self.judge(call), Ask)}
        try:
            answers = await answerer.answer(Question(tuple(asked.values())))
        except Exception:  # noqa: BLE001  # whatever is wrong with an answerer, it has not said yes
            logger().exception("the answerer failed")
            answers = ()
        self.grants += [answer for answer in answers if isinstance(answer, Grant)]
        self.denials += [answer for answer in answers if isinstance(answer, Denial)]
        self._refused |= {ticket for ticket, call in asked.items() if isinstance(self.judge(call), Ask)}


def nobody_answers(call: PendingCall) -> str:
    """Return what a script is told when nobody was there to ask."""
    return (
        f"{call.qualified_name} was not called: nobody has allowed it and nobody is there to ask. "
        f"Allow it beforehand, as with --allow '{call.qualified_name}'."
    )
