"""`enum` and `const` in the closed subset: the values themselves as far as there is room, else their kinds.

Above: the closed schema. Below: the closed document.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codegen.schemas.closed_types import ClosedDocument, ClosedType, any_of, is_literal, kind_of

if TYPE_CHECKING:
    from codegen.schemas.whole_schema import Budget

MAX_CHOICES = 200


def closed_choice(schema: dict[str, Any], document: ClosedDocument, budget: Budget) -> tuple[ClosedType, str]:
    """Return the type of a schema that lists its values, and why it says less than that, if it does."""
    values = [schema["const"]] if "const" in schema else schema["enum"]
    if schema.get("nullable") is True:
        values = [*values, None]
    if values == [None]:
        return {"type": "null"}, ""
    length = sum(len(value) for value in values if isinstance(value, str))
    if len(values) > min(MAX_CHOICES, budget.literals) or length > budget.literal_characters:
        return any_of(kind_of(value) for value in values), f"{len(values)} choices, shown as their kind"
    budget.literals -= len(values)
    budget.literal_characters -= length
    tokens = dict.fromkeys(document.literal_token(value) for value in values if is_literal(value))
    kinds = [kind_of(value) for value in values if not is_literal(value)]
    return any_of([*([{"enum": list(tokens)}] if tokens else []), *kinds]), ""
