"""How much of one tool's schemas is looked at: one that was made to cost time costs little.

Above: closed_schema.py, whole_schema.py, choices.py. What goes beyond becomes `Any`, with a degradation.
Real definitions stay well below: of 6,586 the largest has the figure that stands beside each bound.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_DEPTH = 64  # 13
MAX_SUBSCHEMAS = 2_500  # 1,047
MAX_BRANCHES = 200  # 31
MAX_LITERALS = 2_000  # 233
MAX_LITERAL_CHARACTERS = 30_000  # 2,398


@dataclass
class Budget:
    """How much of a tool's schemas may still be looked at."""

    fields: int
    most_fields: int
    subschemas: int = MAX_SUBSCHEMAS
    literals: int = MAX_LITERALS
    literal_characters: int = MAX_LITERAL_CHARACTERS
