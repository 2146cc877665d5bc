"""What is said of a script that was not started: its mistakes, and where it names what. Nothing here decides anything.

Above: script_check.py, preparation.py. Below: nothing. The mistakes themselves are in the type checker's words
(codegen/checking) or in those of the guest's Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codegen.plain_text import counted, indented, one_line, that_fit

if TYPE_CHECKING:
    from collections.abc import Sequence

LISTED_CHARACTERS = 620
"""For the lines of the mistakes that are told: the first has room whatever its words are."""

_NAME_CHARACTERS = 200
_WRITTEN_CHARACTERS = 80

NO_FILES_FOR_CHECKER = "the type checker could not be given its files"


def not_started(mistakes: str) -> str:
    """Return that a script has mistakes, which are `mistakes_found`."""
    return f"The script was not started, nothing was executed. {mistakes}"


def mistakes_found(mistakes: Sequence[str], characters: int, *, are_all: bool) -> str:
    """Return the first mistakes, a line each, in about so many characters, and how many more there are."""
    many = counted(len(mistakes), "mistake")
    lines = [f"  {indented(one, characters - 2)}" for one in mistakes]
    shown = that_fit(lines, characters)
    left = len(mistakes) - len(shown)
    more = [f"  and {left} more: correct these first"] if left else []
    head = many if are_all else f"at least {many}"
    return "\n".join([f"The check found {head}, as line:column:", *shown, *more])


def not_within(limit: str) -> str:
    """Return that Python cannot read a script within a limit."""
    return f"the script cannot be read within the limit {limit}"


def place(function: str, line: int, written: str) -> str:
    """Return where a script names a tool, and how it is `written` there, if that is another name."""
    name, there = one_line(function, _NAME_CHARACTERS), one_line(written, _WRITTEN_CHARACTERS)
    spelt = "" if there == name else f", where it is written {there}"
    return f"{name} (line {line}{spelt})"
