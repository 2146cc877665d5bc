"""The section of a description that lists the arguments, taken apart: its entries belong beside the parameters.

Above: generate.py. Below: nothing. Python servers send a function's docstring as its description, with a section
`Args:` of lines `name (type): text`; beside the parameters a note needs neither name nor type nor heading. A section
that is not plainly such a list of these parameters stays where it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

_HEADING = re.compile(
    r"[ \t]*(?:#+ |\*\*)?(?:path |query |input |tool )?(?:args|arguments|parameters|params|inputs?) ?:?(?:\*\*)?:? *",
    re.IGNORECASE,
)
_ENTRY = re.compile(
    r"([ \t]*)(?:[-*•] +)?[*`]{0,3}([\w.$-]{1,64})[*`]{0,3} ?(?:\(([^()]{0,80})\))?[*`]{0,3} ?:[*]{0,2} (.*)"
)
_TYPE_WORDS = frozenset(
    """
    any array bool boolean dict dictionary float int integer json list none null number object optional required str
    string
    """.split()  # noqa: SIM905  # reads better than twenty quoted words
)
# What frameworks add by themselves: described, but no parameter.
_NOT_OF_CALLERS = frozenset({"context", "ctx", "self"})


@dataclass(slots=True)
class _Entry:
    name: str
    indentation: int
    text: list[str]


def without_arguments(
    text: str, keys: Collection[str], typed: Collection[str], *, limit: int
) -> tuple[str, dict[str, str]]:
    """Return a description without its section of arguments, and the text of each key in that.

    Nothing is taken out if the section names something else or a key twice, or has more than `limit` characters for
    one key. Of `typed` keys the signature tells the type.
    """
    lines = text.split("\n")
    for start, line in enumerate(lines):
        if not _HEADING.fullmatch(line):
            continue
        entries, end = _entries(lines, start + 1, typed)
        notes = {entry.name: " ".join(entry.text) for entry in entries if entry.name in keys}
        strangers = {entry.name for entry in entries} - notes.keys() - _NOT_OF_CALLERS
        is_a_list = len({entry.name for entry in entries}) == len(entries) > 0
        if is_a_list and not strangers and all(len(note) <= limit for note in notes.values()):
            before, after = "\n".join(lines[:start]).rstrip(), "\n".join(lines[end:]).strip("\n")
            return "\n\n".join(part for part in (before, after) if part), notes
    return text, {}


def _entries(lines: list[str], start: int, typed: Collection[str]) -> tuple[list[_Entry], int]:
    """Return the entries that begin at a line, and the line after them."""
    entries: list[_Entry] = []
    end = start
    for at, line in enumerate(lines[start:], start):
        if not line.strip():
            continue
        found = _ENTRY.fullmatch(line)
        indentation = len(line) - len(line.lstrip())
        if found is not None and (not entries or indentation == entries[0].indentation):
            says_type = found[2] not in typed or not _only_names_types(found[3] or "")
            type_ = f"({found[3]}) " if found[3] and says_type else ""
            entries.append(_Entry(found[2], indentation, [f"{type_}{found[4]}".strip()]))
        elif entries and indentation > entries[0].indentation:
            entries[-1].text.append(line.strip())
        else:
            break
        end = at + 1
    return entries, end


def _only_names_types(text: str) -> bool:
    return _TYPE_WORDS.issuperset(re.findall(r"\w+", text.lower()))
