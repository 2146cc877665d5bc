"""Names in a server's schema cost steps, so that the check ends; where they are few, it finds what it should."""

from __future__ import annotations

import pytest

from broker.calls.check_work import STEPS
from broker.calls.json_schema import first_fault
from broker.calls.name_costs import NameCosts

MANY = {f"d{index}": {"type": "string"} for index in range(20_000)}
LONG = "http://x/" + "a/" * 400_000
ENDLESS = {
    "an anchor": {"$defs": {"x": {"$anchor": "foo"}, **MANY}, "allOf": [{"$ref": "#foo"}] * 20_000},
    "an identifier": {"$id": LONG, "properties": {f"p{index}": {"$id": "b"} for index in range(20_000)}},
    "unevaluated items": {"unevaluatedItems": False, "allOf": [{"contains": True}] * 20_000},
    "unique items": {"allOf": [{"uniqueItems": True}] * 20_000},
}


@pytest.mark.parametrize("schema", ENDLESS.values(), ids=ENDLESS.keys())
def test_a_schema_of_costly_keywords_does_not_keep_the_check(schema):
    value = {f"p{index}": 1 for index in range(20_000)} if "properties" in schema else list(range(100_000))
    assert first_fault(value, schema) is None  # an hour without the steps


def test_names_cost_by_their_length_and_the_size_of_the_schema():
    few = NameCosts.of({"$id": "http://x/s", "properties": {"a": {"$id": "a"}}})
    assert few.joining == 0
    assert few.lookup < STEPS / 1_000
    assert NameCosts.of({"$id": LONG}).joining > few.joining
    assert NameCosts.of(MANY).lookup * 100 > STEPS


def test_a_schema_with_identifiers_anchors_and_unevaluated_members_is_checked():
    item = {"$id": "i", "$anchor": "foo", "properties": {"x": {"type": "integer"}}, "unevaluatedProperties": False}
    schema = {"$id": "http://x/s", "$defs": {"i": item}, "properties": {"a": {"items": {"$ref": "i#foo"}}}}
    assert first_fault({"a": [{"x": 1}] * 1_000}, schema) is None
    assert first_fault({"a": [{"x": 1}] * 1_000 + [{"x": "y"}]}, schema) == "a[1000].x: 'y' is not of type 'integer'"
    assert first_fault({"a": [{"y": 1}]}, schema) is not None
