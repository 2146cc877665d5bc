"""The closed subset of JSON Schema that the type generator gets, and the tables that lead back to the original.

Above: closed_schema.py, which writes it, and generate.py, which reads it. The subset is `type`, `properties`,
`required`, `items`, `additionalProperties` (as a schema), `anyOf`, `enum` of strings, `$ref` to a definition, and
`$defs`. Property names, definition names and enum values in it are tokens of ours, so that no text of a server reaches
the generator.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codegen.schemas.type_tree import LiteralValue

ClosedType: TypeAlias = dict[str, Any]

RESULT = "r"
EXTRA = "x"
SHARED_SIZE = 40


@dataclass(frozen=True, slots=True)
class ClosedField:
    """One property: its JSON key, the token that stands for it and what to tell a caller."""

    key: str
    token: str
    required: bool
    note: str
    schema: Any
    says_something: bool


@dataclass(frozen=True, slots=True)
class ClosedModel:
    """One object with known keys; `words` lead to its name."""

    token: str
    words: tuple[str, ...]
    fields: tuple[ClosedField, ...]
    note: str


@dataclass
class ClosedDocument:
    """What the generator gets, and the tables that lead back from its tokens."""

    definitions: dict[str, ClosedType] = field(default_factory=dict)
    roots: dict[str, ClosedType] = field(default_factory=dict)
    models: dict[str, ClosedModel] = field(default_factory=dict)
    aliases: dict[str, tuple[str, ...]] = field(default_factory=dict)
    literals: list[LiteralValue] = field(default_factory=list)
    degradations: list[str] = field(default_factory=list)
    _literal_tokens: dict[tuple[type, LiteralValue], str] = field(default_factory=dict)
    _model_tokens: dict[tuple[Any, ...], str] = field(default_factory=dict)

    def schema(self) -> dict[str, Any]:
        """Return the document for the generator: the roots are the properties of its one outermost object."""
        return {**closed_object(self.roots), "$defs": self.definitions}

    def literal_token(self, value: LiteralValue) -> str:
        """Return the token of a value, a new one for a value not seen before."""
        key = (type(value), value)
        if key not in self._literal_tokens:
            self._literal_tokens[key] = f"v{len(self.literals)}"
            self.literals.append(value)
        return self._literal_tokens[key]

    def model_token(
        self,
        fields_: tuple[ClosedField, ...],
        types: dict[str, ClosedType],
        words: tuple[str, ...],
        note: str,
    ) -> str:
        """Define an object once and return its token: a second one with the same keys, types and notes is the first."""
        described = tuple((one.key, one.token, one.required, one.note) for one in fields_)
        sameness = (described, repr(types), note)
        if sameness not in self._model_tokens:
            token = f"M{len(self.models)}"
            self._model_tokens[sameness] = token
            self.models[token] = ClosedModel(token, words, fields_, note)
            self.definitions[token] = closed_object(types)
        return self._model_tokens[sameness]


def closed_object(types: dict[str, ClosedType]) -> ClosedType:
    """Return an object with a required property for each token."""
    return {"type": "object", "properties": types, "required": list(types)}


def any_of(members: Iterable[ClosedType]) -> ClosedType:
    """Return one type for several: nested alternatives flattened, each kept once, `{}` absorbing the rest."""
    alternatives = [one for member in members for one in member.get("anyOf", [member])]
    flat = list({repr(one): one for one in alternatives}.values())
    if not flat or {} in flat:
        return {}
    if {"type": "number"} in flat and {"type": "integer"} in flat:
        flat.remove({"type": "integer"})
    choices = [one for one in flat if "enum" in one]
    if len(choices) > 1:
        values = list(dict.fromkeys(value for one in choices for value in one["enum"]))
        flat = [{"enum": values}, *(one for one in flat if "enum" not in one)]
    return flat[0] if len(flat) == 1 else {"anyOf": flat}


def is_text(value: str) -> bool:
    """Tell whether a string can be written as UTF-8, as everything is that is sent."""
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)


def size(closed: ClosedType) -> int:
    """Return how much text a type is, counted up to `SHARED_SIZE`."""
    size, stack = 0, [closed]
    while stack:
        one = stack.pop()
        size += 1 + len(one.get("enum", ()))
        stack += one.get("anyOf", ())
        for keyword in ("items", "additionalProperties"):
            if keyword in one:
                stack.append(one[keyword])
        if size > SHARED_SIZE:
            break
    return size
