"""What is said of one mistake: a sentence, and a hint that names what there is instead.

Above: judge.py, missing_names.py, wrong_arguments.py, which write them; check.py, which places them.
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
NO_AWAIT_IN_LAMBDA = "a lambda cannot `await`: write a loop or `[await ... for ... in ...]` in its place"
AWAIT_FIRST = "put `await` and the call in parentheses: `(await call)[...]`"
_LISTED = 12
_SLIP = 0.75
"""How like a name is what it was meant to be: `titel` is 0.8 like `title`, and `time` 0.67 like `timezone`."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """What to say of a finding that stops a script."""

    message: str
    hint: str = ""


def nearest(name: str, names: Iterable[str], otherwise: str, *, quote: str = "`") -> str:
    """Return the nearest of the names as a question, and unless it is a slip of spelling all of them after a word."""
    choices = list(names)
    near = near_name(name, choices)
    meant = f"did you mean {quote}{near}{quote}?" if near is not None else ""
    if not otherwise or (near is not None and SequenceMatcher(None, name, near).ratio() >= _SLIP):
        return meant
    return f"{meant} {otherwise}: {listed(choices)}".lstrip()


def listed(names: Iterable[str]) -> str:
    """Return names as a list that ends."""
    return few(names, _LISTED) or "nothing"
