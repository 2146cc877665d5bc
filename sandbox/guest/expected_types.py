"""Types that a script expects, as JSON Schema for a model to fit, and JSON data as values of such a type.

These fit: `str`, `int`, `float`, `bool`, `None`, `list`, `dict`, `tuple`, `Literal`, enums, unions, `TypedDict`,
dataclasses, and what is made of them.
"""

import dataclasses
import enum
import math
import types
import typing

_PLAIN = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    None: {"type": "null"},
    list: {"type": "array"},
    dict: {"type": "object"},
    typing.Any: {},
    object: {},
}
_DEPTH = 20


def schema_of(expected, depth=0) -> dict:
    """Return the JSON Schema of a type.

    Raises:
        TypeError: The type is none of those that fit.
    """
    if depth > _DEPTH:
        raise TypeError(f"extract() cannot expect a type that is nested more than {_DEPTH} deep, or in itself")
    try:
        plain = _PLAIN.get(expected)
    except TypeError:
        plain = None
    if plain is not None:
        return dict(plain)
    origin, arguments = typing.get_origin(expected), typing.get_args(expected)
    inner = depth + 1
    if origin in (typing.Annotated, typing.Required, typing.NotRequired, typing.ReadOnly):
        return schema_of(arguments[0], inner)
    if origin is typing.Literal:
        return {"enum": [_choice(one) for one in arguments]}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [schema_of(one, inner) for one in arguments]}
    if origin in (list, set, frozenset):
        return {"type": "array", "items": schema_of(arguments[0], inner)}
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return {"type": "array", "items": schema_of(arguments[0], inner)}
        count = len(arguments)
        return {
            "type": "array",
            "prefixItems": [schema_of(one, inner) for one in arguments],
            "minItems": count,
            "maxItems": count,
        }
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(arguments[1], inner)}
    if isinstance(expected, type) and issubclass(expected, enum.Enum):
        return {"enum": [_choice(member) for member in expected]}
    fields = _fields(expected)
    return {
        "type": "object",
        "properties": {name: schema_of(kind, inner) for name, (kind, _) in fields.items()},
        "required": [name for name, (_, needed) in fields.items() if needed],
        "additionalProperties": False,
    }


def _choice(value):
    """Return what a model chooses for a value of a `Literal` or a member of an enum."""
    plain = value.value if isinstance(value, enum.Enum) else value
    if plain is None or isinstance(plain, (str, int)) or (isinstance(plain, float) and math.isfinite(plain)):
        return plain
    raise TypeError(f"extract() cannot offer {value!r} as a choice, only texts, numbers, True, False and None")


def build(value, expected):
    """Return JSON data that fits the schema of a type as a value of it: dataclasses and enums are made."""
    origin, arguments = typing.get_origin(expected), typing.get_args(expected)
    if origin in (typing.Annotated, typing.Required, typing.NotRequired, typing.ReadOnly):
        return build(value, arguments[0])
    if origin is typing.Literal:
        return _chosen(value, arguments)
    if origin in (typing.Union, types.UnionType):
        return _first(value, arguments)
    if origin in (list, set, frozenset) and isinstance(value, list):
        return origin(build(one, arguments[0]) for one in value)
    if origin is tuple and isinstance(value, list):
        kinds = [arguments[0]] * len(value) if arguments[1:] == (Ellipsis,) else arguments
        return tuple(build(one, kind) for one, kind in zip(value, kinds, strict=True))
    if origin is dict and isinstance(value, dict):
        return {key: build(one, arguments[1]) for key, one in value.items()}
    if isinstance(expected, type) and issubclass(expected, enum.Enum):
        return expected(value)
    if expected is float and isinstance(value, int):
        return float(value)
    if expected is int and isinstance(value, float) and value.is_integer():
        return int(value)  # JSON Schema counts 3.0 among the integers
    if typing.is_typeddict(expected) or dataclasses.is_dataclass(expected):
        made = {name: build(value[name], kind) for name, (kind, _) in _fields(expected).items() if name in value}
        return made if typing.is_typeddict(expected) else expected(**made)
    return value


def _chosen(value, choices):
    """Return which of the choices a model's answer names: members of enums by their values, 3 also as 3.0."""
    equal = [one for one in choices if (one.value if isinstance(one, enum.Enum) else one) == value]
    alike = [one for one in equal if isinstance(one, bool) is isinstance(value, bool)]
    return next(iter(alike or equal), value)


def _first(value, kinds):
    """Return a value of the first type of a union that it is of; `None` and plain types are told by their own."""
    if isinstance(value, float) and value.is_integer() and int in kinds and float not in kinds:
        value = int(value)
    for kind in kinds:
        if kind in (None, type(None)):
            if value is None:
                return None
            continue
        plain = kind if isinstance(kind, type) and kind in _PLAIN else None
        if plain is not None and type(value) is not plain:
            continue
        try:
            return build(value, kind)
        except (TypeError, ValueError, KeyError):
            continue
    return value


def _fields(expected):
    """Return the fields of a `TypedDict` or dataclass: name to type and whether it is needed."""
    if typing.is_typeddict(expected):
        hints = typing.get_type_hints(expected)
        return {name: (kind, name in expected.__required_keys__) for name, kind in hints.items()}
    if isinstance(expected, type) and dataclasses.is_dataclass(expected):
        hints = typing.get_type_hints(expected)
        return {
            field.name: (
                hints[field.name],
                field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
            )
            for field in dataclasses.fields(expected)
            if field.init
        }
    raise TypeError(
        f"extract() cannot expect {expected!r}: use a TypedDict, a dataclass, list[...], Literal[...] or a plain type"
    )
