"""Result types that were learned from recordings, kept in the store by the tool's definition.

Above: `codemode tools infer`, the catalog. Below: store.py. They type the stub and change nothing else: scripts get
results as before, unchecked.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from broker.store import Tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.store import Store

_TABLES = Tables(
    "inferred results",
    (
        (
            """CREATE TABLE inferred_result (
                server TEXT NOT NULL, tool TEXT NOT NULL, digest TEXT NOT NULL, schema TEXT NOT NULL,
                results INTEGER NOT NULL, PRIMARY KEY (server, tool, digest)) STRICT, WITHOUT ROWID""",
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Inferred:
    """The result type of one definition of a tool."""

    server: str
    tool: str
    digest: str
    schema: dict[str, Any]
    results: int

    @property
    def qualified_name(self) -> str:
        """`server.tool`."""
        return f"{self.server}.{self.tool}"


class InferredResults:
    """The result types in one store."""

    def __init__(self, store: Store) -> None:
        """Make the table where there is none."""
        self._store = store
        store.prepare(_TABLES)

    def keep(self, found: Sequence[Inferred]) -> None:
        """Store result types, in place of those stored before for the same definitions."""
        with self._store.transaction():
            for one in found:
                self._store.execute(
                    "INSERT OR REPLACE INTO inferred_result VALUES (?, ?, ?, ?, ?)",
                    (one.server, one.tool, one.digest, json.dumps(one.schema), one.results),
                )

    def find(self, server: str, tool: str, digest: str) -> Inferred | None:
        """Return what is stored for this definition of a tool."""
        rows = self._store.execute(
            "SELECT schema, results FROM inferred_result WHERE server = ? AND tool = ? AND digest = ?",
            (server, tool, digest),
        )
        return Inferred(server, tool, digest, json.loads(rows[0][0]), int(rows[0][1])) if rows else None

    def forget(self, pattern: str) -> int:
        """Remove what is stored for the tools that match; returns how many definitions."""
        rows = self._store.execute("SELECT server, tool, digest FROM inferred_result")
        gone = [row for row in rows if fnmatchcase(f"{row[0]}.{row[1]}", pattern)]
        for row in gone:
            self._store.execute("DELETE FROM inferred_result WHERE server = ? AND tool = ? AND digest = ?", row)
        return len(gone)
