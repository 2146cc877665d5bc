"""Hostile definitions: nothing of them becomes code, opens anything or reaches a neighbour."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.codegen.fuzz import changed, faults
from codegen import Stub, assign_identifiers, render_module
from codegen.plain_text import paragraph
from codegen.schemas.keywords import properties_of
from codegen.stubs.generate import build_stub
from codegen.stubs.source_check import check_stub_source
from tests.codegen.definitions import HOSTILE, hostile_definitions, tool_spec
from tests.codegen.further_attacks import attacks
from tests.codegen.type_checkers import mypy_problems, ty_problems

CASES = Path(__file__).parent / "cases"
NASTY = st.sampled_from(
    [
        '"""',
        "'''",
        "\\",
        "\n",
        "\r",
        "\x0c",
        "\u2028",
        "\x85",
        "\0",
        "\ud800",
        "\u202e",
        "\u200b",
        "{{ x }}",
        "{% x %}",
        "#",
        "__import__('os').system('id')",
        "a: int = 1",
        "x]\nimport os\nclass A(",
        "*, **k): pass\n@f\n",
        "$ref",
        "None",
        "int",
        "self",
        "__class__",
    ]
)
# Keys whose schema is false, and one that cannot be sent.
_IMPOSSIBLE = {"b", "\ud800"}
WORDS = NASTY | st.text(max_size=6)
KEYWORDS = st.sampled_from(
    """
    type properties items prefixItems additionalProperties patternProperties anyOf oneOf allOf not if then else enum
    const default required description title format pattern minimum maxLength $ref $defs definitions $id $anchor
    $dynamicRef nullable x-python-import customTypePath customBasePath discriminator
    """.split()  # noqa: SIM905
)
TYPES = st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null", "any"])
REFERENCES = st.sampled_from(
    ["#", "#/$defs/a", "#/properties/a", "file:///etc/passwd", "https://x.example/y", "#a", "a"]
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | TYPES | REFERENCES
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(KEYWORDS | WORDS | st.sampled_from("ab"), inner, max_size=6)
    ),
    max_leaves=40,
)
SCHEMAS = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(WORDS, VALUES, max_size=5)},
    optional={
        "$defs": st.dictionaries(st.sampled_from("ab"), VALUES),
        "required": VALUES,
        "allOf": VALUES,
        "oneOf": VALUES,
        "additionalProperties": VALUES,
        "if": VALUES,
        "then": VALUES,
    },
)


def stub_of(definition: dict[str, Any]) -> Stub:
    name = definition["name"]
    return build_stub(tool_spec(definition), namespace="n", function=assign_identifiers([name])[name])


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SCHEMAS | VALUES, SCHEMAS | VALUES, WORDS, WORDS)
def test_any_definition_gives_a_stub_and_nothing_else(
    input_schema: Any, output_schema: Any, name: str, description: str
) -> None:
    made = stub_of(
        {"name": name, "description": description, "inputSchema": input_schema, "outputSchema": output_schema}
    )
    module = render_module("n", [made])
    check_stub_source(module)
    compile(module, "stub", "exec")
    names = [one.name for one in made.parameters]
    assert len(set(names)) == len(names)
    assert len({one.key for one in made.parameters}) == len(names)
    assert not any(reason.startswith("the type generator") for reason in made.degradations)


def test_a_definition_changed_anywhere_gives_a_stub_and_nothing_else() -> None:
    random = Random(11)  # noqa: S311  # nothing secret
    cases = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(CASES.glob("*.json"))]
    for _ in range(400):
        definition = changed(random, {"server": "s", **random.choice(cases)})
        assert faults(definition) == [], definition


