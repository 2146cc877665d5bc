"""What an upstream server says about one tool, with the digest that stands for it.

Above: stub generation and everything that pins a decision to a definition. Below: nothing of the package.
Every string in a `ToolSpec` was written by the upstream server.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class ToolAnnotations:
    """Hints of the server about its tool; None where it said nothing. Never a basis for a decision alone."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


HINTS = {
    "readOnlyHint": "read_only",
    "destructiveHint": "destructive",
    "idempotentHint": "idempotent",
    "openWorldHint": "open_world",
}
"""What MCP calls each field of `ToolAnnotations`."""


@dataclass(frozen=True, eq=False)
class ToolSpec:
    """One tool definition as received, apart from the server's own name for itself.

    `server` is the broker's name for the server. Schemas are JSON values of any shape and are neither
    copied nor checked here; they must not be changed afterwards, since the digest is computed once. The same holds for
    `examples`, a list of JSON values that the server gives beside its schemas; None if it gives none.
    """

    server: str
    name: str
    title: str | None
    description: str
    input_schema: Any
    output_schema: Any | None
    annotations: ToolAnnotations
    examples: Any | None = None

    def __eq__(self, other: object) -> bool:
        """Compare by digest: `True` and `1` are equal in Python but not in JSON."""
        return isinstance(other, ToolSpec) and self.digest == other.digest

    def __hash__(self) -> int:
        """Hash by digest, since schemas are dictionaries."""
        return hash(self.digest)

    @cached_property
    def digest(self) -> str:
        """`sha256:<hex>` over the canonical JSON of every field; the order of keys does not matter.

        Of a tool without examples it is the same as before there were such.
        """
        document = {
            "server": self.server,
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input_schema,
            "outputSchema": self.output_schema,
            "annotations": asdict(self.annotations),
        } | ({} if self.examples is None else {"examples": self.examples})
        return "sha256:" + hashlib.sha256(canonical_json(document).encode("ascii")).hexdigest()

    @property
    def about(self) -> str:
        """Its description, or else its title; empty where the server says neither."""
        return self.description or self.title or ""

    @property
    def qualified_name(self) -> str:
        """`server.name` with the name's original characters, as shown to people and matched by grants."""
        return f"{self.server}.{self.name}"


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def canonical_json(value: Any) -> str:
    """Return JSON with sorted keys, no spaces and only ASCII characters, at any depth of nesting.

    Like JCS (RFC 8785) but for its number format and its UTF-16 key order: it is compared only with itself.
    """
    try:
        return _ENCODER.encode(value)
    except RecursionError:
        return "".join(_canonical_pieces(value))


def _canonical_pieces(value: Any) -> Iterator[str]:
    """Yield the text of `canonical_json` without recursion; raw text waits on the stack as `_Text`."""
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        match item:
            case _Text():
                yield item
            case dict():
                parts: list[Any] = [_Text("{")]
                for index, key in enumerate(sorted(item)):
                    parts += [_Text("," * bool(index) + json.dumps(key) + ":"), item[key]]
                stack += reversed([*parts, _Text("}")])
            case list() | tuple():
                parts = [_Text("[")]
                for index, element in enumerate(item):
                    parts += [_Text("," * bool(index)), element]
                stack += reversed([*parts, _Text("]")])
            case _:
                yield json.dumps(item)


class _Text(str):
    """Finished JSON text, told apart from JSON strings."""

    __slots__ = ()
