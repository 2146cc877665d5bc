"""Result types learned from recorded results, for tools whose server declares none.

Above: `codemode tools infer`. Below: recordings; tools/inferred_results.py, which keeps what is learned.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from broker.errors import RecordingError
from broker.recordings.keeping.transfer import load
from broker.tools.inferred_results import Inferred

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.recordings.keeping.recordings import Recordings

MAX_RECORDINGS = 500
MAX_RESULTS = 2_000
"""Results of one tool that are looked at, the newest first."""

_MAX_KEYS = 200
_MAX_DEPTH = 12


@dataclass
class Shape:
    """What the values in one place have in common.

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
        if depth >= _MAX_DEPTH:
            return
        if isinstance(value, dict):
            for key, inner in value.items():
                if key in self.keys or len(self.keys) < _MAX_KEYS:
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


def infer(recordings: Recordings, pattern: str) -> list[Inferred]:
    """Return the result types of the tools that match, by name. Errors do not count as results."""
    shapes: dict[tuple[str, str, str], Shape] = {}
    for server, tool, digest, value in _results(recordings, pattern):
        shape = shapes.setdefault((server, tool, digest), Shape())
        if shape.count < MAX_RESULTS:
            shape.add(value)
    return [Inferred(*key, shape.schema(), shape.count) for key, shape in sorted(shapes.items())]


def _results(recordings: Recordings, pattern: str) -> Iterator[tuple[str, str, str, Any]]:
    for entry in recordings.entries(MAX_RECORDINGS):
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
