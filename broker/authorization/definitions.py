"""The definitions of tools that a session has seen, to tell which one a grant was given for and what has changed.

Above: grants.py and desk.py. Below: `ToolSpec`. All text of a definition was written by its server.
"""

from __future__ import annotations

import difflib
import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from broker.authorization.shown import shown_text

if TYPE_CHECKING:
    from codegen import ToolSpec

_LINES = 60
_MAX_LINES = 400
_MAX_COMPARED = 1_000
"""Lines from the first one that differs on."""
_CHARACTERS = 200


@dataclass(slots=True, eq=False)
class Definitions:
    """Each definition in the order in which it was first seen.

    Attributes:
        sequence: How many were seen so far; marks a moment.
    """

    sequence: int = 0
    _seen: dict[str, list[tuple[int, ToolSpec]]] = field(default_factory=dict)

    def see(self, spec: ToolSpec) -> None:
        """Note a tool's present definition."""
        history = self._seen.setdefault(spec.qualified_name, [])
        if not history or history[-1][1].digest != spec.digest:
            self.sequence += 1
            history.append((self.sequence, spec))

    def pinned(self, name: str, sequence: int) -> str | None:
        """Return the digest of a tool at a moment, or the first seen after it; None where none was seen."""
        history = self._seen.get(name, [])
        before = [spec.digest for number, spec in history if number <= sequence]
        return before[-1] if before else history[0][1].digest if history else None

    def change(self, name: str) -> tuple[str, ...]:
        """Return how the present definition of a tool differs from the first one, as lines of a diff."""
        history = self._seen.get(name, [])
        return difference(history[0][1], history[-1][1]) if len(history) > 1 else ()

    def present(self, name: str) -> ToolSpec | None:
        """Return the definition that was seen last."""
        history = self._seen.get(name, [])
        return history[-1][1] if history else None

    def shown(self, name: str) -> tuple[str, ...]:
        """Return the present definition of a tool, escaped and bounded."""
        history = self._seen.get(name, [])
        lines = _lines(history[-1][1])[:_MAX_LINES] if history else []
        return tuple(shown_text(line, _CHARACTERS) for line in lines)


def difference(before: ToolSpec, after: ToolSpec) -> tuple[str, ...]:
    """Return what differs between two definitions of a tool, escaped and bounded; nothing where they are equal."""
    old, new = _lines(before), _lines(after)
    same = next(
        (at for at, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), min(len(old), len(new))
    )
    # Of a million lines it would take days: the square of those that are alike.
    then, now = (lines[same : same + _MAX_COMPARED] for lines in (old, new))
    diff = difflib.unified_diff(then, now, lineterm="", n=0)
    lines = [line for line in diff if not line.startswith(("---", "+++", "@@"))]
    if len(lines) > _LINES:
        least = "at least " if max(len(old), len(new)) - same > _MAX_COMPARED else ""
        lines[_LINES:] = [f"… and {least}{len(lines) - _LINES} more lines"]
    return tuple(line[:1] + shown_text(line[1:], _CHARACTERS) for line in lines)


def _lines(spec: ToolSpec) -> list[str]:
    document: dict[str, Any] = {
        "title": spec.title,
        "description": spec.description,
        "annotations": asdict(spec.annotations),
        "input": spec.input_schema,
        "output": spec.output_schema,
    } | ({} if spec.examples is None else {"examples": spec.examples})
    try:
        return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False).splitlines()
    except RecursionError:
        return [f"too deeply nested to show; {spec.digest}"]
