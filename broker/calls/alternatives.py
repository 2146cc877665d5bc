"""What is wrong with a value by the alternative that it was meant for, where a schema has several.

Above: bounded_validator.py. Below: faults of jsonschema, which name the alternatives only by their numbers.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from jsonschema import ValidationError

from codegen.plain_text import literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_IN_ONE_ALTERNATIVE = {"anyOf", "oneOf"}
_LISTED = 20
"""So many types or constants are named in a message."""


def meant(fault: ValidationError) -> list[ValidationError]:
    """Return the faults by the alternative that was meant, or the fault itself if that is not plain.

    A value is not meant for null, nor for an alternative of another type or with another constant under a key. What all
    alternatives say that are left counts as well, and so do their types or constants together.
    """
    alternatives = fault.validator_value if fault.validator in _IN_ONE_ALTERNATIVE else None
    if not isinstance(alternatives, list) or not fault.context:
        return [fault]
    by_alternative: defaultdict[int, list[ValidationError]] = defaultdict(list)
    for inner in fault.context:
        by_alternative[int(inner.relative_schema_path[0])].append(inner)
    possible = [faults for index, faults in by_alternative.items() if alternatives[index] != {"type": "null"}]
    left = [faults for faults in possible if not any(map(_is_of_another_kind, faults))]
    for among in (left, possible):
        if len(among) == 1:
            return [further for inner in among[0] for further in meant(inner)]
    return _shared(left) or _kinds_together(fault, possible) or [fault]


def _is_of_another_kind(fault: ValidationError) -> bool:
    depth = len(fault.relative_path)
    return (fault.validator == "type" and depth == 0) or (fault.validator in {"const", "enum"} and depth <= 1)


def _shared(among: Sequence[Iterable[ValidationError]]) -> list[ValidationError]:
    """Return the faults that are the same by every alternative."""
    if not among:
        return []
    first, *others = ({(*map(str, one.relative_path), one.message): one for one in faults} for faults in among)
    return [one for key, one in first.items() if all(key in other for other in others)]


def _kinds_together(fault: ValidationError, possible: Sequence[Sequence[ValidationError]]) -> list[ValidationError]:
    """Return one fault for types, or for constants of one key, that are others in every alternative."""
    firsts = [next(filter(_is_of_another_kind, faults), None) for faults in possible]
    kinds = [one for one in firsts if one is not None]
    places = {(tuple(one.relative_path), one.validator) for one in kinds}
    if not kinds or len(kinds) < len(firsts) or len(places) > 1:
        return []
    path = [*fault.absolute_path, *kinds[0].relative_path]
    wanted = [value for one in kinds for value in _as_list(one.validator_value)][:_LISTED]
    names = dict.fromkeys(map(literal, wanted))
    if kinds[0].validator == "type":
        subject = kinds[0].message.rpartition(" is not of type ")[0]
        return [ValidationError(f"{subject} is not of type {', '.join(names)}", path=path, instance=kinds[0].instance)]
    return [ValidationError(f"{' or '.join(names)} was expected", path=path)]


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
