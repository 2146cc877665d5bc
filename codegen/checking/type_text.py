"""Types as the checker prints them, told apart by kind.

Above: judge.py, which asks whether a mismatch is certain. A type that is not plainly one of the JSON
kinds is unknown, and nothing is certain about it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCALARS = {"str", "int", "float", "bool", "None"}
_LISTS = {"list", "tuple", "set", "frozenset", "Sequence", "deque"}
_QUOTES = "\"'"


@dataclass(frozen=True, slots=True)
class Kinds:
    """The kinds of values of a type; `unknown` if there may be others."""

    names: frozenset[str] = frozenset()
    literals: frozenset[tuple[str, Any]] = frozenset()
    only_literals: bool = True
    items: str = ""
    unknown: bool = False
    several: bool = False


@dataclass(slots=True)
class _Collected:
    names: set[str] = field(default_factory=set)
    literals: set[tuple[str, Any]] = field(default_factory=set)
    only_literals: bool = True
    items: list[str] = field(default_factory=list)
    unknown: bool = False


def kinds_of(text: str, objects: frozenset[str]) -> Kinds:
    """Return the kinds of a printed type; `objects` are the names of typed dictionaries."""
    found = _Collected()
    members = list(split_outside_brackets(text, "|"))
    for member in members:
        _collect(member.strip(), objects, found)
    return Kinds(
        names=frozenset(found.names),
        literals=frozenset(found.literals),
        only_literals=found.only_literals,
        items=" | ".join(found.items),
        unknown=found.unknown,
        several=len(members) > 1,
    )


def certainly_differ(found: str, expected: str, objects: frozenset[str]) -> bool:
    """Tell whether no value of the type `found` is one of the type `expected`, as JSON counts."""
    given, wanted = kinds_of(found, objects), kinds_of(expected, objects)
    if given.unknown or wanted.unknown:
        return False
    if given.several and not given.only_literals:
        return False
    if not given.names & _accepted(wanted):
        return True
    if given.only_literals and wanted.only_literals:
        return not given.literals & wanted.literals
    if given.names == wanted.names == {"list"}:
        return certainly_differ(given.items, wanted.items, objects)
    return False


def split_outside_brackets(text: str, separator: str) -> Iterator[str]:
    """Yield the parts of `text` between separators that stand in no bracket and no quotes."""
    depth, start, quote, escaped = 0, 0, "", False
    for at, character in enumerate(text):
        if quote:
            closes = character == quote and not escaped
            escaped = character == "\\" and not escaped
            quote = "" if closes else quote
        elif character in _QUOTES:
            quote = character
        elif character in "[(":
            depth += 1
        elif character in "])":
            depth -= 1
        elif character == separator and depth == 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def _accepted(wanted: Kinds) -> set[str]:
    accepted = set(wanted.names)
    if "float" in accepted or "int" in accepted:
        accepted |= {"int", "float", "bool"}
    return accepted


def _collect(member: str, objects: frozenset[str], found: _Collected) -> None:
    head, _, inside = member.partition("[")
    inside = inside.removesuffix("]")
    if head == "Literal" and inside:
        _collect_literals(inside, found)
        return
    if member == "None":
        found.names.add("None")
        found.literals.add(("None", None))
        return
    found.only_literals = False
    if member in _SCALARS or member == "LiteralString":
        found.names.add("str" if member == "LiteralString" else member)
    elif member in objects or head == "dict":
        found.names.add("dict")
    elif head in _LISTS and inside:
        found.names.add("list")
        found.items += [part.strip() for part in split_outside_brackets(inside, ",") if part.strip() != "..."]
    elif head == "CoroutineType":
        found.names.add("coroutine")
    else:
        found.unknown = True


def _collect_literals(inside: str, found: _Collected) -> None:
    for part in split_outside_brackets(inside, ","):
        try:
            value = ast.literal_eval(part.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            found.unknown = True
            continue
        kind = type(value).__name__.replace("NoneType", "None")
        if kind not in _SCALARS:
            found.unknown = True  # bytes are sent as text
        found.names.add(kind)
        found.literals.add((kind, value))
