"""The table of the calls that a run made: one row a call, or one row for each tool when there are many."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from codegen.plain_text import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.calls.attempts import CallRecord

MAX_ROWS = 12
"""Calls that are still listed one by one."""

_NAME_CHARACTERS = 60
_STYLES = {"ok": "green", "refused": "yellow"}


def call_table(calls: Sequence[CallRecord]) -> Table:
    """Build the table; `calls` are in the order in which the script made them."""
    return _listed(calls) if len(calls) <= MAX_ROWS else _grouped(calls)


def _listed(calls: Sequence[CallRecord]) -> Table:
    table = _table("tool", "decision", "status", "ms", title=_title(calls))
    for call in calls:
        table.add_row(_name(call), Text(call.decision), _status(call.status), f"{call.duration_ms:.0f}")
    return table


def _grouped(calls: Sequence[CallRecord]) -> Table:
    def kind(call: CallRecord) -> tuple[str, str, str, str]:
        return (call.server, call.tool, call.decision, call.status)

    table = _table("tool", "decision", "status", "calls", "ms", title=_title(calls))
    for _, group in groupby(sorted(calls, key=kind), key=kind):
        same = list(group)
        milliseconds = sum(call.duration_ms for call in same)
        table.add_row(
            _name(same[0]),
            Text(same[0].decision),
            _status(same[0].status),
            f"{len(same)}",
            f"{milliseconds:.0f}",
        )
    return table


def _table(*columns: str, title: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in {"calls", "ms"} else "left", header_style="dim")
    return table


def _title(calls: Sequence[CallRecord]) -> str:
    return counted(len(calls), "tool call")


def _name(call: CallRecord) -> Text:
    return Text(one_line(f"{call.server}.{call.tool}", _NAME_CHARACTERS))


def _status(status: str) -> Text:
    return Text(status, style=_STYLES.get(status, "red"))
