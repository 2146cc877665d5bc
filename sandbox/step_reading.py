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

LONG_CHARACTERS = 500_000
"""Messages longer than this take a thread, which costs 2 ms or more with what it displaces from the caches; reading so
long a one takes from 1 ms, for a single text, to 20."""


async def step_of(answer: str | Raised | Stopped, terms: Terms) -> Step:
    """Returns what came out of a guest as a step."""
    if isinstance(answer, str) and len(answer) > LONG_CHARACTERS:
        return await anyio.to_thread.run_sync(read_step, answer, terms)
    return read_step(answer, terms)
