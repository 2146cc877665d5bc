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
        return {
            "type": "object",
            **_keys(schema_of(arguments[0], inner), expected),
            "additionalProperties": schema_of(arguments[1], inner),
        }
    if isinstance(expected, type) and issubclass(expected, enum.Enum):
        return {"enum": [_choice(member) for member in expected]}
    fields = _fields(expected)
    return {
        "type": "object",
        "properties": {name: schema_of(kind, inner) for name, (kind, _) in fields.items()},
        "required": [name for name, (_, needed) in fields.items() if needed],
        "additionalProperties": False,
    }


def _keys(schema, expected):
    """Return what the schema of a `dict` says of its keys; those of JSON are texts."""
    if schema in ({}, _PLAIN[str]):
        return {}
    if all(isinstance(one, str) for one in schema.get("enum", [None])):
        return {"propertyNames": schema}
    raise TypeError(f"extract() cannot expect {expected!r}: use dict[str, ...], the keys of JSON are texts")


def _choice(value):
    """Return what a model chooses for a value of a `Literal` or a member of an enum."""
    plain = value.value if isinstance(value, enum.Enum) else value
    if plain is None or isinstance(plain, (str, int)) or (isinstance(plain, float) and math.isfinite(plain)):
        return plain
    raise TypeError(f"extract() cannot offer {value!r} as a choice, only texts, numbers, True, False and None")


def build(value, expected):
    """Return JSON data as a value of a type: dataclasses and enums are made.

    The host has checked the whole against the schema; of a union, it cannot tell which type the data is of.

    Raises:
        ValueError: It is of another type.
    """
    origin, arguments = typing.get_origin(expected), typing.get_args(expected)
    if origin in (typing.Annotated, typing.Required, typing.NotRequired, typing.ReadOnly):
        return build(value, arguments[0])
    if origin is typing.Literal:
        return _chosen(value, arguments)
    if origin in (typing.Union, types.UnionType):
        return _first(value, arguments)
    if origin in (list, set, frozenset):
        return origin(build(one, arguments[0]) for one in _plain(value, list))
    if origin is tuple:
        items = _plain(value, list)
        kinds = [arguments[0]] * len(items) if arguments[1:] == (Ellipsis,) else arguments
        return tuple(build(one, kind) for one, kind in zip(items, kinds, strict=True))
    if origin is dict:
        return {build(key, arguments[0]): build(one, arguments[1]) for key, one in _plain(value, dict).items()}
    if isinstance(expected, type) and issubclass(expected, enum.Enum):
        return _chosen(value, tuple(expected))
    if typing.is_typeddict(expected) or dataclasses.is_dataclass(expected):
        return _made(value, expected)
    return _plain(value, expected)


def _chosen(value, choices):
    """Return which of the choices a model's answer names: members of enums by their values, 3 also as 3.0."""
    for one in choices:
        plain = one.value if isinstance(one, enum.Enum) else one
        if plain == value and isinstance(plain, bool) is isinstance(value, bool):
            return one
    raise ValueError("it is none of the choices")


def _first(value, kinds):
    """Return a value of the first type of a union that it is of; a number is of the type that it is written as."""
    is_told = type(value) in (int, float) and type(value) in kinds
    for kind in kinds:
        if is_told and kind in (int, float) and kind is not type(value):
            continue
        try:
            return build(value, kind)
        except (TypeError, ValueError, KeyError):
            continue
    raise ValueError("it is of none of the types")


def _made(value, expected):
    """Return an object as a `TypedDict` or dataclass that has these fields, and each that it needs."""
    fields = _fields(expected)
    needed = {name for name, (_, is_needed) in fields.items() if is_needed}
    if not needed <= _plain(value, dict).keys() <= fields.keys():
        raise ValueError("it has other fields")
    made = {name: build(value[name], kind) for name, (kind, _) in fields.items() if name in value}
    return made if typing.is_typeddict(expected) else expected(**made)


def _plain(value, expected):
    if expected is float and type(value) is int:
        return float(value)
    if expected is int and isinstance(value, float) and value.is_integer():
        return int(value)  # JSON Schema counts 3.0 among the integers
    if expected in (type(value), typing.Any, object) or (value is None and expected is None):
        return value
    raise ValueError("it is of another type")


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
