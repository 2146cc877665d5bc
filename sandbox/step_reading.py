"""Reads what a guest returned without holding the event loop: a long message is read in a thread.

Above: isolate.py, process_isolate.py. Below: messages.py. With the interpreter's lock other runs still wait for the
parts that are one call into C, and no longer for all of them together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio.to_thread

from sandbox.messages import read_step

if TYPE_CHECKING:
    from sandbox.messages import Step
    from sandbox.outcome import Raised, Stopped
    from sandbox.terms import Terms

LONG_CHARACTERS = 100_000
"""Messages longer than this take a thread, which costs some 0.1 ms: a hundredth of reading them."""


async def step_of(answer: str | Raised | Stopped, terms: Terms) -> Step:
    """Returns what came out of a guest as a step."""
    if isinstance(answer, str) and len(answer) > LONG_CHARACTERS:
        return await anyio.to_thread.run_sync(read_step, answer, terms)
    return read_step(answer, terms)
