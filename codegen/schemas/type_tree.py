"""The types that stubs are written in: a closed set of node kinds and their source text.

Above: rendering, defaults, counting. Below: plain text. Source text comes from `written`, which knows nothing but
these kinds; a literal value goes through `literal`, which escapes whatever does not show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

from codegen.plain_text import literal

if TYPE_CHECKING:
    from collections.abc import Iterator

LiteralValue: TypeAlias = str | int | bool | None


@dataclass(frozen=True, slots=True)
class Plain:
    """A type with a name of its own: `str`, `int`, `float`, `bool`, `None` or `Any`."""

    name: str


@dataclass(frozen=True, slots=True)
class ListOf:
    """A JSON array."""

    item: Type


@dataclass(frozen=True, slots=True)
class DictOf:
    """A JSON object used as a map."""

    value: Type


@dataclass(frozen=True, slots=True)
class Union:
    """One of several types."""

    members: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several literal values."""

    values: tuple[LiteralValue, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """A type defined beside the stub."""

    name: str


Type: TypeAlias = Plain | ListOf | DictOf | Union | Choice | Named

ANY = Plain("Any")
NONE = Plain("None")


@dataclass(frozen=True, slots=True)
class Field:
    """One key of an object."""

    key: str
    type: Type
    required: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class Model:
    """An object with known keys, a `TypedDict`; `extra` is the type of its other keys, if they are typed."""

    name: str
    fields: tuple[Field, ...]
    extra: Type | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Alias:
    """A type with a name because it contains itself or is used in several places."""

    name: str
    type: Type


def union(members: list[Type]) -> Type:
    """Return one type for several, nested ones flattened, each once."""
    flat: dict[Type, None] = {}
    for member in members:
        flat.update(dict.fromkeys(member.members if isinstance(member, Union) else (member,)))
    return Union(tuple(flat)) if len(flat) > 1 else next(iter(flat))


def written(type_: Type) -> str:
    """Return the annotation as source text."""
    match type_:
        case Plain(name) | Named(name):
            return name
        case ListOf(item):
            return f"list[{written(item)}]"
        case DictOf(value):
            return f"dict[str, {written(value)}]"
        case Union(members):
            return " | ".join(map(written, members))
        case Choice(values):
            return f"Literal[{','.join(map(literal, values))}]"
        case _:
            assert_never(type_)


def parts(type_: Type) -> Iterator[Type]:
    """Yield the type and every type inside it."""
    yield type_
    match type_:
        case ListOf(inner) | DictOf(inner):
            yield from parts(inner)
        case Union(members):
            for member in members:
                yield from parts(member)
        case _:
            pass


def fits(value: Any, type_: Type) -> bool:
    """Tell whether a short JSON value is of the type; objects with known keys never are."""
    match type_:
        case Plain(name):
            return name == "Any" or (type(value).__name__ in _JSON_KINDS.get(name, ()))
        case ListOf(item):
            return isinstance(value, list) and all(fits(element, item) for element in value)
        case DictOf(member):
            return isinstance(value, dict) and all(fits(element, member) for element in value.values())
        case Union(members):
            return any(fits(value, member) for member in members)
        case Choice(values):
            return any(type(value) is type(choice) and value == choice for choice in values)
        case Named():
            return False
        case _:
            assert_never(type_)


_JSON_KINDS = {
    "str": ("str",),
    "int": ("int",),
    "float": ("float", "int"),
    "bool": ("bool",),
    "None": ("NoneType",),
}
