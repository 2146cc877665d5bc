"""Finds the name that was probably meant by another one, in bounded time among any number of names.

Above: missing_names.py, and the broker's near_names.py. Below: difflib, which may take the cube of a name's length: it
compares with the thirty names that share most pairs of characters, found among the thousand whose lengths are nearest.
"""

from __future__ import annotations

import difflib
import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

COMPARED = 30
MEASURED = 1_000
NAME_CHARACTERS = 64
"""Characters of a name that count: as many as a tool's identifier has."""

_CUTOFF = 0.6


def near_name(name: str, names: Iterable[str]) -> str | None:
    """Return the name most like `name`, or None where none is like it."""
    wanted = name[:NAME_CHARACTERS]
    known = {one[:NAME_CHARACTERS]: one for one in names}
    measured = heapq.nsmallest(MEASURED, known, key=lambda one: abs(len(one) - len(wanted)))
    likely = likeliest(wanted, {one: pairs_of(one) for one in measured})
    near = difflib.get_close_matches(wanted, likely, n=1, cutoff=_CUTOFF)
    return known[near[0]] if near else None


def likeliest(name: str, pairs: Mapping[str, frozenset[str]]) -> list[str]:
    """Return those of the names that have most pairs of characters in common with `name`, best first."""
    wanted = pairs_of(name)
    return heapq.nlargest(COMPARED, pairs, key=lambda one: _likeness(wanted, pairs[one]))


def pairs_of(name: str) -> frozenset[str]:
    """Return the pairs of characters next to each other; how a name begins and ends counts as well."""
    edged = f" {name} "
    return frozenset(edged[at : at + 2] for at in range(len(edged) - 1))


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other))
