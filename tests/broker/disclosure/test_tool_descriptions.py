"""Which resource a URI of the extension asks for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.disclosure.tool_descriptions import MAX_TOOLS, Selection, in_one_read, selection_of, uri_of


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


@given(
    names=st.lists(st.text(st.characters(codec="utf-8"), max_size=5), unique=True, min_size=1),
    times=st.sampled_from([1, 50]),
)
def test_all_names_are_asked_for_in_as_many_reads_as_they_take(names, times):
    waiting = [f"<{name * times}>" for name in names]
    while waiting:
        read = in_one_read(waiting)
        assert read == waiting[: len(read) or 1]
        assert selection_of(uri_of(read)) == Selection(tuple(read), None)
        waiting = waiting[len(read) :]


def test_long_names_are_asked_for_in_several_reads():
    names = [f"{number}{'☃' * 250}" for number in range(MAX_TOOLS)]
    first = in_one_read(names)
    assert first == names[: len(first)]
    assert len(uri_of(names[: len(first) + 1])) > 48_000
    assert in_one_read([str(number) for number in range(500)]) == [str(number) for number in range(MAX_TOOLS)]
