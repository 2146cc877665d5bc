from __future__ import annotations

import ast
import unicodedata
from typing import Any

import pytest

from codegen import Stub, assign_identifiers, generate_stub, render_module
from codegen.stubs.generate import build_stub
from codegen.stubs.source_check import check_stub_source
from tests.codegen.definitions import hostile_definitions, tool_spec

CLOSED = {"additionalProperties": False}


def stub(properties: dict[str, Any] | None = None, **definition: Any) -> Stub:
    schema = {"type": "object", "properties": properties or {}, **definition.pop("schema", {})}
    spec = tool_spec({"name": "look", "inputSchema": schema, **definition})
    return build_stub(spec, namespace="files", function="look")


def signature(of: Stub) -> str:
    return ast.unparse(ast.parse(of.source).body[-1]).splitlines()[0]


def result(schema: Any) -> Stub:
    return stub(outputSchema=schema)


def test_required_parameters_come_first_and_defaults_are_shown() -> None:
    made = stub(
        {
            "max_count": {"type": "integer", "default": 10},
            "repo_path": {"type": "string"},
            "since": {"type": "string"},
        },
        schema={"required": ["repo_path"]},
    )
    assert signature(made) == ("async def look(*, repo_path: str, max_count: int=10, since: str=...) -> Any:")


@pytest.mark.parametrize("keyword", ["dependencies", "dependentSchemas"])
def test_a_property_that_another_one_brings_along_may_be_given(keyword: str) -> None:
    made = stub(
        {"card": {"type": "string"}},
        schema={keyword: {"card": {"properties": {"cvv": {"type": "string"}}}, "name": ["card"]}},
    )
    assert signature(made) == "async def look(*, card: str=..., cvv: str=...) -> Any:"


def test_what_every_one_of_several_conditions_brings_along_may_be_given() -> None:
    def condition(number: int) -> dict[str, Any]:
        then = {"properties": {f"then{number}": {"type": "string"}}, "required": [f"then{number}"]}
        return {"if": {"required": ["kind"]}, "then": then, "else": {"$ref": f"#/$defs/else{number}"}}

    others = {f"else{number}": {"properties": {f"else{number}": {"type": "integer"}}} for number in range(2)}
    conditions = {"allOf": [condition(0), condition(1)]}
    made = stub({"kind": {"type": "string"}}, schema={**conditions, "$defs": others})
    assert {one.key: one.required for one in made.parameters} == dict.fromkeys(
        ["kind", "then0", "else0", "then1", "else1"], False
    )
    nested = {"type": "object", "properties": {"kind": {"type": "string"}}, **conditions}
    inside = stub({"what": nested}, schema={"$defs": others}).source
    assert all(f" {field}\n" in inside for field in ("then0: str", "else0: int", "then1: str", "else1: int"))


def test_what_several_schemas_make_one_thing_depend_on_may_be_given() -> None:
    parts = [{"dependentSchemas": {"card": {"properties": {key: {"type": "string"}}}}} for key in ("cvv", "owner")]
    made = stub({"card": {"type": "string"}}, schema={"allOf": parts})
    assert [one.key for one in made.parameters] == ["card", "cvv", "owner"]


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_alternatives_too_many_to_be_paired_are_all_there(keyword: str) -> None:
    groups = [
        {keyword: [{"properties": {f"{group}{number}": {"type": "string"}}} for number in range(6)]} for group in "abc"
    ]
    keys = {f"{group}{number}" for group in "abc" for number in range(6)}
    assert {one.key for one in stub(schema={"allOf": groups}).parameters} == keys
    inside = stub({"what": {"type": "object", "allOf": groups}}).source
    assert all(f" {key}: str" in inside for key in keys)


def test_alternatives_few_enough_to_be_paired_keep_to_their_pairs() -> None:
    groups: list[Any] = [{"anyOf": [{"properties": {f"{group}{number}": {}}} for number in range(2)]} for group in "ab"]
    assert stub({"what": {"type": "object", "allOf": groups}}).source.count("class ") == 4


def test_keys_of_a_pattern_may_be_given_beside_the_only_others() -> None:
    made = stub({"name": {"type": "string"}}, schema={"patternProperties": {"^x-": {"type": "integer"}}, **CLOSED})
    assert signature(made) == "async def look(*, name: str=..., **extra: int) -> Any:"
    assert not stub({"name": {"type": "string"}}, schema=CLOSED).accepts_extra


