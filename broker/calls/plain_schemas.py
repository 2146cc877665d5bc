"""Accepts values that plainly fit a plain schema, as nearly all do, and leaves all others to json_schema.py.

Above: json_schema.py. Below: nothing. A plain schema is compiled once into functions, without any code being generated;
one with a keyword that is not known here is not plain. A yes means the same there; a no means nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Fits: TypeAlias = Callable[[Any], bool]

MAX_NODES = 200
"""Schemas with more parts than this, local references followed, are not plain; so are those that contain themselves."""

MAX_ITEMS = 5_000
"""How many items and members of unnamed properties are looked at for one value."""

_DIALECTS = ("2020-12", "2019-09", "draft-07")
_SILENT = frozenset(
    ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "format")
)
_OF_THE_ROOT = frozenset(("$schema", "$id", "$defs", "definitions"))
_KEYWORDS = {
    "string": frozenset(("type", "enum", "const", "minLength", "maxLength")),
    "integer": frozenset(("type", "minimum", "maximum")),
    "number": frozenset(("type", "minimum", "maximum")),
    "boolean": frozenset(("type",)),
    "null": frozenset(("type",)),
    "array": frozenset(("type", "items", "minItems", "maxItems")),
    "object": frozenset(("type", "properties", "required", "additionalProperties")),
}
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def _is_silent(keyword: str) -> bool:
    """Tell whether a keyword says nothing of what fits; unknown ones do not (JSON Schema 2020-12, core, 6.5)."""
    return keyword in _SILENT or keyword.startswith("x-")


class _NotPlainError(Exception):
    """There is something in the schema that is not known here."""


class PlainSchema:
    """One plain schema, ready to be asked."""

    def __init__(self, schema: dict[str, Any]) -> None:
        """Compile a schema; `of` makes the object."""
        self._root = schema
        self._nodes = 0
        self._open: set[str] = set()
        self._items_left = 0
        self._fits = self._compiled({key: value for key, value in schema.items() if key not in _OF_THE_ROOT})

    @classmethod
    def of(cls, schema: Any) -> PlainSchema | None:
        """Return a schema that is plain, or None. Never raises."""
        try:
            dialect = schema.get("$schema", _DIALECTS[0])
            return cls(schema) if any(one in dialect for one in _DIALECTS) else None
        except (_NotPlainError, AttributeError, TypeError, RecursionError):
            return None

    def fits(self, value: Any) -> bool:
        """Tell whether a value certainly fits."""
        self._items_left = MAX_ITEMS
        return self._fits(value)

    def _compiled(self, schema: Any) -> Fits:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise _NotPlainError
        said = {} if schema is True else {key: value for key, value in schema.items() if not _is_silent(key)}
        if not said:
            return _anything
        if said.keys() == {"$ref"}:
            return self._referred(said["$ref"])
        if said.keys() == {"anyOf"}:
            return self._one_of(said["anyOf"])
        if said.keys() == {"type"} and isinstance(said["type"], list):
            return self._one_of([{"type": kind} for kind in said["type"]])
        return self._typed(said.get("type", ""), said)

    def _one_of(self, schemas: list[Any]) -> Fits:
        choices = tuple(map(self._compiled, schemas))
        return lambda value: any(choice(value) for choice in choices)

    def _typed(self, kind: str, said: dict[str, Any]) -> Fits:
        if kind not in _KEYWORDS or not said.keys() <= _KEYWORDS[kind]:
            raise _NotPlainError
        if kind == "object":
            return self._object(said)
        return self._array(said) if kind == "array" else _scalar(kind, said)

    def _referred(self, reference: str) -> Fits:
        for place in ("$defs", "definitions"):
            name = reference.removeprefix(f"#/{place}/")
            if name != reference and "/" not in name and not {"~", "%"} & set(name) and reference not in self._open:
                self._open.add(reference)
                fits = self._compiled(self._root.get(place, {}).get(name))
                self._open.discard(reference)
                return fits
        raise _NotPlainError

    def _object(self, said: dict[str, Any]) -> Fits:
        named = {name: self._compiled(schema) for name, schema in said.get("properties", {}).items()}
        required = frozenset(said.get("required", ()))
        others = said.get("additionalProperties", True)
        of_others = None if others is False else _anything if others is True else self._compiled(others)

        def fits(value: Any) -> bool:
            if type(value) is not dict or not required <= value.keys():
                return False
            self._items_left -= len(value)
            if self._items_left < 0:
                return False
            for name, item in value.items():
                check = named.get(name, of_others)
                if check is None or not check(item):
                    return False
            return True

        return fits

    def _array(self, said: dict[str, Any]) -> Fits:
        of_items = self._compiled(said.get("items", True))
        least, most = _number(said, "minItems", 0), _number(said, "maxItems", MAX_ITEMS)

        def fits(value: Any) -> bool:
            if type(value) is not list or not least <= len(value) <= most:
                return False
            self._items_left -= len(value)
            return self._items_left >= 0 and all(map(of_items, value))

        return fits


def _scalar(kind: str, said: dict[str, Any]) -> Fits:
    types = _TYPES[kind]
    # Not `isinstance`: a bool is an int, and is none in JSON.
    if said.keys() == {"type"}:
        return lambda value: type(value) in types
    if kind != "string":
        least, most = _number(said, "minimum", float("-inf")), _number(said, "maximum", float("inf"))
        return lambda value: type(value) in types and least <= value <= most
    if "enum" in said and "const" in said:
        raise _NotPlainError
    shortest, longest = _number(said, "minLength", 0), _number(said, "maxLength", float("inf"))
    allowed = said.get("enum", [said["const"]] if "const" in said else None)
    if allowed is None:
        return lambda value: type(value) is str and shortest <= len(value) <= longest
    words = frozenset(one for one in allowed if isinstance(one, str))
    return lambda value: type(value) is str and value in words and shortest <= len(value) <= longest


def _number(said: dict[str, Any], keyword: str, otherwise: float) -> float:
    value = said.get(keyword, otherwise)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _NotPlainError
    return value


def _anything(_value: Any) -> bool:
    return True
