"""What a schema says beyond its type, as one line for a caller: description, bounds, pattern, format.

Above: the closed schema, which attaches a note to each parameter and field. All text in it is a server's.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from codegen.plain_text import one_line

_PATTERN_LENGTH = 200
# Formats whose name says what any pattern beside them could.
_TELLING_FORMATS = frozenset({"date", "date-time", "duration", "email", "ipv4", "ipv6", "time", "uri", "uuid"})
_LARGEST_EXACT = 2**53 - 1
# Limits of the number types of other languages.
_LIMITS_OF_TYPES = frozenset({2**31 - 1, -(2**31), 2**32 - 1})


def note_of(schema: Any, limit: int) -> str:
    """Return the description of a property with the constraints it does not mention itself."""
    if not isinstance(schema, dict):
        return ""
    description = one_line(schema.get("description"), limit)
    facts = [fact for fact in constraints_of(schema) if not _mentioned(fact, description)]
    if schema.get("deprecated") is True:
        facts.append("deprecated")
    joined = ", ".join(facts)
    if not description:
        return joined
    return f"{description} ({joined})" if joined else description


def constraints_of(schema: dict[str, Any]) -> list[str]:
    """Return the constraints of a schema in words, each at most once."""
    facts = [
        _range(schema, "minimum", "maximum", ""),
        _bound(schema, "exclusiveMinimum", ">"),
        _bound(schema, "exclusiveMaximum", "<"),
        _range(schema, "minLength", "maxLength", " chars"),
        _range(schema, "minItems", "maxItems", " items"),
        _range(schema, "minProperties", "maxProperties", " keys"),
        _bound(schema, "multipleOf", "multiple of") if schema.get("multipleOf") != 1 else "",
        "unique" if schema.get("uniqueItems") is True else "",
        one_line(schema.get("format"), 40),
        _pattern(schema),
    ]
    return list(dict.fromkeys(fact for fact in facts if fact))


def _range(schema: dict[str, Any], low_keyword: str, high_keyword: str, unit: str) -> str:
    low, high = _number(schema.get(low_keyword)), _number(schema.get(high_keyword))
    if unit and low == "0":
        low = None
    if low is not None and high is not None:
        return f"{low}{unit}" if low == high else f"{low}..{high}{unit}"
    if low is not None:
        return f">= {low}{unit}"
    return f"<= {high}{unit}" if high is not None else ""


def _bound(schema: dict[str, Any], keyword: str, relation: str) -> str:
    number = _number(schema.get(keyword))
    return f"{relation} {number}" if number is not None else ""


def _number(value: Any) -> str | None:
    """Return the number as text; limits of the number type itself are no constraint."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if abs(value) >= _LARGEST_EXACT or value in _LIMITS_OF_TYPES or not math.isfinite(value):
        return None
    return json.dumps(int(value) if value == int(value) else value)


def _pattern(schema: dict[str, Any]) -> str:
    """Return the pattern, unless the format says the same or there is too much of it to be read."""
    pattern = schema.get("pattern")
    is_readable = isinstance(pattern, str) and len(pattern) <= _PATTERN_LENGTH
    if not is_readable or one_line(schema.get("format"), 40) in _TELLING_FORMATS:
        return ""
    shown = one_line(pattern, _PATTERN_LENGTH)
    return f"/{shown}/" if shown else ""


def _mentioned(fact: str, description: str) -> bool:
    """Tell whether every number (or the whole fact, without numbers) stands in the description already."""
    if not description:
        return False
    numbers = re.findall(r"\d+(?:\.\d+)?", fact)
    if fact.startswith("/") or not numbers:
        return fact.strip("/").lower() in description.lower()
    return all(re.search(rf"(?<![\d.]){re.escape(number)}(?![\d])", description) for number in numbers)
