"""Result types learned from recorded results, for tools whose server declares none.

Above: `codemode tools infer`, the catalog. Below: recordings. What is inferred types the stub and changes nothing else:
results are handed to scripts as before, and are not checked against it.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from broker.errors import RecordingError
from broker.recordings.keeping.transfer import load
from broker.store import Tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker.recordings.keeping.recordings import Recordings
    from broker.store import Store

MOST_RECORDINGS = 500
MOST_RESULTS = 2_000
"""Results of one tool that are looked at, the newest first."""

_MOST_KEYS = 200
_MOST_DEPTH = 12
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


@dataclass
class Shape:
    """What values in one place had in common.

    Attributes:
        count: How many there were.
        kinds: How many of each JSON type.
        keys: The shapes behind the keys of objects.
        items: The shape of the items of lists.
    """

    count: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    keys: dict[str, Shape] = field(default_factory=dict)
    items: Shape | None = None

    def add(self, value: Any, depth: int = 0) -> None:
        """Take one more value into account."""
        self.count += 1
        self.kinds[_kind(value)] += 1
        if depth >= _MOST_DEPTH:
            return
        if isinstance(value, dict):
            for key, inner in value.items():
                if key in self.keys or len(self.keys) < _MOST_KEYS:
                    self.keys.setdefault(key, Shape()).add(inner, depth + 1)
        elif isinstance(value, list):
            self.items = self.items or Shape()
            for inner in value:
                self.items.add(inner, depth + 1)

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema that all values fit; keys that were not always there are optional."""
        kinds = sorted(self.kinds)
        if "integer" in kinds and "number" in kinds:
            kinds.remove("integer")
        schema: dict[str, Any] = {"type": kinds[0] if len(kinds) == 1 else kinds} if kinds else {}
        if "object" in kinds:
            schema["properties"] = {key: shape.schema() for key, shape in self.keys.items()}
            schema["required"] = [key for key, shape in self.keys.items() if shape.count == self.kinds["object"]]
        if "array" in kinds and self.items is not None and self.items.count:
            schema["items"] = self.items.schema()
        return schema


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


def infer(recordings: Recordings, pattern: str) -> list[Inferred]:
    """Return what recorded results say of the tools that match, by name; errors are no results."""
    shapes: dict[tuple[str, str, str], Shape] = {}
    for server, tool, digest, value in _results(recordings, pattern):
        shape = shapes.setdefault((server, tool, digest), Shape())
        if shape.count < MOST_RESULTS:
            shape.add(value)
    return [Inferred(*key, shape.schema(), shape.count) for key, shape in sorted(shapes.items())]


class InferredResults:
    """Those that were stored on request."""

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


def _results(recordings: Recordings, pattern: str) -> Iterator[tuple[str, str, str, Any]]:
    for entry in recordings.entries(MOST_RECORDINGS):
        if entry.mode != "full" or entry.is_imported:
            continue
        try:
            recording = load(recordings, entry)
        except RecordingError:
            continue
        for story in recording.calls.values():
            sent = story.sent
            if sent is None or not fnmatchcase(f"{sent.server}.{sent.tool}", pattern):
                continue
            answer = story.answer
            if answer is not None and "value" in answer:
                yield sent.server, sent.tool, sent.digest, answer["value"]


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    names = {int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names[type(value)]
