"""What a run tells as it happens, and the past that a run is given to go on from.

A guest's steps are a function of the script, the manifest, the seed, the limits, and of the clock and the completions
handed in at each step. Whoever keeps what a `Journal` is told can bring a new guest to the same place.

Above: whoever keeps it. Below: run.py, which tells it, in this order, before what is told takes effect.
"""

from __future__ import annotations

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
    """What is known of a run that has begun before.

    Attributes:
        steps: Every step that returned.
        answered: Completions that were journalled and not yet handed in.
        printed_characters: How much of what it printed was seen by whoever watches.
        goes_on: Whether the run is carried on from there; otherwise it is parked when the past ends before it.
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
    """Keeps a run. The methods return when that is done; what they raise ends the run and comes out of it.

    Into how many pieces printed text is cut depends on how fast a step was: only the text of each stream is the same
    when it is taken again.
    """

    def stepped(self, entered: PastStep, returned: Step, printed: Sequence[Printed]) -> None:
        """A step is over. None of its calls has been made yet."""

    def answered(self, call_id: int, completion: str) -> None:
        """A call has its encoded completion. The script has not seen it yet."""

    def retraced(self, number: int, returned: Step, printed: Sequence[Printed]) -> None:
        """Step `number` of the past, from 0, was taken again. A journal that holds another raises."""

    def ended(self, outcome: Outcome, printed: Sequence[Printed]) -> None:
        """The run has ended; `printed` came from a step that did not return."""


class NoJournal:
    """Keeps nothing."""

    def stepped(self, entered: PastStep, returned: Step, printed: Sequence[Printed]) -> None:
        """Does nothing."""

    def answered(self, call_id: int, completion: str) -> None:
        """Does nothing."""

    def retraced(self, number: int, returned: Step, printed: Sequence[Printed]) -> None:
        """Does nothing."""

    def ended(self, outcome: Outcome, printed: Sequence[Printed]) -> None:
        """Does nothing."""
