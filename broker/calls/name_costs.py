"""The cost of following the names in a schema: `$id`, `id` and references by name.

Above: bounded_validator.py, which counts them, and check_work.py, which takes so many steps. Below: nothing. The
library joins each identifier with all of those around it, and goes through the whole document for each reference by a
name. A schema is a server's: one identifier of 80,000 characters around 4,000 short ones would take it half a minute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_PARTS = 2
"""So many parts of a schema, gone through, cost a step."""
_MAX_PARTS = 100_000
"""Parts that are counted; names in a larger schema cost as many steps each, which is more than there are."""
_JOINED_CHARACTERS = 200
"""So many characters of identifiers that are joined cost a step."""


@dataclass(frozen=True, slots=True)
class NameCosts:
    """The steps that the names in one schema cost.

    Attributes:
        joining: To join an identifier with those around it.
        lookup: To look for a name in the whole document.
    """

    joining: int
    lookup: int

    @classmethod
    def of(cls, schema: Any) -> NameCosts:
        """Count what is in a schema."""
        stack, parts, identifiers, characters = [schema], 0, 0, 0
        while stack and parts < _MAX_PARTS:
            part = stack.pop()
            parts += 1
            if isinstance(part, dict):
                for key in ("$id", "id"):
                    if isinstance(part.get(key), str):
                        identifiers += 1
                        characters += len(part[key])
                stack += part.values()
            elif isinstance(part, list):
                stack += part
        if stack:
            return cls(_MAX_PARTS, _MAX_PARTS)
        joining = characters // _JOINED_CHARACTERS
        return cls(joining, parts // _PARTS + identifiers * joining)
