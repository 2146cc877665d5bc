"""Two findings of one mistake, of which one is told: a misspelt argument is one too many and one that is missing.

Above: check.py. Below: nothing but the findings.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codegen.checking.missing_names import Verdict
    from codegen.checking.type_checker import Finding

    Judged = tuple[Finding, Verdict]

_MISSING = re.compile(r"required parameters? (.+?) of ")
_GIVEN = re.compile(r"expected 0, got (\d+)")
_MEANT = re.compile(r"did you mean `(\w+)`")


def said_once(judged: Sequence[Judged]) -> list[Judged]:
    """Return the findings without those of missing arguments that another one of the same call accounts for."""
    others = [one for one in judged if one[0].rule in {"unknown-argument", "too-many-positional-arguments"}]
    return [one for one in judged if one[0].rule != "missing-argument" or not _accounted_for(one[0], others)]


def _accounted_for(missing: Finding, others: Sequence[Judged]) -> bool:
    named = _MISSING.search(missing.message)
    names = set(re.findall(r"`(\w+)`", named[1])) if named is not None else set()
    found: set[str] = set()
    for other, verdict in others:
        begin, end = (other.line, other.column), (other.end_line, other.end_column)
        if not (missing.line, missing.column) <= begin <= end <= (missing.end_line, missing.end_column):
            continue
        given, meant = _GIVEN.search(other.message), _MEANT.search(verdict.hint)
        if given is not None and int(given[1]) >= len(names):
            return True
        if meant is not None:
            found.add(meant[1])
    return bool(names) and names <= found
