"""More hostile definitions, made here: each is the kind of thing that a server could send."""

from __future__ import annotations

from typing import Any

_STRING = {"type": "string"}


def attacks() -> dict[str, dict[str, Any]]:
    """Return tool definitions by the name of what they try."""
    made = {name: {"name": "t", **definition} for name, definition in _DEFINITIONS.items()}
    made |= {f"key_{key!r}": _with_keys(key) for key in _KEYS}
    made |= {f"tool_{name!r}": {"name": name, "inputSchema": {"type": "object"}} for name in _TOOL_NAMES}
    return made


def _with_keys(key: str) -> dict[str, Any]:
    """Use a key everywhere a key can stand, beside a type that it could be mistaken for."""
    inner = {"type": "object", "properties": {key: _STRING, "n": {"type": "integer"}}, "required": [key]}
    nested = {"type": "object", "properties": {key: inner, "o": {"type": ["string", "null"]}}}
    return {"name": "t", "inputSchema": nested, "outputSchema": nested}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _nested(levels: int, key: str, leaf: Any) -> Any:
    schema = leaf
    for _ in range(levels):
        schema = {key: [schema, schema]} if key in {"anyOf", "allOf", "oneOf"} else {key: schema}
    return schema


_KEYS = [
    *"list str dict int float bool print None True Any Literal TypedDict NotRequired Required TypeAlias".split(),  # noqa: SIM905
    *"match case type async await lambda self cls TResult T extra __init__ __class_getitem__ __debug__".split(),  # noqa: SIM905
    *(
        "ﬁ",
        "fi",
        "\u212f",
        "\u0435",
        "a\u200bb",
        "a\u202eb",
        "\u0000",
        "\ud800",
        "a\nb",
        "a b",
        "'",
        '"',
        "\\",
        "#",
        "{x}",
    ),
    *("a" * 500, "_", "__", "1", "-", ".", "ª", "x.y", "x-y", "x_y", "İ", "\u017f", "Ⅷ", "constructor", "__proto__"),
]
_TOOL_NAMES = [
    *"asyncio tools class None __init__ __getattr__ __all__ __path__ print ToolError list _ async".split(),  # noqa: SIM905
    *("", " ", ".", "a.b", "ﬁnd", "\ud800", "rm -rf /", "x" * 5_000, "\u202egnp", "1", "__import__('os')", "e\u0301"),
]
_DEFINITIONS: dict[str, dict[str, Any]] = {
    "huge_enum": {"inputSchema": _object(a={"enum": [f"v{n}" for n in range(50_000)]})},
    "long_enum_values": {"inputSchema": _object(a={"enum": ["v" * 10_000, "w" * 10_000]})},
    "enum_of_all_kinds": {
        "inputSchema": _object(a={"enum": [1, 1.0, True, "1", None, [1], {"a": 1}, 1e400, -0.0, 0, False, 2**70]})
    },
    "empty_enum": {"inputSchema": _object(a={"enum": []}, b={"type": "string", "enum": []})},
    "enum_against_type": {"inputSchema": _object(a={"type": "integer", "enum": ["a", "b"]})},
    "enum_not_a_list": {"inputSchema": _object(a={"enum": "abc"}, b={"enum": {"a": 1}}, c={"enum": None})},
    "enum_twice": {"inputSchema": _object(a={"enum": ["a", "a", "a"]})},
    "const_object": {"inputSchema": _object(a={"const": {"x": [1]}}, b={"const": []}, c={"const": None})},
    "ten_thousand_properties": {"inputSchema": _object(**{f"p{n}": _STRING for n in range(10_000)})},
    "ten_thousand_fields": {"outputSchema": _object(**{f"p{n}": {"type": "integer"} for n in range(10_000)})},
    "required_ten_thousand": {"inputSchema": {"type": "object", "required": [f"p{n}" for n in range(10_000)]}},
    "deep_all_of": {"inputSchema": _object(a=_nested(2_000, "not", {}), b=_nested(16, "allOf", _STRING))},
    "deep_any_of": {"inputSchema": _object(a=_nested(16, "anyOf", _STRING))},
    "deep_items": {"outputSchema": _nested(5_000, "items", _STRING)},
    "any_of_times_all_of": {
        "inputSchema": _object(
            a={"allOf": [{"anyOf": [_object(**{f"k{n}{m}": _STRING}) for m in range(9)]} for n in range(9)]}
        )
    },
    "product_of_references": {
        "inputSchema": {
            **_object(a={"$ref": "#/$defs/d0"}),
            "$defs": {
                f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 4, "properties": {f"k{n}": {"$ref": "#/$defs/d0"}}}
                for n in range(30)
            },
        }
    },
    "cycle_through_all_of": {
        "inputSchema": {
            **_object(a={"$ref": "#/$defs/a"}),
            "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}},
        }
    },
    "cycle_through_not_and_if": {
        "inputSchema": {
            **_object(a={"$ref": "#/$defs/a"}),
            "$defs": {
                "a": {
                    "not": {"$ref": "#/$defs/a"},
                    "if": {"$ref": "#/$defs/a"},
                    "then": {"$ref": "#/$defs/a"},
                    "else": {"properties": {"x": {"$ref": "#/$defs/a"}}},
                }
            },
        }
    },
    "root_reference_to_itself": {
        "inputSchema": {"$ref": "#"},
        "outputSchema": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
    },
    "anchors_and_bases": {
        "inputSchema": {
            "$id": "https://x.example/base/",
            "type": "object",
            "properties": {"a": {"$ref": "item#here"}, "b": {"$ref": "#top"}, "c": {"$dynamicRef": "#node"}},
            "$defs": {
                "i": {"$id": "item", "$defs": {"h": {"$anchor": "here", "type": "integer"}}},
                "t": {"$anchor": "top", "type": "boolean"},
                "n": {"$dynamicAnchor": "node", "type": "number"},
            },
        }
    },
    "pointer_escapes": {
        "inputSchema": {
            **_object(a={"$ref": "#/$defs/x~1y"}, b={"$ref": "#/$defs/p%25q"}, c={"$ref": "#/$defs/t~0u"}),
            "$defs": {"x/y": {"type": "integer"}, "p%q": {"type": "boolean"}, "t~u": {"type": "number"}},
        }
    },
    "references_to_odd_places": {
        "inputSchema": _object(
            a={"type": "integer"},
            b={"$ref": "#/properties/a"},
            c={"$ref": "#/properties/a/type"},
            d={"$ref": "#/required/0"},
            e={"$ref": "#/properties"},
            f={"$ref": "not a uri at all \n"},
            g={"$ref": "//["},
            h={"$ref": 3},
            i={"$ref": None, "type": "string"},
        )
    },
    "booleans_everywhere": {
        "inputSchema": {
            **_object(a=True, b=False, c={"items": False}, d={"anyOf": [True, False]}, e={"allOf": [False]}),
            "additionalProperties": True,
            "$defs": True,
        },
        "outputSchema": True,
    },
    "output_false": {"outputSchema": False},
    "output_scalar": {"outputSchema": {"type": "integer"}},
    "output_list": {"outputSchema": {"type": "array", "items": _object(a=_STRING)}},
    "odd_numbers": {
        "inputSchema": _object(
            a={"type": "number", "minimum": -0.0, "maximum": 1e308, "default": float("inf")},
            b={"type": "number", "minimum": float("nan"), "default": float("nan")},
            c={"type": "integer", "default": 10**400, "maximum": 10**400},
            d={"type": "number", "default": -0.0, "multipleOf": 1e-9},
            e={"type": "integer", "exclusiveMinimum": True, "minimum": 3},
            f={"type": "integer", "minimum": "3", "maximum": None, "maxLength": []},
            g={"type": "array", "default": [float("nan"), 10**400]},
        )
    },
    "defaults_that_do_not_fit": {
        "inputSchema": _object(
            a={"type": "integer", "default": "x"},
            b={"type": "string", "default": {"__class__": 1}},
            c={"type": "boolean", "default": 1},
            d={"enum": ["a"], "default": "b"},
            e={"type": "array", "items": {"type": "integer"}, "default": ["a"]},
            f={"type": "string", "default": "'); import os; ('"},
            g={"type": "string", "default": "\ud800"},
        )
    },
    "types_twice_and_unknown": {
        "inputSchema": _object(
            a={"type": ["string", "string", "any", "file"]}, b={"type": "date"}, c={"type": []}, d={"type": {"a": 1}}
        )
    },
    "required_of_nothing": {
        "inputSchema": {**_object(a=_STRING), "required": ["b", "b", 3, None, "", "a", ["c"], "\ud800"]}
    },
    "required_as_in_draft_3": {"inputSchema": _object(a={"type": "string", "required": True})},
    "empty_items": {
        "inputSchema": _object(a={"type": "array", "items": []}, b={"items": [], "additionalItems": False})
    },
    "nullable_of_openapi": {
        "inputSchema": _object(
            a={"type": "string", "nullable": True},
            b={"allOf": [_object(x=_STRING)], "nullable": True},
            c={"$ref": "#/components/schemas/X", "nullable": True},
        )
    },
    "descriptions_that_are_no_text": {
        "description": "D",
        "title": "T",
        "inputSchema": _object(
            a={"type": "string", "description": ["x"]},
            b={"type": "string", "description": {"x": 1}, "title": 4},
            c={"type": "string", "format": ["date"], "pattern": {"a": 1}},
        ),
    },
    "control_characters": {
        "description": "a\x00b\x1b[31mred\x07\u2028line\u0085next\u202eleft\ud800\ufeff" + "\n" * 500 + "end",
        "inputSchema": _object(
            a={"type": "string", "description": "x\ny\r\x0cz\u2029) -> int: ...\nimport os  # \x1b"}
        ),
    },
    "sections_without_end": {
        "description": "\n".join(["Args:", " a: b"] * 1_000 + [" " * n + "Args:" for n in range(60)]),
        "inputSchema": _object(a=_STRING),
    },
    "sections_that_lie": {
        "description": 'Args:\n    a (str): x\n    b"""): ...\n    a: """ + evil()\n    c: y',
        "inputSchema": _object(a=_STRING, b=_STRING, c=_STRING),
    },
    "properties_that_are_no_object": {"inputSchema": {"type": "object", "properties": ["a"]}},
    "properties_of_no_schemas": {"inputSchema": _object(a=1, b="string", c=None, d=["string"], e=1.5)},
    "patterns_that_do_not_end": {
        "inputSchema": _object(a={"type": "string", "pattern": "(a+)+$"}, b={"patternProperties": {"(": _STRING}})
    },
    "combinators_that_are_no_lists": {
        "inputSchema": _object(a={"anyOf": {"type": "string"}}, b={"oneOf": "x"}, c={"allOf": None}, d={"anyOf": []})
    },
    "names_of_classes": {
        "inputSchema": _object(
            a={**_object(T=_STRING, TA=_object(TA=_object(a=_STRING))), "title": "T"}, TA=_object(x=_STRING)
        ),
        "outputSchema": _object(t=_object(TResult=_STRING), TResult=_object(y=_STRING)),
    },
    "wrapper_that_is_none": {
        "outputSchema": {**_object(result={"$ref": "#/properties/result"}), "required": ["result"]}
    },
}
