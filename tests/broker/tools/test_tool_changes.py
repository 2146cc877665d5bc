from __future__ import annotations

import pytest

from broker.tools.tool_changes import what_changed
from codegen import ToolAnnotations, ToolSpec


def spec(properties=None, *, required=(), description="Reads", output=None, hints=None, title=None):
    schema = {"type": "object", "properties": properties or {}, "required": list(required)}
    return ToolSpec("srv", "read", title, description, schema, output, hints or ToolAnnotations())


STRING = {"type": "string"}


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (spec(), spec(), ""),
        (spec(), None, "it is not offered any more"),
        (spec(), spec(description="Reads and deletes"), "changed: its description"),
        (spec(), spec(title="Read"), "changed: its title"),
        (spec({"a": STRING}), spec({"b": STRING}), "changed: new parameter 'b', removed parameter 'a'"),
        (spec({"a": STRING}), spec({"a": {"type": "integer"}}), "changed: parameter 'a'"),
        (spec({"a": STRING}), spec({"a": STRING}, required=["a"]), "changed: now required 'a'"),
        (spec(), spec({"a": STRING}, required=["a"]), "changed: new parameter 'a'"),
        (spec(), spec(output={"type": "object"}), "changed: what it returns"),
        (
            spec(hints=ToolAnnotations(read_only=True)),
            spec(hints=ToolAnnotations(read_only=False)),
            "changed: its hint read_only (was yes, is no)",
        ),
        (
            spec(),
            spec({f"p{n}": STRING for n in range(8)}),
            "changed: new parameter 'p0', 'p1', 'p2', 'p3', 'p4' and 3 more",
        ),
        (spec({"a": {"const": True}}), spec({"a": {"const": 1}}), "changed: parameter 'a'"),
    ],
)
def test_a_change_is_said_in_one_line(before, now, said):
    assert what_changed(before, now) == said


def test_schemas_of_any_shape_can_be_compared():
    def odd(schema):
        return ToolSpec("srv", "read", None, "", schema, None, ToolAnnotations())

    assert what_changed(odd({"properties": 5}), odd({"properties": ["a"], "required": 7})) == (
        "changed: its input schema"
    )
    assert what_changed(odd({}), odd({"properties": {"\x1b[31ma\u202e": 1}})) == "changed: new parameter 'a'"
