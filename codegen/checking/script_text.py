"""What the text of a script tells, without parsing it: the host never parses scripts.

Above: place.py, and check.py. These are readings of text by pattern; each errs towards letting a script pass. A script
is hostile and these patterns hold the interpreter while they run, so each takes time in proportion to the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

from codegen.normal_form import normalised

_LINE_END = re.compile(r"\r\n|\r|\n")
_CLAUSE = re.compile(r"(?:except|else|finally)\b")


def lines_of(script: str) -> list[str]:
    """Return the lines of a script as Python counts them: a form feed and U+2028 end none."""
    return _LINE_END.split(script)


class ScriptText:
    """The text of a script, with what is read of the whole once for all places in it."""

    def __init__(self, text: str) -> None:
        """Take the text in lines."""
        self.text = text
        self.lines = lines_of(text)
        self._starts = [0, *(end.end() for end in _LINE_END.finditer(text)), len(text)]

    def offset(self, line: int, column: int) -> int:
        """Return where a line and column are in the text; both count from 1."""
        return self._starts[min(line, len(self._starts)) - 1] + column - 1

    @cached_property
    def names(self) -> frozenset[str]:
        """What may be a name, in strings and comments too."""
        return frozenset(re.findall(r"[^\W\d]\w*", self.text))

    @cached_property
    def functions(self) -> frozenset[str]:
        """The names of functions that are defined here."""
        return frozenset(re.findall(r"\bdef\s+(\w+)", self.text))

    @cached_property
    def functions_around(self) -> dict[int, int]:
        """The number of the line that begins the nearest function around a line, as its indentation tells."""
        found: dict[int, int] = {}
        around: list[tuple[int, int]] = []
        for number, line in enumerate(self.lines, 1):
            if not line.strip():
                continue
            while around and around[-1][0] >= _indentation(line):
                around.pop()
            outer = around[-1][1] if around else 0
            if outer:
                found[number] = outer
            is_function = re.match(r"\s*(async\s+)?def\b", line) is not None
            around.append((_indentation(line), number if is_function else outer))
        return found

    def caught_at(self, line: int) -> frozenset[str]:
        """Return the errors named by the `except` clauses around a line, found by indentation."""
        caught: set[str] = set()
        around = self._tries.get(line)
        while around is not None:
            caught |= around.caught
            around = around.outer
        return frozenset(caught)

    @cached_property
    def _tries(self) -> dict[int, _Try]:
        """The nearest `try` in whose body a line stands, by the line's number."""
        found: dict[int, _Try] = {}
        still_open: list[_Try] = []
        for number, line in enumerate(self.lines, 1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            indentation = _indentation(line)
            while still_open and not still_open[-1].goes_on(indentation, text):
                still_open.pop()
            last = still_open[-1] if still_open else None
            if last is not None and last.indentation == indentation:
                last.add_clause(text)
            around = last if last is None or last.is_body else last.outer
            if around is not None:
                found[number] = around
                if "await" in text:
                    around.add_await()
            if text.startswith("try:"):
                still_open.append(_Try(indentation, around))
        return found


@dataclass(slots=True)
class _Try:
    """A `try` with the lines that belong to it so far.

    Attributes:
        indentation: Of its own line and of its clauses.
        outer: The nearest `try` in whose body it stands.
        is_body: Whether none of its clauses has begun.
        awaits: Whether its body awaits something.
        caught: What its clauses name. Those that catch anything count where nothing is awaited: whoever reads a result
            so has another way to read it, and whoever makes calls so wants to be told what is wrong.
    """

    indentation: int
    outer: _Try | None
    is_body: bool = True
    awaits: bool = False
    caught: set[str] = field(default_factory=set)

    def goes_on(self, indentation: int, text: str) -> bool:
        """Tell whether a line belongs to it."""
        return indentation > self.indentation or (indentation == self.indentation and _CLAUSE.match(text) is not None)

    def add_clause(self, text: str) -> None:
        """Take the first line of a clause."""
        self.is_body = False
        clause, *named = re.findall(r"\w+", text)
        if clause == "except":
            self.caught.update(named or ["BaseException"])
            self.caught -= {"Exception", "BaseException"} if self.awaits else set()

    def add_await(self) -> None:
        """Note that its body awaits, and with it the bodies around it."""
        around: _Try | None = self
        while around is not None and not around.awaits:
            around.awaits = True
            around = around.outer


def words_of(script: str) -> frozenset[str]:
    """Return every word of a script, in strings and comments too, in the form in which Python compares names."""
    return frozenset(re.findall(r"\w+", normalised("NFKC", script)))


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())
