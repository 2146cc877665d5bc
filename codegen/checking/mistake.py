"""One mistake in words: a sentence, and a hint at what to write instead.

Above: judge.py, callbacks.py, missing_names.py, wrong_arguments.py, which write them; check.py, which places them.
Below: near_names.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from codegen.near_names import near_name
from codegen.plain_text import few

if TYPE_CHECKING:
    from collections.abc import Iterable

AWAIT = "write `await` before the call"
AWAIT_IN_ASYNC = f"{AWAIT}, `async def` for the function around it, and `await` where that is called"
NO_AWAIT_IN_LAMBDA = "a lambda cannot `await`: write a loop or `[await ... for ... in ...]` in its place"
AWAIT_FIRST = "put `await` and the call in parentheses: `(await call)[...]`"
_LISTED = 12
_SLIP = 0.75
"""How similar a name must be to count as a slip: `titel` and `title` have 0.8, `time` and `timezone` 0.67."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """The words for a finding that stops a script."""

    message: str
    hint: str = ""


def nearest(name: str, names: Iterable[str], otherwise: str, *, quote: str = "`") -> str:
    """Return the nearest name as a question; then, unless it is a slip of spelling, `otherwise` and all names."""
    choices = list(names)
    near = near_name(name, choices)
    meant = f"did you mean {quote}{near}{quote}?" if near is not None else ""
    if not otherwise or (near is not None and SequenceMatcher(None, name, near).ratio() >= _SLIP):
        return meant
    return f"{meant} {otherwise}: {listed(choices)}".lstrip()


def listed(names: Iterable[str]) -> str:
    """Return the first names of a list, and how many more there are."""
    return few(names, _LISTED) or "nothing"
