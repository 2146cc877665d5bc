"""Bounds the work of checking one value: steps, levels, and the cost of names in the schema.

Above: bounded_validator.py and unevaluated.py, which take steps for what they do. Below: name_costs.py. A check that
has no steps left gives up with what it has found so far.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker.calls.name_costs import NameCosts

STEPS = 50_000
ITEMS = 8
"""So many items or members of what is looked through cost a step."""

_POINTER_PARTS = 2
"""So many parts of a pointer that is followed cost a step."""
_POINTER_CHARACTERS = 400
"""So many characters of it do."""

_MAX_LEVELS = 120
"""Keywords within keywords. Each takes six calls at most of Python's stack; where that ends, a library panics."""

_steps_left: ContextVar[int] = ContextVar("_steps_left", default=STEPS)
_name_costs: ContextVar[NameCosts] = ContextVar("_name_costs")
_level: ContextVar[int] = ContextVar("_level", default=0)


class UnfinishedError(Exception):
    """A bound was reached."""


class Deeper:
    """A block one level deeper. A class, because a generator would need one more stack frame."""

    def __enter__(self) -> None:
        """Go down.

        Raises:
            UnfinishedError: It is too deep.
        """
        self._level = _level.get()
        if self._level >= _MAX_LEVELS:
            raise UnfinishedError
        _level.set(self._level + 1)

    def __exit__(self, *_: object) -> None:
        """Come up again."""
        _level.set(self._level)


def begin(name_costs: NameCosts) -> None:
    """Begin a check against a schema whose names cost so much."""
    _steps_left.set(STEPS)
    _name_costs.set(name_costs)
    _level.set(0)


def take(count: int) -> None:
    """Take steps for work that is going on.

    Raises:
        UnfinishedError: There are none left.
    """
    left = _steps_left.get()
    if left <= 0:
        raise UnfinishedError
    _steps_left.set(left - count)


def take_at_once(count: int) -> None:
    """Take the steps for work that cannot be interrupted, before it begins.

    Raises:
        UnfinishedError: There are too few left.
    """
    if count > _steps_left.get():
        raise UnfinishedError
    if count:
        take(count)


def take_look_through(*parts: Any) -> None:
    """Take the steps for one pass over the items or members of a value.

    Raises:
        UnfinishedError: There are too few left.
    """
    take_at_once(sum(len(part) for part in parts if isinstance(part, list | dict)) // ITEMS)


def take_lookup(reference: Any) -> None:
    """Take the steps for a reference; for a name, unlike a pointer, the library searches the whole document.

    Raises:
        UnfinishedError: There are too few left.
    """
    if not isinstance(reference, str):
        return
    if reference == "#" or reference.startswith("#/"):
        take_at_once(reference.count("/") // _POINTER_PARTS + len(reference) // _POINTER_CHARACTERS)
    else:
        take_at_once(_name_costs.get().lookup)


def take_joining() -> None:
    """Take the steps for an identifier, which the library joins with those around it.

    Raises:
        UnfinishedError: There are too few left.
    """
    take_at_once(_name_costs.get().joining)
