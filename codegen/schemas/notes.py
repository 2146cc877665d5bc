"""What a schema says beyond its type, as one line for a caller: description, bounds, pattern, format.

Above: the closed schema, which attaches a note to each parameter and field. All text in it is a server's. What a
caller has to give is told in full, within a bound; of what it gets, the first sentences, and no bounds of texts.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

from codegen.plain_text import literal, one_line, sentences
from codegen.schemas.brevity import worth_saying
from codegen.schemas.keywords import branches_of, constant_of

_PATTERN_LENGTH = 200
# Formats whose name says what any pattern beside them could.
_TELLING_FORMATS = frozenset({"date", "date-time", "duration", "email", "ipv4", "ipv6", "time", "uri", "uuid"})
_FORMAT_OF_NUMBERS = re.compile(r"double|float\d*|u?int\d*")
_LINK = re.compile(r"\[([^\[\]]{1,80})\]\((?:https?:/)?/[^()\s]{1,300}\)")
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)(?<!vs\.)\s+(?=[A-Z`(])")
# Between words: letters on one side at most, or a change of case, as in `imageUrl` and `HTMLUrl`.
_EDGE = r"(?:(?<![A-Za-z])|(?![A-Za-z])|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]))"
_NUMBER = re.compile(r"(?<![A-Za-z\d])\d+(?:\.\d+)?")
_LARGEST_EXACT = 2**53 - 1
# Limits of the number types of other languages.
_LIMITS_OF_TYPES = frozenset({2**31 - 1, -(2**31), 2**32 - 1})


@dataclass(frozen=True, slots=True)
class Detail:
    """How much is told: the first sentence, and those after it that fit, in characters; and bounds or none."""

    first: int
    together: int
    has_bounds: bool = True


PARAMETER = Detail(300, 300)
GIVEN = Detail(200, 120)
GOT = Detail(120, 80, has_bounds=False)


def note_of(key: str, schema: Any, detail: Detail) -> str:
    """Return the description of a key with the constraints that neither it nor the key mentions."""
    if not isinstance(schema, dict):
        return ""
    schema = _with_own_bounds(schema)
    description = worth_saying(described(schema, detail), key)
    facts = constraints_of(schema) if detail.has_bounds else [_range(schema, "minimum", "maximum", "")]
    facts += _kind(schema)
    joined = ", ".join(dict.fromkeys(fact for fact in facts if fact and not _mentioned(fact, key, description)))
    note = f"{description} ({joined})" if description and joined else description or joined
    choices = _choices_told(schema, detail) if detail.has_bounds else ""
    return f"{note} ({choices})" if note and choices else note or choices


def described(schema: dict[str, Any], detail: Detail) -> str:
    """Return the description on one line, links as their text; what is left out of it leaves a mark."""
    whole = _LINK.sub(r"\1", one_line(schema.get("description"), 4 * detail.first))
    told, *others = _SENTENCE_END.split(whole)
    for sentence in others:
        if len(told) + len(sentence) >= detail.together:
            return one_line(f"{told} …", detail.first)
        told = f"{told} {sentence}"
    return one_line(_without_stop(told), detail.first)


def _choices_told(schema: dict[str, Any], detail: Detail) -> str:
    """Return what a schema says of single values, as generators from Rust enums write it: an alternative for each."""
    told = []
    for branch in branches_of(schema, "oneOf") or branches_of(schema, "anyOf"):
        value = constant_of(branch)
        about = (
            sentences(branch["description"], 1, detail.first)
            if isinstance(value, str) and "description" in branch
            else ""
        )
        if worth_saying(about, str(value)):
            told.append(f"{literal(value)}: {_without_stop(about)}")
    return one_line("; ".join(told), detail.together)


def _without_stop(text: str) -> str:
    return text if text.endswith("..") else text.removesuffix(".")


def constraints_of(schema: dict[str, Any]) -> list[str]:
    """Return the bounds of a schema in words."""
    return [
        _range(schema, "minimum", "maximum", ""),
        _bound(schema, "exclusiveMinimum", ">"),
        _bound(schema, "exclusiveMaximum", "<"),
        _range(schema, "minLength", "maxLength", " chars"),
        _range(schema, "minItems", "maxItems", " items"),
        _range(schema, "minProperties", "maxProperties", " keys"),
        _bound(schema, "multipleOf", "multiple of") if schema.get("multipleOf") != 1 else "",
        "unique" if schema.get("uniqueItems") is True else "",
        _pattern(schema),
    ]


def _with_own_bounds(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema of draft 4, which says beside a bound whether it is left out itself, in today's words."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if schema.get(exclusive) is True and bound in schema:
            schema = {**schema, bound: None, exclusive: schema[bound]}
    return schema


def _kind(schema: dict[str, Any]) -> list[str]:
    format_ = one_line(schema.get("format"), 40)
    return [
        "" if _FORMAT_OF_NUMBERS.fullmatch(format_) else format_,
        "deprecated" if schema.get("deprecated") is True else "",
    ]


def _range(schema: dict[str, Any], low_keyword: str, high_keyword: str, unit: str) -> str:
    low, high = _number(schema.get(low_keyword)), _number(schema.get(high_keyword))
    if unit and low == "0":
        low = None
    if low is not None and high is not None:
        return f"{low}{unit}" if low == high else f"{low}..{high}{unit}"
    if low is not None:
        return "non-empty" if unit and low == "1" else f">= {low}{unit}"
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


def _mentioned(fact: str, key: str, description: str) -> bool:
    """Tell whether the description has every number of a fact; of one without numbers, whether it or the key has it."""
    numbers = [] if fact.startswith("/") else _NUMBER.findall(fact)
    if numbers:
        return all(_has_number(description, number) for number in numbers)
    words = "ur[il]|link|href" if fact == "uri" else re.escape(fact.strip("/"))
    return re.search(f"{_EDGE}(?i:{words}){_EDGE}", f"{key} {description}") is not None


def _has_number(text: str, number: str) -> bool:
    return re.search(rf"(?<![A-Za-z\d.]){re.escape(number)}(?:\.0+)?(?!\.?\d)", text) is not None
