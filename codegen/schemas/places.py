"""Rewrites each place that a schema refers to once; one that contains itself becomes a definition.

Above: the closed schema. Below: the closed document. Because of this table, work on a schema whose references form
cycles ends, and work on one whose references double at each level stays small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codegen.schemas.closed_types import SHARED_SIZE, ClosedDocument, ClosedType, any_of, size

if TYPE_CHECKING:
    from collections.abc import Callable


class Places:
    """What stands for each place of one schema."""

    def __init__(self, document: ClosedDocument) -> None:
        """Put definitions into `document`."""
        self._document = document
        # Places are told apart by their identity, so they must live as long as the tables.
        self._kept: list[Any] = []
        self._finished: dict[int, ClosedType] = {}
        self._open: set[int] = set()
        self._recursive: dict[int, str] = {}

    def once(self, place: Any, words: tuple[str, ...], rewrite: Callable[[], ClosedType]) -> ClosedType:
        """Return the rewritten place: made by the first `rewrite`, or a reference while that is going on."""
        key = id(place)
        self._kept.append(place)
        if key in self._finished:
            return self._finished[key]
        if key in self._open:
            token = self._recursive.setdefault(key, self._new_token())
            return {"$ref": f"#/$defs/{token}"}
        self._open.add(key)
        closed = rewrite()
        self._open.discard(key)
        token_ = self._recursive.pop(key, None)
        if token_ is not None:
            closed = self._tied(token_, closed, words)
        elif size(closed) > SHARED_SIZE:
            closed = self._tied(self._new_token(), closed, words)
        self._finished[key] = closed
        return closed

    def _new_token(self) -> str:
        return f"R{len(self._document.aliases) + len(self._recursive)}"

    def _tied(self, token: str, closed: ClosedType, words: tuple[str, ...]) -> ClosedType:
        """Give a type a definition, without itself as one of its alternatives."""
        own = {"$ref": f"#/$defs/{token}"}
        remaining = [member for member in closed.get("anyOf", [closed]) if member != own]
        self._document.aliases[token] = words
        self._document.definitions[token] = any_of(remaining)
        return own
