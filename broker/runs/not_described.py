"""The outcome of a script that was not started because it names tools that were not described.

Above: preparation.py, which finds that out, and whoever answers such a script. Below: call_texts.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from broker.runs.script_check import mistakes_listed
from broker.texts.call_texts import NOT_FITTING, NOW_DESCRIBED, fetch_them
from sandbox import Raised

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from codegen import Diagnostic

_MISTAKES_CHARACTERS = 580
"""For the reason and the mistakes together, so that a message stays under 800 with what stands around them."""

_LEAST_CHARACTERS = 130
_MAX_PROBLEMS = 3


@dataclass(frozen=True, slots=True)
class NotDescribed:
    """Tools that a script names and that are not described.

    Attributes:
        names: Their qualified names.
        reason: Why the script was not started.
    """

    names: tuple[str, ...]
    reason: str

    @property
    def outcome(self) -> Raised:
        """How the run of such a script ends, before it has begun."""
        return self._raised(fetch_them(self.names))

    def outcome_for_now(self, problems: Iterable[str]) -> Raised:
        """Return the outcome for a caller who could not be given any of the descriptions, and why."""
        return self._raised(" ".join(f"{problem}." for problem in islice(dict.fromkeys(problems), _MAX_PROBLEMS)))

    def outcome_with_stubs(self, described: Sequence[str], mistakes: Sequence[Diagnostic]) -> Raised:
        """Return the outcome for a caller who gets the descriptions of those `described` with it.

        `mistakes` are what all of these show; they are not known while there are others.
        """
        if others := [name for name in self.names if name not in set(described)]:
            return self._raised(fetch_them(others, are_others=True))
        if not mistakes:
            return self._raised(NOW_DESCRIBED)
        room = max(_MISTAKES_CHARACTERS - len(self.reason), _LEAST_CHARACTERS)
        return self._raised(f"{NOT_FITTING}\n{mistakes_listed(mistakes, room)}")

    def _raised(self, next_step: str) -> Raised:
        message = f"{self.reason} {next_step}"
        return Raised("ToolDescriptionRequired", message, f"ToolDescriptionRequired: {message}\n")
