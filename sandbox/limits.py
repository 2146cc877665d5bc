"""Every number that bounds what one run may use."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

MIB = 1024 * 1024
BYTES_A_CHARACTER = 4
"""The most bytes that a character takes in UTF-8."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Bounds of one run; exceeding one ends the run as `Stopped` with the field's name, unless noted.

    Attributes:
        wall_seconds: From the start of the run to its end, waiting for answers included.
        cpu_seconds: Processor time inside the guest.
        memory_bytes: Linear memory of the guest. Growth beyond it is a `MemoryError` in the script.
        output_bytes: Printed text, standard output and error together, as UTF-8.
        value_bytes: The script's value, as JSON.
        calls: Calls made in all.
        calls_in_flight: Calls answered at the same time; further ones wait their turn.
        argument_bytes: Arguments of one call, as JSON.
        completion_bytes: The answer to one call, as JSON; a larger one fails that call in the script.
        depth: Nesting of arguments, answers and the value; at most `MAX_DEPTH`.
        steps: How often the guest may return to the host.

    Raises:
        ValueError: A field is not a positive number, or out of its bounds; the text names it.
    """

    wall_seconds: float = 30.0
    cpu_seconds: float = 20.0
    memory_bytes: int = 256 * MIB
    output_bytes: int = 1 * MIB
    value_bytes: int = 4 * MIB
    calls: int = 1_000
    calls_in_flight: int = 32
    argument_bytes: int = 1 * MIB
    completion_bytes: int = 8 * MIB
    depth: int = 64
    steps: int = 100_000

    def __post_init__(self) -> None:
        """Check every field."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            whole = field.type == "int"
            if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
                wanted = "an integer" if whole else "a number"
                raise ValueError(f"{field.name} must be {wanted}, not {value!r}")  # noqa: TRY004  # one type for bad limits
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{field.name} must be positive and finite, not {value!r}")
        if self.memory_bytes < LEAST_MEMORY_BYTES:
            raise ValueError(
                f"memory_bytes must be at least {LEAST_MEMORY_BYTES} (the interpreter itself), not {self.memory_bytes}"
            )
        if self.depth > MAX_DEPTH:
            raise ValueError(f"depth must be at most {MAX_DEPTH} (the host's own recursion), not {self.depth}")

    @property
    def step_bytes(self) -> int:
        """The longest message a guest may return: a value, one call, or a batch of calls."""
        return max(self.value_bytes, self.argument_bytes, BATCH_BYTES) + MIB


def check_limits(given: object) -> None:
    """Refuse a value that is not `Limits`, before anything is started.

    Raises:
        TypeError: It is neither limits nor None.
    """
    if given is not None and not isinstance(given, Limits):
        kind = type(given).__name__
        raise TypeError(f"limits are a sandbox.Limits, as Limits(wall_seconds=5), not a {kind}")


BATCH_BYTES = 4 * MIB
"""The most that the calls which a guest hands over at once may take; `guest/protocol.py` has the same number."""

LEAST_MEMORY_BYTES = 64 * MIB
"""The image's own heap, with room for a small script."""

MAX_DEPTH = 200
"""The deepest nesting that the host can follow by recursion, however deep it is called from."""
