"""Which resource a URI of the extension asks for."""

from __future__ import annotations

import pytest

from broker.disclosure.tool_descriptions import Selection, selection_of, uri_of


@pytest.mark.parametrize(
    "uri",
    [
        "resource://elsewhere/tool_descriptions?tools=a",
        "file:///tool_descriptions?tools=a",
        "resource:///tool_descriptions/a?tools=a",
        "resource:///others?tools=a",
        "resource://[/tool_descriptions?tools=a",
        "",
    ],
)
def test_a_uri_of_another_resource_asks_for_nothing(uri):
    assert selection_of(uri) is None
    assert selection_of("resource:///tool_descriptions?tools=a") == Selection(("a",), None)


@pytest.mark.parametrize("name", ["a,b", "a&tools=b", "a b", "ä%2C", "?#/"])
def test_any_name_comes_through_a_uri_whole(name):
    assert selection_of(uri_of([name, "c"], "s&t")) == Selection((name, "c"), "s&t")


def test_a_name_is_asked_for_once_and_an_empty_one_not_at_all():
    assert selection_of("resource:///tool_descriptions?tools=a,,b&tools=%20,a&session=") == Selection(("a", "b"), None)
