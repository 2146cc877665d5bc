"""What the commands write, and to which stream.

Script output and what was asked for (a listing, stubs, the envelope) go to stdout; tables, notes, questions
and errors go to stderr, so that piping a command gives its result alone. Rich honours NO_COLOR and drops
styles where stderr is no terminal. Every text of a server passes `one_line` or `paragraph` on its way here.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from broker.named_file import names_a_folder

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

    from rich.console import JustifyMethod, RenderableType


_FOLDED_WIDTH = 20
_UNKNOWN_WIDTH = 80
_INDENT = 2
_GAP = 2


class Problem(Exception):  # noqa: N818  # what the user has to mend, not a fault
    """Ends a command with exit code 2.

    Attributes:
        what: What is wrong, naming the thing.
        what_to_do: The next step, as a sentence; may be empty where `what` says it.
    """

    def __init__(self, what: str, what_to_do: str = "") -> None:
        """Keep both halves apart: they are printed on lines of their own."""
        super().__init__(what)
        self.what = what
        self.what_to_do = what_to_do


def can_ask() -> bool:
    """Tell whether a person sits at both ends: a question needs stdin and stderr to be terminals."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def notes() -> Console:
    """Return the console for stderr. A new one each time: tests and pipes exchange `sys.stderr`."""
    return _console(stderr=True)


def results() -> Console:
    """Return the console for what was asked for, on stdout."""
    return _console(stderr=False)


def note(renderable: RenderableType) -> None:
    """Write to stderr; text is taken without markup and made inert, as it may name files of others."""
    if isinstance(renderable, str):
        notes().print(Text(inert(renderable)), soft_wrap=True)
    else:
        notes().print(renderable)


def report_problem(what: str, what_to_do: str = "") -> None:
    """Write an error to stderr, the remedy on a line of its own; made inert, as it may name files of others."""
    console = notes()
    console.print(Text.assemble(("error: ", "bold red"), inert(what)), soft_wrap=True)
    if what_to_do:
        console.print(Text(f"       {inert(what_to_do)}"), soft_wrap=True)


def inert(text: str) -> str:
    """Return a text with its lines and without what a terminal would act on, or not show."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    from codegen.plain_text import indented  # noqa: PLC0415  # --help loads nothing of codegen

    return "\n".join(indented(line, len(line) + 1) for line in text.split("\n"))


def write_result(text: str) -> None:
    """Write what was asked for to stdout, ending with a newline."""
    write_to(sys.stdout, text if text.endswith("\n") else f"{text}\n")


def write_file(name: str, text: str, *, mode: int = 0o666) -> None:
    """Write a file that was asked for; one that was not there gets this mode, less the umask.

    Raises:
        Problem: It cannot be written.
    """
    path = Path(name)
    if names_a_folder(name):
        raise Problem(f"{name}: is the name of a folder; name a file in it")
    try:
        with open(path, "w", encoding="utf-8", opener=partial(os.open, mode=mode)) as file:
            file.write(text)
    except FileNotFoundError:
        raise Problem(f"{path}: there is no folder {path.parent}") from None
    except IsADirectoryError:
        raise Problem(f"{path}: is a directory; name a file in it") from None
    except OSError as error:
        raise Problem(f"{path}: {error.strerror}") from None


def local_time(moment: datetime) -> str:
    """Return a time as people here read it, and as options take it."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def write_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    right: Collection[str] = (),
    whole: Collection[str] = (),
) -> None:
    """Write a table to stdout; if that is no terminal, one line for each row, with tabs, for grep and cut.

    The arguments are those of `print_table`.
    """
    console = results()
    if console.is_terminal:
        print_table(console, columns, rows, right=right, whole=whole)
    else:
        write_result("\n".join("\t".join(map(str, row)) for row in rows))


def print_table(
    console: Console,
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    right: Collection[str],
    whole: Collection[str],
) -> None:
    """Print a table; on a narrow terminal, each row is its first cell with the others below it.

    Args:
        console: Where.
        columns: Their headings.
        rows: Texts, made inert.
        right: Columns of numbers.
        whole: Columns whose cells are never broken: names that people copy.
    """
    rows = list(rows)
    if _least_width(columns, rows, whole) > console.width:
        for first, *others in rows:
            console.print(Text(str(first), style="bold"), soft_wrap=True)
            console.print(Padding(_beside(columns[1:], others, console.width - _INDENT), (0, 0, 0, _INDENT)))
        return
    table = Table(box=None, pad_edge=False)
    for column in columns:
        justify: JustifyMethod = "right" if column in right else "left"
        table.add_column(column, header_style="dim", overflow="fold", justify=justify, no_wrap=column in whole)
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    console.print(table)


def _least_width(columns: Sequence[str], rows: Iterable[Sequence[str | Text]], whole: Collection[str]) -> int:
    """Return how wide a table has to be: long cells may be broken, short ones and those that are copied may not."""
    longest = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    parts = (
        length if name in whole else min(length, _FOLDED_WIDTH) for name, length in zip(columns, longest, strict=True)
    )
    return sum(parts) + 2 * (len(columns) - 1)


def _beside(columns: Sequence[str], cells: Sequence[str | Text], width: int) -> Text:
    """Return the cells of a row, each on one line with the heading of its column if that is not too long."""
    parts = [
        Text.assemble((f"{name} " if name else "", "dim"), cell)
        for name, cell in zip(columns, cells, strict=True)
        if str(cell)
    ]
    lines: list[Text] = []
    for part in parts:
        if lines and lines[-1].cell_len + _GAP + part.cell_len <= width:
            lines[-1] = Text(" " * _GAP).join([lines[-1], part])
        else:
            lines.append(part)
    return Text("\n").join(lines)


def write_to(stream: TextIO, text: str) -> None:
    """Write at once."""
    stream.write(text)
    stream.flush()


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False)
    if not console.width:
        console.width = _UNKNOWN_WIDTH  # COLUMNS=0 says that nobody knows it; Rich would print nothing
    return console
