"""Finds where a `$ref` of a schema points, within the same document only. Nothing is ever fetched or opened.

Above: the closed schema. The document was written by a server.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urljoin

_SCHEMA_MAPS = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)
_NOT_SCHEMAS = frozenset({"enum", "const", "default", "examples", "example"})
_MAX_NAMED = 1_000
"""How many names are indexed: each `$id`, joined with the one around it, and anchors."""
_LONGEST_NAME = 500
"""Characters of a name that count, because every name inside it is joined with them."""
_LONGEST_REFERENCE = 2_000
"""The longest reference that is followed: it may occur in a thousand places."""
_REFERENCE_KEYWORDS = ("$ref", "$dynamicRef", "$recursiveRef")


class References:
    """Finds the targets of references in one document; `$id` and `$anchor` are indexed when needed."""

    def __init__(self, document: Any) -> None:
        """Take the document as received."""
        self.document = document
        self._named: dict[str, Any] | None = None
        self._base_of: dict[int, str] = {}

    def target(self, reference: str, holder: Any) -> Any | None:
        """Return the schema that `reference`, found in `holder`, points to; None if it is elsewhere."""
        return None if len(reference) > _LONGEST_REFERENCE else self._target(reference, holder)

    def _target(self, reference: str, holder: Any) -> Any | None:
        if reference in {"#", ""}:
            named = self._index()
            return named.get(self._base_of.get(id(holder), ""), self.document)
        if reference.startswith("#/") and not self._has_identifiers():
            return _pointed(self.document, reference[2:])
        named = self._index()
        absolute = _joined(self._base_of.get(id(holder), ""), reference)
        if absolute in named:
            return named[absolute]
        resource, _, fragment = absolute.partition("#")
        if resource not in named:
            return None
        if not fragment:
            return named[resource]
        return _pointed(named[resource], fragment[1:]) if fragment.startswith("/") else None

    def _has_identifiers(self) -> bool:
        return len(self._index()) > 1

    def _index(self) -> dict[str, Any]:
        if self._named is None:
            self._named = {"": self.document}
            self._walk(self.document)
        return self._named

    def _walk(self, document: Any) -> None:
        stack: list[tuple[Any, str]] = [(document, "")]
        named = self._named if self._named is not None else {}
        while stack:
            schema, base = stack.pop()
            if not isinstance(schema, dict):
                continue
            identifier = schema.get("$id") if len(named) < _MAX_NAMED else None
            if isinstance(identifier, str) and not identifier.startswith("#") and "$ref" not in schema:
                base = _joined(base, identifier.removesuffix("#")[:_LONGEST_NAME])[:_LONGEST_NAME]
                named.setdefault(base, schema)
            self._base_of[id(schema)] = base
            for anchor in (schema.get("$anchor"), schema.get("$dynamicAnchor"), _fragment_of(identifier)):
                if isinstance(anchor, str) and len(named) < _MAX_NAMED:
                    named.setdefault(f"{base}#{anchor}"[: 2 * _LONGEST_NAME], schema)
            stack.extend((child, base) for child in _children(schema))


def reference_of(schema: dict[str, Any]) -> str | None:
    """Return the reference that a schema is, or None."""
    for keyword in _REFERENCE_KEYWORDS:
        reference = schema.get(keyword)
        if isinstance(reference, str):
            return reference
    return None


def _children(schema: dict[str, Any]) -> list[Any]:
    children: list[Any] = []
    for keyword, value in schema.items():
        if keyword in _NOT_SCHEMAS:
            continue
        if isinstance(value, list):
            children += value
        elif keyword in _SCHEMA_MAPS and isinstance(value, dict):
            children += value.values()
        else:
            children.append(value)
    return children


def _fragment_of(identifier: Any) -> str | None:
    return identifier[1:] if isinstance(identifier, str) and identifier.startswith("#") else None


def _joined(base: str, identifier: str) -> str:
    try:
        return urljoin(base, identifier)
    except ValueError:
        return identifier


def _pointed(document: Any, pointer: str) -> Any | None:
    """Follow a JSON pointer (RFC 6901) in its URI fragment form, without the leading `/`."""
    value = document
    for token in pointer.split("/"):
        step = unquote(token).replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isascii() and step.isdigit() and int(step[:9]) < len(value):
            value = value[int(step[:9])]
        else:
            return None
    return value
