"""`enum` and `const` in the closed subset: the values themselves as far as there is room, else their kinds.

Above: the closed schema. Below: the closed document.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codegen.schemas.closed_types import ClosedDocument, ClosedType, any_of, is_text

if TYPE_CHECKING:
    from codegen.schemas.budget import Budget

MAX_CHOICES = 200
"""Values at one place; the longest list in 6,586 real definitions has 126."""

_LONGEST_LITERAL = 200

_KINDS: dict[type, ClosedType] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    type(None): {"type": "null"},
    list: {"type": "array", "items": {}},
    dict: {"type": "object", "additionalProperties": {}},
}


def closed_choice(schema: dict[str, Any], document: ClosedDocument, budget: Budget) -> tuple[ClosedType, str]:
    """Return the type of a schema that lists its values, and why it says less than that, if it does."""
    values = [schema["const"]] if "const" in schema else schema["enum"]
    if values == [None]:
        return {"type": "null"}, ""
    length = sum(len(value) for value in values if isinstance(value, str))
    if len(values) > min(MAX_CHOICES, budget.literals) or length > budget.literal_characters:
        return any_of(_kind_of(value) for value in values), f"{len(values)} choices, shown as their kind"
    budget.literals -= len(values)
    budget.literal_characters -= length
    tokens = dict.fromkeys(document.literal_token(value) for value in values if _is_literal(value))
    kinds = [_kind_of(value) for value in values if not _is_literal(value)]
    return any_of([*([{"enum": list(tokens)}] if tokens else []), *kinds]), ""


def _is_literal(value: Any) -> bool:
    """Tell whether a value may stand in `Literal`; floats, arrays, objects and broken text may not."""
    if isinstance(value, str):
        return len(value) <= _LONGEST_LITERAL and is_text(value)
    if isinstance(value, bool) or value is None:
        return True
    return isinstance(value, int) and abs(value) < 2**63


def _kind_of(value: Any) -> ClosedType:
    """Return the type of a JSON value as far as its kind goes."""
    return dict(_KINDS.get(type(value), {}))
