"""How often each tool was called, with what success, and how long it took: counted in memory, kept in the store.

Above: tool_shelf.py, which is told of every call that was sent; scores.py reads. Below: the store. Several processes
may add to the same rows: what is written are differences. Names of tools are kept, and nothing of arguments or results.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from broker.errors import StoreError
from broker.logging import logger
from broker.store import Store, Tables

if TYPE_CHECKING:
    from collections.abc import Callable

_NAME_CHARACTERS = 300

_CALLS = (
    "CREATE TABLE tool_statistics (server TEXT NOT NULL, tool TEXT NOT NULL, calls INTEGER NOT NULL,"
    " successes INTEGER NOT NULL, milliseconds REAL NOT NULL, last_at REAL NOT NULL,"
    " PRIMARY KEY (server, tool)) STRICT, WITHOUT ROWID"
)
_TABLES = Tables("statistics", ((_CALLS,),))
_ADD = (
    "INSERT INTO tool_statistics VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (server, tool) DO UPDATE SET"
    " calls = calls + excluded.calls, successes = successes + excluded.successes,"
    " milliseconds = milliseconds + excluded.milliseconds, last_at = max(last_at, excluded.last_at)"
)


class ToolStatistics(NamedTuple):
    """The calls of one tool.

    Attributes:
        calls: How many were sent.
        successes: How many of them the tool answered without an error.
        milliseconds: How long all of them took together.
        last_at: When the last one ended, in seconds since 1970.
    """

    calls: int = 0
    successes: int = 0
    milliseconds: float = 0.0
    last_at: float = 0.0

    @property
    def success_rate(self) -> float:
        """The share of calls that succeeded; 0 when there were none."""
        return self.successes / self.calls if self.calls else 0.0

    @property
    def average_milliseconds(self) -> float | None:
        """How long a call takes; None when there were none."""
        return self.milliseconds / self.calls if self.calls else None

    def plus(self, other: ToolStatistics) -> ToolStatistics:
        """Return both together."""
        return ToolStatistics(
            self.calls + other.calls,
            self.successes + other.successes,
            self.milliseconds + other.milliseconds,
            max(self.last_at, other.last_at),
        )


_NONE = ToolStatistics()


class CallStatistics:
    """The statistics of all tools. A note costs a microsecond; `flush` writes what was noted since.

    Use from one thread.
    """

    def __init__(self, store: Store | None = None, *, clock: Callable[[], float] = time.time) -> None:
        """Read what is kept in a store; in memory when None."""
        self._store = store or Store()
        self._clock = clock
        self._store.prepare(_TABLES)
        self._kept = self._read()
        self._new: dict[tuple[str, str], ToolStatistics] = {}
        self._problem: str | None = None

    def note(self, server: str, tool: str, *, is_success: bool, seconds: float) -> None:
        """Count a call that was sent."""
        key = (server, tool[:_NAME_CHARACTERS])
        call = ToolStatistics(1, int(is_success), seconds * 1_000, self._clock())
        self._new[key] = self._new.get(key, _NONE).plus(call)

    def of(self, server: str, tool: str) -> ToolStatistics:
        """Return the statistics of a tool; zeros when it was never called."""
        key = (server, tool)
        kept, new = self._kept.get(key), self._new.get(key)
        return kept.plus(new) if kept and new else kept or new or _NONE

    def flush(self) -> bool:
        """Write what was noted and read what other processes wrote; tell whether anything is different.

        A store that cannot be used costs the statistics, and nothing else; the log says so once for each reason.
        """
        try:
            kept = self._write_and_read() if self._new else self._read()
        except StoreError as error:
            if str(error) != self._problem:
                self._problem = str(error)
                logger().warning("statistics are not kept", reason=self._problem)
            return bool(self._new)
        self._problem = None
        is_different = bool(self._new) or kept != self._kept
        self._kept = kept
        self._new.clear()
        return is_different

    def _write_and_read(self) -> dict[tuple[str, str], ToolStatistics]:
        with self._store.transaction():
            for (server, tool), one in self._new.items():
                values = (one.calls, one.successes, one.milliseconds, one.last_at)
                self._store.execute(_ADD, (server, tool, *values))
            # Within it: what was written but could not be read would be written again.
            return self._read()

    def _read(self) -> dict[tuple[str, str], ToolStatistics]:
        rows = self._store.execute("SELECT server, tool, calls, successes, milliseconds, last_at FROM tool_statistics")
        return {(server, tool): ToolStatistics(*values) for server, tool, *values in rows}
