"""Where a reference of a schema points: within the document, by the rules of JSON pointers and identifiers."""

from __future__ import annotations

from typing import Any

import pytest

from codegen.schemas.references import References

INTEGER, STRING, OTHER = {"type": "integer"}, {"type": "string"}, {"type": "number"}


@pytest.mark.parametrize(
    ("reference", "target"),
    [
        ("#/$defs/a~1b", STRING),
        ("#/$defs/a~01b", INTEGER),
        ("#/$defs/a%20b", OTHER),
        ("#/prefixItems/0", STRING),
        ("#/prefixItems/1", None),
        ("#/prefixItems/-1", None),
        ("#/prefixItems/\N{SUPERSCRIPT TWO}", None),
        ("#/$defs/missing", None),
        ("#/$defs/a~1b/type/deeper", None),
        ("#nowhere", None),
        ("https://example.com/other#/$defs/a~1b", None),
    ],
)
def test_a_pointer_leads_to_one_place_or_nowhere(reference: str, target: Any) -> None:
    definitions = {"a/b": STRING, "a~1b": INTEGER, "a b": OTHER}
    document = {"$defs": definitions, "prefixItems": [STRING]}
    assert References(document).target(reference, document) is target


def test_a_pointer_in_a_part_with_an_identifier_begins_there() -> None:
    holder = {"$ref": "#/$defs/n"}
    part = {"$id": "https://example.com/part", "$defs": {"n": INTEGER}, "properties": {"a": holder}}
    document = {"$defs": {"n": STRING, "part": part}}
    references = References(document)
    assert references.target("#/$defs/n", holder) is INTEGER
    assert references.target("#", holder) is part
    assert references.target("#/$defs/n", document) is STRING
    assert references.target("#", document) is document


@pytest.mark.parametrize("keyword", ["default", "const", "enum", "examples"])
def test_a_value_that_looks_like_a_schema_is_none(keyword: str) -> None:
    value = {"$id": "https://example.com/value", "$anchor": "here", "type": "string"}
    document = {"properties": {"a": {keyword: [value] if keyword in {"enum", "examples"} else value}}}
    references = References(document)
    assert references.target("https://example.com/value", document) is None
    assert references.target("#here", document) is None
    assert References({"$defs": {"a": value}}).target("https://example.com/value", document) is value


def test_a_reference_that_is_very_long_leads_nowhere() -> None:
    name = "n" * 1_990
    document = {"$defs": {name: STRING, f"{name}{name}": STRING}}
    assert References(document).target(f"#/$defs/{name}", document) is STRING
    assert References(document).target(f"#/$defs/{name}{name}", document) is None
