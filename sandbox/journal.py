"""The journal that is told of each step of a run, and the past from which a resumed run goes on.

A guest's steps depend only on the script, the manifest, the seed, the limits, and on the clock and the completions
handed in at each step. Whoever keeps what a `Journal` is told can bring a new guest to the same place.

Above: run.py, which tells it of everything in order, before it takes effect. Below: whoever keeps a journal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sandbox.guest_messages import Step
    from sandbox.outcome import Outcome, Printed


@dataclass(frozen=True, slots=True)
class PastStep:
    """What went into one step of a run; nothing goes into the first.

    Attributes:
        now_ns: The run's clock when it began.
        completions: By the call's id, as `Journal.answered` was told, in the order in which they were handed in.
    """

    now_ns: int
    completions: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Past:
    """What is known about the beginning of a run that is resumed.

    Attributes:
        steps: Every step that returned.
        answered: Completions that were journalled and not yet handed in.
        printed_characters: How many characters of its output whoever watches has seen.
        goes_on: Whether the run continues when the past ends; otherwise it is parked there.
    """

    steps: Sequence[PastStep] = ()
    answered: Mapping[int, str] = field(default_factory=dict)
    printed_characters: int = 0
    goes_on: bool = True

    @property
    def elapsed_seconds(self) -> float:
        """The run's clock when its last step began."""
        return self.steps[-1].now_ns / 1e9 if self.steps else 0.0


class Journal(Protocol):
    """Keeps a run. A method returns when its part is kept; what it raises ends the run, and the run raises it.

    How printed text is cut into pieces depends on timing. When a step is taken again, only the whole text of each
    stream is the same.
    """

    @property
    def most_bytes(self) -> float:
        """How much of a run is kept."""

    @property
    def is_full(self) -> bool:
        """Whether as much is kept. The run makes no further call; when the open ones have their answers, it is stopped.

        Once true, it stays so.
        """

    def stepped(self, entered: PastStep, returned: Step, printed: Sequence[Printed]) -> None:
        """Note that a step is over; none of its calls has been made yet."""

    def answered(self, call_id: int, completion: str) -> None:
        """Note that a call has been answered, with this encoded completion; the script has not seen it yet."""

    def retraced(self, number: int, returned: Step, printed: Sequence[Printed]) -> None:
        """Note that step `number` of the past, from 0, was taken again; raise if the journal holds a different one."""

    def ended(self, outcome: Outcome, printed: Sequence[Printed]) -> None:
        """Note that the run has ended; `printed` came from a step that did not return."""


class NoJournal:
    """Keeps nothing."""

    most_bytes = math.inf
    is_full = False

    def stepped(self, entered: PastStep, returned: Step, printed: Sequence[Printed]) -> None:
        """Do nothing."""

    def answered(self, call_id: int, completion: str) -> None:
        """Do nothing."""

    def retraced(self, number: int, returned: Step, printed: Sequence[Printed]) -> None:
        """Do nothing."""

    def ended(self, outcome: Outcome, printed: Sequence[Printed]) -> None:
        """Do nothing."""
