"""A guest's answer, or what ended the guest, as the step or the references that its driver needs.

Above: isolate.py. Below: guest_messages.py. A long message is read in a thread: other runs then wait only while one
call into C holds the interpreter's lock, and not for the whole message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio.to_thread

from sandbox.errors import ProtocolError
from sandbox.guest_messages import PROTOCOL_ERROR, Step, decode_references, decode_step, protocol_failure
from sandbox.outcome import Completed, Raised, Reference, Stopped

if TYPE_CHECKING:
    from sandbox.limits import Limits
    from sandbox.terms import Terms

LONG_CHARACTERS = 500_000
"""Longer messages are read in a thread. That costs 2 ms or more, with what it displaces from the caches; reading so
long a message takes from 1 ms, for a single text, to 20."""

_ENDED = '{"outcome":{'
"""How a message begins that says only how the script has ended."""


async def step_of(answer: str | Raised | Stopped, terms: Terms) -> Step:
    """Return a guest's answer, or what ended it, as a step."""
    if isinstance(answer, str) and len(answer) > LONG_CHARACTERS:
        return await anyio.to_thread.run_sync(read_step, answer, terms)
    return read_step(answer, terms)


def read_step(answer: str | Raised | Stopped, terms: Terms) -> Step:
    """Read a guest's answer, or what ended it, as a step; the timer of the step counts from the start of the run."""
    if isinstance(answer, Raised | Stopped):
        return Step(outcome=answer)
    try:
        step = decode_step(answer, terms.limits)
    except ProtocolError as error:
        return Step(outcome=protocol_failure(str(error)))
    if step.timer is None or terms.origin_ns == 0:
        return step
    return step._replace(timer=step.timer - terms.origin_ns / 1e9)


def is_reusable(answer: str | Raised | Stopped, step: Step) -> bool:
    """Tell whether the guest has ended its script by itself, and so can run another one."""
    if isinstance(answer, Raised | Stopped):
        return False
    match step.outcome:
        case Completed() | Stopped("value_bytes"):
            return True
        case Stopped("depth" | "values"):
            return answer.startswith(_ENDED)
        case Raised(kind):
            return kind != PROTOCOL_ERROR
    return False


def read_references(answer: str | Raised | Stopped, limits: Limits) -> tuple[Reference, ...] | Raised | Stopped:
    """Read the answer of a guest that was asked for references, or what ended it."""
    if isinstance(answer, Raised | Stopped):
        return answer
    try:
        return decode_references(answer, limits)
    except ProtocolError as error:
        return protocol_failure(str(error))
