"""What a script is told of arguments that do not fit: what is wrong, and what to write instead where that is plain."""

from __future__ import annotations

import json

import pytest
from typing_extensions import TypedDict

from broker import Broker, Grant
from broker.texts.tool_texts import MESSAGE_CHARACTERS

pytestmark = pytest.mark.anyio


LEAVE_OUT = "Leave it out when it is None: `**({} if count is None else {'count': count})`"


class Options(TypedDict, total=False):
    """Numbers by name."""

    a: int


def put(
    count: int = 0, share: float = 0, name: str = "", names: list[str] | None = None, more: Options | None = None
) -> str:
    """Takes one of each kind."""
    return f"{count} {share} {name} {names} {more}"


def look(place: str | list[str] = "") -> str:
    """Takes a text or several."""
    return f"{place}"


@pytest.fixture
async def session():
    async with Broker(servers={"desk": [put, look]}) as broker:
        yield broker.session(grants=[Grant("*")])


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"count": None}, f"count: None is not of type 'integer'. {LEAVE_OUT}"),
        ({"count": "12"}, "count: '12' is not of type 'integer'. Write int(...) around it"),
        ({"count": "many"}, "count: 'many' is not of type 'integer'"),
        ({"share": "1.50"}, "share: '1.50' is not of type 'number'. Write float(...) around it"),
        ({"names": "a"}, "names: 'a' is not of type 'array'. Pass a list, even for one item: [...]"),
        ({"names": ["a", 2]}, "names[1]: 2 is not of type 'string'. Write str(...) around it"),
        ({"name": 3}, "name: 3 is not of type 'string'. Write str(...) around it"),
        (
            {"more": '{"a": 1}'},
            "more: '{\"a\": 1}' is not of type 'object'. Pass the value itself, without json.dumps()",
        ),
        ({"more": ["a"]}, "more: ['a'] is not of type 'object'. Pass a dict: the `_asdict()` of a named tuple"),
        ({"more": {"a": "1"}}, "more.a: '1' is not of type 'integer'. Write int(...) around it"),
        ({"more": {"a": None}}, "more.a: None is not of type 'integer'"),
        (
            {"count": "2", "more": {"a": "many"}, "names": "a"},
            """count: '2' is not of type 'integer'. Write int(...) around it
names: 'a' is not of type 'array'. Pass a list, even for one item: [...]
more.a: 'many' is not of type 'integer'""",
        ),
        (
            {"names": [1, 2, 3, 4, "a"]},
            """names[0]: 1 is not of type 'string'. Write str(...) around it
names[1]: 2 is not of type 'string'. Write str(...) around it
names[2]: 3 is not of type 'string'. Write str(...) around it
and 1 more""",
        ),
    ],
)
async def test_a_value_of_the_wrong_type_is_told_what_to_write(session, given, fault):
    script = f"import json\nfrom tools import desk\nawait desk.put(**json.loads({json.dumps(given)!r}))"
    result = await session.execute_code(script, describe_references=True)
    assert result.error.message == f"desk.put() was not called: {fault}"
    assert [call.status for call in result.calls] == ["bad_arguments"]


async def test_one_type_of_several_is_not_told_to_be_the_one(session):
    result = await session.execute_code(
        "from tools import desk\nawait desk.look(**{'place': 5})", describe_references=True
    )
    assert result.error.message == "desk.look() was not called: place: 5 is not of type 'string', 'array'"


async def test_a_parameter_that_a_tool_does_not_have_is_told_with_those_it_has_and_what_else_is_wrong(session):
    await session.get_tool_details("desk.put")
    result = await session.call_directly("desk.put", {"cnt": 1, "name": 5})
    assert result.failed is not None
    assert result.failed.message == (
        "desk.put() was not called: name: 5 is not of type 'string'. Write str(...) around it\n"
        "it has no parameter 'cnt' (it takes: count, share, name, names, more)"
    )


async def test_none_is_taken_where_a_tool_takes_it(session):
    script = "from tools import desk\nawait desk.put(names=None)"
    assert (await session.execute_code(script, describe_references=True)).value == "0 0  None None"


async def test_of_long_faults_as_many_are_told_as_a_message_may_hold(session):
    await session.get_tool_details("desk.put")
    result = await session.call_directly("desk.put", {"count": "c" * 500, "share": "s" * 500, "name": ["n" * 500]})
    assert result.failed is not None
    assert "count: 'ccc" in result.failed.message
    assert len(result.failed.message) < MESSAGE_CHARACTERS
