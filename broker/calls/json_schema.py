"""JSON values checked against schemas: those of servers and scripts, and of the tools that are answered here.

Above: argument_faults.py for arguments, tool_results.py for results, extraction.py, the forms of servers, the surface
and mode `tools`. Below: plain_schemas.py, which settles what is plain in a fraction of the time, and
bounded_validator.py for all else.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from broker.calls.plain_schemas import PlainSchema

if TYPE_CHECKING:
    from broker.calls.bounded_validator import BoundedValidator


TOO_LARGE = "the value is too large or nested too deep to be checked"


def first_fault(value: Any, schema: Any, *, keep: bool = True, unchecked: str | None = None) -> str | None:
    """Return the most important fault of a JSON value, as `at path: what`, or None if none is found."""
    return next(iter(faults(value, schema, most=1, keep=keep, unchecked=unchecked)), None)


def faults(value: Any, schema: Any, *, most: int, keep: bool = True, unchecked: str | None = None) -> list[str]:
    """Return what is wrong with a JSON value, each as `at path: what`, and how much more there is.

    Args:
        value: The value.
        schema: Its schema.
        most: How many faults to return.
        keep: Whether to keep the compiled schema for the next value.
        unchecked: The fault to return if the check gives up without finding one; None if whoever receives the value
            checks it again.
    """
    if not isinstance(schema, dict):
        return []
    compiled = _compiled(schema) if keep else _Compiled(schema)
    if compiled.plain is not None and compiled.plain.fits(value):
        return []
    return compiled.validator.faults(value, most, unchecked)


class _Compiled:
    """One schema, ready to be asked; the validator is made when it is first needed."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.plain = PlainSchema.of(schema)
        # Kept, so that its id is not given to another.
        self._schema = schema

    @cached_property
    def validator(self) -> BoundedValidator:
        """Judges what is not plain, and says what is wrong."""
        # Most values are plain, and loading jsonschema takes a while.
        from broker.calls.bounded_validator import BoundedValidator  # noqa: PLC0415

        return BoundedValidator(self._schema)


_MAX_KEPT = 4_096
_kept: dict[int, _Compiled] = {}
"""The schemas used last, by identity: a schema is never changed once it was received."""


def _compiled(schema: dict[str, Any]) -> _Compiled:
    found = _kept.get(id(schema))
    if found is None:
        if len(_kept) >= _MAX_KEPT:
            _kept.pop(next(iter(_kept)))
        found = _kept[id(schema)] = _Compiled(schema)
    return found
