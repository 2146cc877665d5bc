"""Makes text of servers inert for people, models and source: printable characters, bounded length.

Above: docstrings, comments and notes. What is removed: control characters, terminal sequences, invisible and
direction-changing characters (Unicode categories Cc, Cf, Cs, Co, Cn, and what else fonts show as nothing), which
hide text from the person who reads it.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

_TERMINAL_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
# Fillers, variation selectors and marks that show as nothing, but belong to other categories (Default_Ignorable).
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")
_ENDS_SENTENCE = re.compile(r"[.!?\u3002\uff01\uff1f][*_`'\")\]]*\Z")
_NEW_BLOCK = re.compile(r"\s*(?:[-*+]\s|[#>|<]|```|\d+[.)]\s|[A-Z]\w*:|\Z)")
_WRAPPED_CHARACTERS = 60
"""From this length on, a line that ends within a sentence was wrapped; a shorter one is a heading or a title."""
_MARK = "…"


def one_line(text: Any, limit: int) -> str:
    """Return `text` on one line of at most `limit` characters; anything but a string gives an empty one."""
    if not isinstance(text, str):
        return ""
    return _bounded(" ".join(_printable(text[: 4 * limit + 64]).split()), limit)


def indented(line: str, limit: int) -> str:
    """Return one line of a foreign text made inert, with all its spaces, which count in source and in values."""
    return _bounded(_printable(line[: 4 * limit + 64].expandtabs(4)), limit)


def paragraph(text: Any, limit: int) -> str:
    """Return `text` with its line structure, in at most `limit` characters, without runs of empty lines."""
    if not isinstance(text, str):
        return ""
    lines: list[str] = []
    for line in text[: 4 * limit + 64].splitlines():
        printable = _printable(line.expandtabs(2)).rstrip()
        if printable or (lines and lines[-1]):
            lines.append(printable)
    margin = min((len(line) - len(line.lstrip()) for line in lines[1:] if line), default=0)
    lines[1:] = [line[margin:] for line in lines[1:]]
    return _bounded("\n".join(lines).strip(), limit)


def sentences(text: str, most: int, limit: int) -> str:
    """Return the first sentences of a text, at most so many, on one line of at most `limit` characters."""
    return one_line(" ".join(_SENTENCE_END.split(one_line(text, 4 * limit))[:most]), limit)


def opening(text: str, limit: int) -> str:
    """Return the first line of a text, with the lines into which its last sentence was wrapped."""
    first, *others = text[: 4 * limit + 64].strip().splitlines() or [""]
    taken = [first.strip()]
    for line in others:
        if len(taken[-1]) < _WRAPPED_CHARACTERS or _ENDS_SENTENCE.search(taken[-1]) or _NEW_BLOCK.match(line):
            break
        taken.append(line.strip())
    return one_line(" ".join(taken), limit)


def counted(number: int, what: str) -> str:
    """Return `1 call`, `2 calls`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def few(names: Iterable[str], most: int) -> str:
    """Return `a, b and 3 more`: the first of some names, and how many are left out."""
    shown = list(names)
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more


def that_fit(names: Iterable[str], characters: int) -> list[str]:
    """Return as many of the names as fit into so many characters of a JSON list, but at least one."""
    shown: list[str] = []
    between = len('", "')
    room = characters + between
    for name in names:
        room -= len(name) + between
        if shown and room < 0:
            break
        shown.append(name)
    return shown


def literal(value: object) -> str:
    """Return a value as a Python literal in which every character shows."""
    return _INVISIBLE.sub(lambda found: ascii(found[0])[1:-1], repr(value))


def _printable(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    text = _INVISIBLE.sub("", _TERMINAL_SEQUENCE.sub("", text))
    return "".join(map(_printable_character, text))


def _printable_character(character: str) -> str:
    if character.isspace():
        return " "
    return "" if unicodedata.category(character)[0] == "C" else character


def _bounded(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return text[: limit - len(_MARK)].rstrip() + _MARK
