"""A question in words: for each tool how many calls, what they share, what varies, and what to be careful about.

Above: every answerer that shows a question. Below: questions.py, shown.py. Names and values were written by servers and
scripts: what is invisible in them is shown as an escape, and every text has a bound; tools and arguments are all there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from broker.authorization.alike import common_test, distinct
from broker.authorization.predicates import pointer_parts
from broker.authorization.shown import ESCAPE_CHARACTERS, shown_ends, shown_name, shown_text
from codegen.plain_text import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker.authorization.questions import CallGroup, Question

VALUE_CHARACTERS = 80
_MAX_VALUES = 3
_MAX_ODD_VALUES = 10
"""How many are shown that have nothing in common: what the last ones are cannot be guessed from the first."""
_FULL_CHARACTERS = 100_000


@dataclass(frozen=True, slots=True)
class Row:
    """One tool of a question, ready to be shown.

    Attributes:
        tool: Its name, in ASCII.
        calls: How many wait.
        same: `name=value` for what all calls share.
        varying: `name=first, second, … (N values)` for the rest.
        warnings: Sentences about flows, copied text and a changed definition.
    """

    tool: str
    calls: int
    same: tuple[str, ...]
    varying: tuple[str, ...]
    warnings: tuple[str, ...]


def rows(question: Question) -> tuple[Row, ...]:
    """Return the rows of a question, one for each tool. None is left out, because a yes to all is a yes to each."""
    return tuple(map(_row, question.groups))


def as_text(question: Question) -> str:
    """Return a question as plain text."""
    lines = ["A script wants to call tools:"]
    for number, row in enumerate(rows(question), 1):
        lines.append(f"{number}. {row.tool}: {counted(row.calls, 'call')}")
        lines += [f"   {text}" for text in (*row.same, *row.varying)]
        lines += [f"   ! {text}" for text in row.warnings]
    return "\n".join(lines)


def in_full(group: CallGroup) -> str:
    """Return the arguments of all calls of a tool, each on lines of its own."""
    lines: list[str] = []
    for number, call in enumerate(group.calls, 1):
        lines.append(f"call {number}:")
        lines += [f"| {line}" for line in json.dumps(call.arguments, indent=2, ensure_ascii=False).split("\n")]
    text = "\n".join(shown_text(line, ESCAPE_CHARACTERS * len(line)) for line in lines)
    if len(text) <= _FULL_CHARACTERS:
        return text
    return f"{text[:_FULL_CHARACTERS]}\n(not shown: {len(text) - _FULL_CHARACTERS:,} more characters)"


def _row(group: CallGroup) -> Row:
    return Row(
        shown_name(group.name),
        len(group.calls),
        tuple(f"{_place(place)}={_value(value)}" for place, value in group.same.items()),
        tuple(f"{_place(place)}={_values(values)}" for place, values in _sorted(group.varying)),
        _warnings(group),
    )


def _warnings(group: CallGroup) -> tuple[str, ...]:
    found = [f"{use}{f': {use.reason}' if use.reason else ''}" for use in group.flows]
    copies = {(copy.source, copy.argument): copy for notes in group.notes for copy in notes.copies}
    for copy in copies.values():
        sample = shown_text(copy.sample, VALUE_CHARACTERS)
        found.append(f"{shown_name(copy.argument)} holds text that {shown_name(copy.source)} returned: {sample}")
    change = group.notes[0].change if group.notes else ()
    if change:
        found.append("the definition of the tool has changed since it was first seen:")
        found += change
    return tuple(found)


def _sorted(varying: Mapping[str, Sequence[Any]]) -> list[tuple[str, Sequence[Any]]]:
    return sorted(varying.items(), key=lambda item: (-len(item[1]), item[0]))


def _values(values: Sequence[Any]) -> str:
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return f"{min(values)} … {max(values)} ({len(values)} values)"
    found = distinct(values)
    count = f" ({len(found)} values)"
    most = _MAX_VALUES if len(found) <= _MAX_VALUES or common_test(found) else _MAX_ODD_VALUES
    if len(found) > most:
        return f"{', '.join(map(_value, found[: most - 1]))}, … {_value(found[-1])}{count}"
    shown = list(map(_value, found))
    return f"{', '.join(shown)}{count if len(set(shown)) < len(shown) else ''}"


def _value(value: Any) -> str:
    return shown_ends(json.dumps(value, ensure_ascii=False), VALUE_CHARACTERS)


def _place(pointer: str) -> str:
    if not pointer:
        return "all arguments"
    parts = pointer_parts(pointer)
    return shown_name(parts[0] if len(parts) == 1 else pointer)