def test_generation_opens_no_file_and_no_socket() -> None:
    program = f"""
import json, pathlib, sys
from codegen.stubs.generate import build_stub
from tests.codegen.definitions import hostile_definitions, tool_spec
specs = [tool_spec(case.values[0]) for case in hostile_definitions()]
build_stub(specs[0], namespace="n", function="f")
touched = []
watched = ("open", "socket.", "subprocess.", "os.system", "os.exec", "urllib.", "exec", "import", "shutil.", "ctypes.")
def watch(event, arguments):
    if event.startswith(watched):
        touched.append((event, repr(arguments)[:200]))
sys.addaudithook(watch)
for spec in specs:
    build_stub(spec, namespace="n", function="f")
mark = len(touched)
print(json.dumps([one for one in touched if not {_is_own_work!r} in one[1]]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    touched = [event for event, arguments in json.loads(done.stdout) if not _is_import(event, arguments)]
    assert touched == []


_is_own_work = "datamodel_code_generator"


def _is_import(event: str, arguments: str) -> bool:
    """Tell whether an event is Python loading a module of an installed package or the standard library."""
    return event == "import" or ".pyc" in arguments or "site-packages" in arguments or "code object" in arguments


@settings(deadline=None)
@given(st.text(alphabet="\"\\\\'a \n{}#", max_size=12), st.text(alphabet='"\\\\a', max_size=8))
def test_a_docstring_says_what_the_description_says(description: str, note: str) -> None:
    schema = {"type": "object", "properties": {"zz": {"type": "string", "description": note + "x"}}}
    made = stub_of({"name": "t", "description": description, "inputSchema": schema})
    function = ast.parse(made.source).body[-1]
    assert isinstance(function, ast.AsyncFunctionDef)
    said = ast.get_docstring(function) or ""
    assert paragraph(description, 2_000) in said
    assert made.degradations == ()


def test_a_five_megabyte_description_is_cut() -> None:
    made = stub_of({"name": "t", "description": "A" * 5_000_000, "inputSchema": {"type": "object"}})
    assert len(made.source) < 4_096


def test_schemas_nested_without_end_give_a_stub() -> None:
    deep: Any = {"type": "string"}
    for _ in range(20_000):
        deep = {"type": "object", "properties": {"a": deep}}
    made = stub_of({"name": "t", "inputSchema": deep, "outputSchema": deep})
    assert made.degradations
    assert [one.name for one in made.parameters] == ["a"] or made.accepts_extra


def test_references_that_double_do_not_grow() -> None:
    definitions: dict[str, Any] = {"l0": {"type": "string"}}
    for n in range(1, 40):
        inner = {"$ref": f"#/$defs/l{n - 1}"}
        definitions[f"l{n}"] = {
            "anyOf": [{"type": "array", "items": inner}, {"type": "object", "additionalProperties": inner}]
        }
    made = stub_of(
        {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": {"$ref": "#/$defs/l39", "$defs": definitions}}
    )
    assert len(made.source) < 20_000


def test_a_reference_to_itself_through_others_ends() -> None:
    schema = {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}, {"type": "string"}]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}},
    }
    made = stub_of({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema})
    check_stub_source(made.source)


def test_a_tool_leaves_its_neighbours_as_they_are() -> None:
    good = {
        "name": "add",
        "description": "Adds.",
        "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}},
    }
    alone = stub_of(good).source
    attacks: list[Any] = [case.values[0] for case in hostile_definitions()]
    names = assign_identifiers([*(attack["name"] for attack in attacks), "add"])
    assert names["add"] == "add"
    for attack in attacks:
        other = build_stub(tool_spec(attack), namespace="n", function=names[attack["name"]] + "_")
        together = render_module("n", [stub_of(good), other])
        assert alone in together


def test_all_attacks_together_pass_both_type_checkers() -> None:
    modules = {}
    for index, case in enumerate(hostile_definitions()):
        definition: Any = case.values[0]
        modules[f"attack_{index}.pyi"] = render_module("n", [stub_of(definition)])
    assert ty_problems(modules) == ""
    assert mypy_problems(modules) == ""


def test_further_attacks_give_small_stubs_that_pass_both_type_checkers() -> None:
    modules = {}
    for index, (name, definition) in enumerate(attacks().items()):
        made = stub_of(definition)
        module = modules[f"attack_{index}.pyi"] = render_module("n", [made])
        check_stub_source(module)
        assert len(module) < 20_000, name
        keys = dict.fromkeys(one.key for one in made.parameters)
        assert len({one.name for one in made.parameters}) == len(keys) == len(made.parameters), name
        assert made.accepts_extra or {*properties_of(definition["inputSchema"])} <= {*keys, *_IMPOSSIBLE}, name
    assert ty_problems(modules) == ""
    assert mypy_problems(modules) == ""


def test_references_are_followed_by_every_way_of_naming_a_place() -> None:
    for name in ("anchors_and_bases", "pointer_escapes"):
        source = stub_of(attacks()[name]).source
        assert source == "async def t(*, a: int = ..., b: bool = ..., c: float = ...) -> Any: ...\n", name


def test_one_of_each_of_several_alternatives_is_told() -> None:
    sides = [[{"properties": {f"{side}{n}": {"type": "string"}}} for n in range(2)] for side in "xy"]
    key = {"type": "object", "allOf": [{"anyOf": side} for side in sides]}
    made = stub_of({"name": "t", "inputSchema": {"type": "object", "properties": {"a": key}}})
    assert made.source.count(" x1: str\n y0: str\n") == 1
    assert made.source.count("(TypedDict, total=False)") == 4


def test_the_marker_of_the_attacks_is_text_everywhere() -> None:
    assert any("__HOSTILE_PWNED__" in path.read_text(encoding="utf-8") for path in HOSTILE.glob("*.json"))
    for case in hostile_definitions():
        definition: Any = case.values[0]
        exec_free = stub_of(definition).source
        check_stub_source(exec_free)


def test_real_tools_give_stubs_that_pass_both_type_checkers(corpus: list[dict[str, Any]]) -> None:
    modules = {f"tool_{index}.pyi": render_module("n", [stub_of(one)]) for index, one in enumerate(corpus[::25])}
    for text in modules.values():
        check_stub_source(text)
    assert ty_problems(modules) == ""
    assert mypy_problems(modules) == ""
