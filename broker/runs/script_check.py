"""What the type checker said about a script, as a result that stops it, a warning, or a list.

Above: preparation.py, execution.py, not_described.py, the surface and the command line. Below: codegen. The check helps
whoever wrote the script to mend it in one go, and bounds nothing: a script that passes it is not trusted any more for
that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import anyio
from anyio.lowlevel import RunVar

from broker.texts import check_texts
from codegen import CheckerError, Diagnostic, check
from codegen.checking.check import MAX_DIAGNOSTICS
from codegen.checking.script_text import lines_of
from codegen.checking.type_checker import MAX_CHECKERS
from codegen.plain_text import one_line
from sandbox import Raised

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from broker.tools.catalog import CatalogEntry
    from codegen import TypeChecker
    from sandbox import Stopped

CheckMode = Literal["error", "warn", "off"]
"""What mistakes do: stop the script before it starts, go to its stderr, or are not looked for."""

CHECK_MODES: tuple[CheckMode, ...] = ("error", "warn", "off")
SYNTAX = "invalid-syntax"

_MESSAGE_CHARACTERS = 300
_LINE = re.compile(r'File "[^"\n]*", line (\d+)')
_THREADS: RunVar[anyio.CapacityLimiter] = RunVar("threads that check scripts")


@dataclass(frozen=True, slots=True)
class CheckedScript:
    """What is wrong with a script that was not run.

    Attributes:
        diagnostics: The mistakes in the order of its lines, at most twenty.
        unchecked: Servers that the script names and that are down; what it does with them was not checked.
    """

    diagnostics: tuple[Diagnostic, ...]
    unchecked: tuple[str, ...] = ()


async def diagnostics_of(
    checker: TypeChecker,
    script: str,
    described: Sequence[CatalogEntry],
    listed: Mapping[str, Iterable[str]],
    unimported: Collection[str],
) -> tuple[Diagnostic, ...]:
    """Check a script against described tools, in a thread; other functions exist by name only.

    Namespaces that are `unimported` are there without an import.

    Raises:
        CheckerError: The type checker cannot be run, or not within its bounds.
    """

    def ask() -> tuple[Diagnostic, ...]:
        try:
            stubs = [entry.stub() for entry in described]
            return tuple(check(script, stubs, listed=listed, unimported=unimported, checker=checker))
        except OSError as error:
            raise CheckerError(check_texts.NO_FILES_FOR_CHECKER) from error

    # A cancelled run does not wait for the checker, which ends by itself and changes nothing.
    return await anyio.to_thread.run_sync(ask, abandon_on_cancel=True, limiter=_threads())


def stops(diagnostics: Sequence[Diagnostic]) -> bool:
    """Tell whether these stop a script. Mistakes of syntax alone do not: Python says those itself, and better."""
    return any(one.code != SYNTAX for one in diagnostics)


def not_started(diagnostics: Sequence[Diagnostic]) -> Raised:
    """Return the outcome of a script that was stopped by its mistakes."""
    message = check_texts.not_started(mistakes_listed(diagnostics))
    return Raised("ScriptCheckError", message, f"ScriptCheckError: {message}\n")


def warning(diagnostics: Sequence[Diagnostic]) -> str:
    """Return what a script that is run in spite of its mistakes has on stderr."""
    return f"{mistakes_listed(diagnostics)}\n"


def mistakes_listed(diagnostics: Sequence[Diagnostic], characters: int = check_texts.LISTED_CHARACTERS) -> str:
    """Return the first mistakes, a line each, in about so many characters, and how many more there are."""
    are_all = len(diagnostics) < MAX_DIAGNOSTICS
    return check_texts.mistakes_found([spelled(one) for one in diagnostics], characters, are_all=are_all)


def spelled(diagnostic: Diagnostic) -> str:
    """Return a mistake on one line, after its place."""
    hint = f" ({diagnostic.hint})" if diagnostic.hint else ""
    return f"{diagnostic.line}:{diagnostic.column}: {diagnostic.message}{hint}"


def unreadable(ended: Raised | Stopped, script: str) -> Diagnostic:
    """Return why Python cannot read a script, at the place that its own error shows."""
    if not isinstance(ended, Raised):
        return Diagnostic(1, 1, SYNTAX, check_texts.not_within(ended.limit), "shorten it")
    message = one_line(f"{ended.type}: {ended.message}", _MESSAGE_CHARACTERS)
    place = _LINE.search(ended.traceback)
    if place is None:
        return Diagnostic(1, 1, SYNTAX, message, "")
    line = int(place[1])
    column = _first_caret(ended.traceback[place.end() :]) + _margin(script, line)
    return Diagnostic(line, column, SYNTAX, message, "")


def _threads() -> anyio.CapacityLimiter:
    """Return the limiter of threads for checks, so that waiting for a checker never takes all threads of the loop."""
    try:
        return _THREADS.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(2 * MAX_CHECKERS)
        _THREADS.set(limiter)
        return limiter


def _first_caret(shown: str) -> int:
    """Return the column, from 1, below which the carets stand; the line above them is indented by four."""
    for line in shown.split("\n"):
        if line.strip().startswith("^"):
            return max(line.index("^") - 3, 1)
    return 1


def _margin(script: str, line: int) -> int:
    """Count the spaces before a line, which Python leaves out where it shows the line; it keeps tabs."""
    text = ["", *lines_of(script)][line : line + 1]
    return sum(len(one) - len(one.lstrip(" \f")) for one in text)