def test_keys_that_python_reads_as_one_name_are_told_apart() -> None:
    keys = ["\u309f", "\u3088\u308a", "\uff46\uff4f\uff4f", "foo", "\u00c5", "\u212b"]
    made = stub({key: {"type": "string"} for key in keys})
    names = [unicodedata.normalize("NFKC", one.name) for one in made.parameters]
    assert sorted(one.key for one in made.parameters) == sorted(keys)
    assert names == [one.name for one in made.parameters]
    assert len(set(names)) == len(keys)
    assert made.degradations == ()


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"type": "string"}, "str | None"),
        ({"enum": ["x", "y"]}, "Literal['x', 'y'] | None"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "str | int | None"),
        ({"allOf": [{"$ref": "#/$defs/tag"}]}, "str | None"),
        ({"allOf": [{"$ref": "#/$defs/tag"}, {"minLength": 1}]}, "str | None"),
        ({"$ref": "#/$defs/tag"}, "str | None"),
        ({}, "Any"),
    ],
)
def test_a_schema_of_any_form_may_be_nullable(schema: Any, written: str) -> None:
    made = stub({"a": {**schema, "nullable": True}}, schema={"$defs": {"tag": {"type": "string"}}})
    assert signature(made) == f"async def look(*, a: {written}=...) -> Any:"


def test_a_number_larger_than_64_bits_is_no_literal() -> None:
    made = stub({"a": {"enum": [2**63 - 1]}, "b": {"enum": [2**63]}})
    assert signature(made) == f"async def look(*, a: Literal[{2**63 - 1}]=..., b: int=...) -> Any:"


def test_of_joined_types_the_narrower_stands() -> None:
    whole, any_number = {"type": "integer"}, {"type": "number"}
    made = stub({"a": {"allOf": [any_number, whole]}, "b": {"allOf": [whole, any_number]}})
    assert signature(made) == "async def look(*, a: int=..., b: int=...) -> Any:"


@pytest.mark.parametrize("never", [False, {"not": {}}, {"not": True}])
def test_a_property_that_no_value_fits_is_left_out(never: Any) -> None:
    assert signature(stub({"a": never, "b": {"not": {"type": "null"}}})) == "async def look(*, b: Any=...) -> Any:"


def test_null_alone_is_none() -> None:
    assert signature(stub({"a": {"const": None}, "b": {"enum": [None]}})) == (
        "async def look(*, a: None=..., b: None=...) -> Any:"
    )


def test_nullable_is_not_optional() -> None:
    made = stub({"a": {"type": ["string", "null"]}, "b": {"type": "string"}}, schema={"required": ["a"]})
    assert signature(made) == "async def look(*, a: str | None, b: str=...) -> Any:"


def test_keys_that_are_not_names_go_out_as_they_came_in() -> None:
    keys = ["from", "If-Match", "$filter", "filter[x]", "", "DateCreated<", "self", "__proto__", "größe"]
    made = stub({key: {"type": "string"} for key in keys})
    assert [one.key for one in made.parameters] == keys
    assert len({one.name for one in made.parameters}) == len(keys)
    assert [row[1] for row in made.manifest_entry()["parameters"]] == keys


def test_other_keys_are_accepted_where_the_schema_says_so() -> None:
    assert stub(schema={"additionalProperties": True}).accepts_extra
    assert stub(schema={"additionalProperties": {"type": "string"}}).accepts_extra
    assert not stub(schema={"additionalProperties": False}).accepts_extra
    assert not stub({"a": {"type": "string"}}).accepts_extra


def test_a_parameter_may_have_the_name_of_the_others() -> None:
    made = stub({"extra": {"type": "integer"}}, schema={"additionalProperties": True})
    assert signature(made) == "async def look(*, extra: int=..., **extra_: Any) -> Any:"


