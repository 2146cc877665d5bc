from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from codegen import ToolAnnotations, ToolSpec
from codegen.tool_spec import _canonical_pieces, canonical_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def spec(schema: Any = None, **changes: Any) -> ToolSpec:
    fields = {
        "server": "files",
        "name": "read",
        "title": None,
        "description": "Read a file",
        "input_schema": schema,
        "output_schema": None,
        "annotations": ToolAnnotations(),
    }
    return ToolSpec(**{**fields, **changes})


def test_key_order_does_not_change_the_digest() -> None:
    assert spec({"type": "object", "title": "a"}).digest == spec({"title": "a", "type": "object"}).digest


def test_every_field_changes_the_digest() -> None:
    changed = [
        spec(server="other"),
        spec(name="write"),
        spec(title="Read"),
        spec(description="Read a file."),
        spec({"type": "object"}),
        spec(output_schema={}),
        spec(annotations=ToolAnnotations(read_only=True)),
        spec(examples=[{"path": "a"}]),
    ]
    assert len({one.digest for one in [spec(), *changed]}) == len(changed) + 1


def test_a_zero_width_character_changes_the_digest() -> None:
    assert spec(description="Read a\u200b file").digest != spec().digest


def test_true_and_one_are_different_specifications() -> None:
    assert spec({"default": True}) != spec({"default": 1})


def test_a_schema_nested_too_deep_for_recursion_has_a_digest() -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"items": deep}
    assert spec(deep).digest.startswith("sha256:")


@settings(deadline=None)
@given(JSON)
def test_canonical_text_is_the_same_with_and_without_recursion(value: Any) -> None:
    assert "".join(_canonical_pieces(value)) == canonical_json(value)


def test_qualified_name_keeps_the_original_characters() -> None:
    assert spec(name="read-file.v2").qualified_name == "files.read-file.v2"
