"""A closed document as the generator gets it: flat, with literals in place of references and of nested types.

Above: type_generator.py. Below: the closed document. The generator follows every path of references between types, and
k types may have 2^k of them; it also writes nested types anew at each level. So it gets definitions that refer to
nothing, with each nested type once, and its answer is put together again here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from codegen.schemas.closed_types import ClosedType, size
from codegen.schemas.type_tree import Choice, DictOf, ListOf, Named, Type, Union, union

_REFERENCE = "#"
"""Literals that stand for types begin with this; tokens of values begin with a letter."""
_NESTED = "N"
_SMALL = 8
"""The size up to which a nested type stays in its place."""


@dataclass
class FlatDocument:
    """Definitions by token, with those of nested types among them."""

    definitions: dict[str, ClosedType] = field(default_factory=dict)
    _tokens: dict[str, str] = field(default_factory=dict)

    def schema(self, document: ClosedType) -> dict[str, Any]:
        """Return the document for the generator."""
        for token, closed in document["$defs"].items():
            self.definitions[token] = self._flat(closed)
        return {**self._flat(document), "$defs": self.definitions}

    def _flat(self, closed: ClosedType) -> ClosedType:
        match closed:
            case {"$ref": str(reference)}:
                return _standing_for(reference.rsplit("/", 1)[-1])
            case {"properties": properties}:
                types = {token: self._flat(one) for token, one in properties.items()}
                return {"type": "object", "properties": types, "required": list(types)}
            case {"anyOf": members}:
                return {"anyOf": [self._flat(member) for member in members]}
            case {"items": inner}:
                return {"type": "array", "items": self._inner(inner)}
            case {"additionalProperties": inner}:
                return {"type": "object", "additionalProperties": self._inner(inner)}
        return closed

    def _inner(self, closed: ClosedType) -> ClosedType:
        flat = self._flat(closed)
        if size(flat) <= _SMALL:
            return flat
        key = repr(flat)
        if key not in self._tokens:
            self._tokens[key] = f"{_NESTED}{len(self._tokens)}"
            self.definitions[self._tokens[key]] = flat
        return _standing_for(self._tokens[key])


def _standing_for(token: str) -> ClosedType:
    return {"enum": [_REFERENCE + token]}


def put_together(types: dict[str, dict[str, Type] | Type]) -> dict[str, dict[str, Type] | Type]:
    """Return the type of each definition, put together from the generator's types of the flat ones."""
    whole: dict[str, Type] = {}

    def meant(type_: Type) -> Type:
        match type_:
            case Choice(tokens):
                named = [str(token)[1:] for token in tokens if str(token).startswith(_REFERENCE)]
                values = tuple(token for token in tokens if not str(token).startswith(_REFERENCE))
                return union([*([Choice(values)] if values else []), *map(of_token, named)])
            case ListOf(item):
                return ListOf(meant(item))
            case DictOf(value):
                return DictOf(meant(value))
            case Union(members):
                return union(list(map(meant, members)))
        return type_

    def of_token(token: str) -> Type:
        if not token.startswith(_NESTED):
            return Named(token)
        if token not in whole:
            nested = types.get(token)
            whole[token] = Named(token) if nested is None or isinstance(nested, dict) else meant(nested)
        return whole[token]

    return {
        token: {name: meant(one) for name, one in found.items()} if isinstance(found, dict) else meant(found)
        for token, found in types.items()
        if not token.startswith(_NESTED)
    }