def test_an_object_result_is_a_typed_dict() -> None:
    made = result(
        {
            "type": "object",
            "properties": {
                "id": {"type": "integer"},
                "kind": {"enum": ["a", "b", None]},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["id"],
        }
    )
    assert made.source.startswith(
        "class LookResult(TypedDict, total=False):\n"
        " id: Required[int]\n"
        " kind: Literal['a','b',None]\n"
        " tags: list[str]\n"
    )
    assert made.types == ("LookResult",)


def test_the_wrapper_of_python_servers_is_taken_off() -> None:
    made = result(
        {
            "type": "object",
            "properties": {"result": {"type": "array", "items": {"type": "string"}}},
            "required": ["result"],
        }
    )
    assert made.unwraps_result
    assert signature(made).endswith("-> list[str]:")


def test_a_result_object_with_one_key_of_its_own_stays() -> None:
    inner = {"type": "object", "properties": {"a": {"type": "string"}}}
    made = result({"type": "object", "properties": {"result": inner}, "required": ["result"]})
    assert not made.unwraps_result


def test_a_root_without_type_that_refers_to_itself_takes_every_other_kind_there() -> None:
    bare = {"properties": {"foo": {"$ref": "#"}}, "additionalProperties": False}
    assert "foo: LookFoo | str | float | bool | list[Any] | None" in result(bare).source
    assert "foo: LookFoo\n" in result({"type": "object", **bare}).source


def test_recursive_references_become_recursive_types() -> None:
    made = result(
        {
            "$ref": "#/$defs/Node",
            "$defs": {
                "Node": {
                    "type": "object",
                    "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
                }
            },
        }
    )
    assert "class LookNode(TypedDict, total=False):\n children: list[LookNode]" in made.source


def test_an_object_with_keys_that_are_not_names_may_hold_a_list_of_itself() -> None:
    schema = {"type": "object", "properties": {"sub-items": {"type": "array", "items": {"$ref": "#"}}}}
    module: dict[str, Any] = {}
    exec(render_module("files", [result(schema)]), module)  # noqa: S102  # as whoever imports it
    assert module["LookSubItem"].__annotations__.keys() == {"sub-items"}


def test_a_remote_reference_is_any_with_a_reason() -> None:
    made = stub({"a": {"$ref": "https://example.com/schema.json"}})
    assert signature(made) == "async def look(*, a: Any=...) -> Any:"
    assert made.degradations == (
        "look.a: $ref 'https://example.com/schema.json' is not in this schema and is never fetched",
    )


@pytest.mark.parametrize("schema", [None, [], "object", 3, False, {"type": "string"}, {"type": ["array"]}])
def test_an_input_schema_that_is_not_of_an_object_leaves_the_tool_usable(schema: Any) -> None:
    made = build_stub(tool_spec({"name": "look", "inputSchema": schema}), namespace="n", function="look")
    assert signature(made) == "async def look(**extra: Any) -> Any:"
    assert made.accepts_extra
    assert made.degradations


@pytest.mark.parametrize(
    "text", ['Says "hi"', '"', 'In """three"""', '""""', "C:\\dir\\", 'A \\"', "One.\n\n  Two", "é \N{SNOWMAN}"]
)
def test_a_description_is_read_back_from_the_docstring_as_it_is(text: str) -> None:
    function = ast.parse(stub(description=text).source).body[-1]
    assert isinstance(function, ast.AsyncFunctionDef)
    assert ast.get_docstring(function) == text.replace("\n  ", "\n")


def test_annotations_are_one_word() -> None:
    assert "read-only" in stub(annotations={"readOnlyHint": True}).source
    assert "destructive" in stub(annotations={"destructiveHint": True}).source
    assert "destructive" not in stub(annotations={"destructiveHint": "yes"}).source


@pytest.mark.parametrize("definition", hostile_definitions())
def test_hostile_definitions_give_stubs_and_nothing_else(definition: dict[str, Any]) -> None:
    name = definition["name"]
    made = build_stub(tool_spec(definition), namespace="hostile", function=assign_identifiers([name])[name])
    module = render_module("hostile", [made])
    check_stub_source(module)
    assert module.isprintable() or all(one.isprintable() or one == "\n" for one in module)
    assert len(module) <= 65_536


def test_tools_that_share_class_names_keep_their_own_types() -> None:
    output = {"type": "object", "properties": {"a-b": {"type": "integer"}, "c": {"type": "string"}}}
    snake = generate_stub(tool_spec({"name": "read_file", "outputSchema": output}), namespace="n", function="read_file")
    camel = generate_stub(
        tool_spec({"name": "readFile", "outputSchema": {**output, "properties": {"d": {"type": "integer"}}}}),
        namespace="n",
        function="readFile",
    )
    module = render_module("n", [snake, camel])
    check_stub_source(module)
    compile(module, "stubs", "exec")
    assert "ReadFileResult2 = TypedDict('ReadFileResult2', {" in module
    assert "-> ReadFileResult2:" in module


def test_the_same_specification_gives_the_same_text() -> None:
    definition = {"name": "look", "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}
    first, second = (build_stub(tool_spec(definition), namespace="n", function="look") for _ in range(2))
    assert first == second


NODE = {"type": "object", "properties": {"name": {"type": "string"}}}


@pytest.mark.parametrize(
    "again",
    [
        {"$ref": "#/$defs/Node", "type": "object"},
        {"allOf": [{"$ref": "#/$defs/Node"}], "description": "again"},
        {"allOf": [{"$ref": "#/$defs/Node"}, {"required": ["name"]}]},
        {"allOf": [{"$ref": "#/$defs/Node"}, {"properties": {"more": {"type": "integer"}}}]},
        {"$ref": "#/$defs/Node", "properties": {"more": {"type": "integer"}}},
        {"type": "object", "anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
    ],
)
def test_recursion_is_not_unrolled(again: dict[str, Any]) -> None:
    node = {**NODE, "properties": {**NODE["properties"], "next": again}}  # type: ignore[dict-item]
    made = result({"$ref": "#/$defs/Node", "$defs": {"Node": node}})
    assert len(made.types) <= 2
    assert made.degradations == ()


_INTEGER, _TEXT = {"type": "integer"}, {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "body"),
    [
        (
            {"propertyNames": {"enum": ["en", "de"]}, "additionalProperties": _TEXT},
            "(TypedDict, total=False): en: str de: str",
        ),
        (
            {"propertyNames": {"$ref": "#/$defs/k"}, "additionalProperties": _INTEGER},
            "(TypedDict, total=False): en: int",
        ),
        (
            {"propertyNames": {"enum": ["en"]}, "required": ["en"], "additionalProperties": _TEXT},
            "(TypedDict): en: str",
        ),
        ({"propertyNames": {"enum": ["en"]}}, "(TypedDict, total=False): en: Any"),
        (
            {"properties": {"n": _INTEGER}, "required": ["en"], "additionalProperties": _TEXT},
            "(TypedDict): n: NotRequired[int] en: str # other keys: str",
        ),
        (
            {"required": ["en"], "patternProperties": {"^e": _INTEGER}, "additionalProperties": _TEXT},
            "(TypedDict): en: int | str # other keys: int | str",
        ),
    ],
)
def test_a_key_named_beside_the_properties_has_the_type_of_other_keys(schema: Any, body: str) -> None:
    made = stub({"a": {"type": "object", **schema}}, schema={"$defs": {"k": {"enum": ["en"]}}})
    assert f"class LookA{body}" in " ".join(made.source.split())


def test_arguments_that_the_schema_lists_by_name_are_the_only_ones() -> None:
    made = stub(schema={"propertyNames": {"enum": ["en", "de"]}, "additionalProperties": _TEXT})
    assert signature(made) == "async def look(*, en: str=..., de: str=...) -> Any:"
    assert not made.accepts_extra


@pytest.mark.parametrize(
    ("others", "extra"),
    [
        (({"additionalProperties": False}, {"additionalProperties": _INTEGER}), ", **extra: int"),
        (({}, {"patternProperties": {"^x": _INTEGER}, "additionalProperties": False}), ", **extra: int"),
        (({"additionalProperties": _TEXT}, {"additionalProperties": _INTEGER}), ", **extra: str | int"),
        (({"additionalProperties": _TEXT}, {"additionalProperties": True}), ", **extra: Any"),
        (({"additionalProperties": False}, {"additionalProperties": False}), ""),
        (({}, {"additionalProperties": False}), ""),
    ],
)
def test_other_parameters_are_those_of_any_branch(others: Any, extra: str) -> None:
    branches = [{"properties": {key: _TEXT}, **said} for key, said in zip("ab", others, strict=True)]
    made = stub(schema={"anyOf": branches})
    assert signature(made) == f"async def look(*, a: str=..., b: str=...{extra}) -> Any:"


def _form(op: str, *needed: str) -> dict[str, Any]:
    return {"properties": {"op": {"const": op}, **dict.fromkeys(needed, _TEXT)}, "required": ["op", *needed]}


@pytest.mark.parametrize(
    ("forms", "said"),
    [
        ([{"required": ["a"]}, {"required": ["b"]}], "Needs a or b."),
        ([{"required": ["a", "c"]}, {"required": ["b", "c"]}], "Needs a or b."),
        ([{"required": ["a", "b"]}, {"required": ["c"]}], "Needs a and b or c."),
        ([{"required": ["a"]}, {"required": ["a", "b"]}], None),
        ([{"required": ["a"]}, {}], None),
        (
            [_form("get"), _form("set", "key", "value"), _form("del", "key")],
            "Needs key and value if op is 'set', key if op is 'del'.",
        ),
        ([_form("start"), _form("stop")], None),
        ([_form('"""\n', "a"), _form("b", "b")], "Needs a if op is '\"\"\"\\n', b if op is 'b'."),
    ],
)
def test_a_stub_says_what_each_form_of_a_call_needs(forms: Any, said: str | None) -> None:
    function = ast.parse(stub(dict.fromkeys("abc", _TEXT), schema={"oneOf": forms}).source).body[-1]
    assert isinstance(function, ast.AsyncFunctionDef)
    assert ast.get_docstring(function) == said
