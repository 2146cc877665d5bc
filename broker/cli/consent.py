"""The terminal as answerer: one question, with the pending calls as a table. Anything but a clear yes is a no."""

from __future__ import annotations

import json
import os
import re
import sys
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

import anyio
from rich.table import Table
from rich.text import Text

from broker.authorization.grants import Grant
from broker.cli.terminal import notes
from codegen.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.authorization.calls import PendingCall
    from broker.authorization.questions import Answer, Question

_NAME_CHARACTERS = 130
_ARGUMENT_CHARACTERS = 160
_LINE_BYTES = 4096
_YES = {"y", "yes"}


class TerminalAnswerer:
    """Asks on stderr and reads a line from stdin; both must be terminals.

    A yes holds for the tools in the table, as they are defined now, until the run ends.
    """

    async def answer(self, question: Question) -> Sequence[Answer]:
        """Ask once for all calls of the question."""
        console = notes()
        console.print(_table(question.calls))
        console.print(Text("Allow these, and more calls of the same tools until the script ends? [y/N] "), end="")
        if (await read_line()).strip().lower() not in _YES:
            return ()
        return [Grant(exact_pattern(call.qualified_name), digest=call.digest) for call in question.calls]


def exact_pattern(name: str) -> str:
    """Return the pattern that matches this name only: a server may call a tool `*`."""
    return re.sub(r"([*?\[])", r"[\1]", name)


async def read_line() -> str:
    """Read what is typed without a thread, which could not be interrupted; the end of input is an empty line."""
    await anyio.wait_readable(sys.stdin)
    return os.read(sys.stdin.fileno(), _LINE_BYTES).decode("utf-8", "replace")


def _table(calls: Sequence[PendingCall]) -> Table:
    table = Table(title="The script wants to call", title_justify="left", box=None, pad_edge=False)
    table.add_column("tool", header_style="dim", overflow="fold")
    table.add_column("calls", header_style="dim", justify="right")
    table.add_column("arguments of the first", header_style="dim", overflow="fold")
    by_name = attrgetter("qualified_name")
    for name, group in groupby(sorted(calls, key=by_name), key=by_name):
        same = list(group)
        table.add_row(Text(one_line(name, _NAME_CHARACTERS), style="bold"), str(len(same)), _arguments(same[0]))
    return table


def _arguments(call: PendingCall) -> Text:
    return Text(one_line(json.dumps(call.arguments, ensure_ascii=False), _ARGUMENT_CHARACTERS))
