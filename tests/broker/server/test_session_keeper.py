"""Whose session a request belongs to."""

from __future__ import annotations

import anyio
import pytest

from broker.texts import tool_texts

pytestmark = pytest.mark.anyio

ADD = "from tools import desk\nawait desk.add(a=1)"


async def test_a_new_session_is_named_and_has_nothing_of_the_other(connected):
    async with connected() as client:
        await client.call_tool("get_tool_details", {"tools": ["desk.add"]})
        fresh = await client.call_tool("execute_code", {"code": "1", "session": "new"})
        handle = fresh.structured_content["session"]
        undescribed = await client.call_tool("execute_code", {"code": ADD, "session": handle})
        await client.call_tool("get_tool_details", {"tools": ["desk.add"], "session": handle})
        described = await client.call_tool("execute_code", {"code": ADD, "session": handle})
        own = await client.call_tool("execute_code", {"code": ADD})
    assert f'session: "{handle}"' in fresh.content[0].text
    assert (undescribed.is_error, described.is_error, own.is_error) == (True, False, False)
    assert described.structured_content["session"] is None


@pytest.mark.parametrize("name", ["main", "session_1", "x" * 5_000])
async def test_a_name_that_a_model_makes_up_is_its_usual_session(connected, name):
    async with connected() as client:
        await client.call_tool("get_tool_details", {"tools": ["desk.add"], "session": name})
        own = await client.call_tool("execute_code", {"code": ADD})
        named = await client.call_tool("execute_code", {"code": ADD, "session": name})
        other = await begin(client)
        undescribed = await client.call_tool("execute_code", {"code": ADD, "session": other})
    assert (own.is_error, named.is_error, undescribed.is_error) == (False, False, True)
    assert named.content[0].text == f"{own.content[0].text}\n{tool_texts.no_handle(name)}"


@pytest.mark.parametrize("name", ["", " "])
async def test_an_empty_session_is_none(connected, name):
    async with connected() as client:
        ran = await client.call_tool("execute_code", {"code": "1", "session": name})
    assert ran.content[0].text == "1"


async def test_the_longest_idle_session_gives_way_to_a_new_one(connected):
    async with connected(sessions=2) as client:
        first = await begin(client)
        second = await begin(client)
        assert not (await client.call_tool("execute_code", {"code": "1", "session": first})).is_error
        third = await begin(client)
        gone = await client.call_tool("execute_code", {"code": "1", "session": second})
        assert (gone.is_error, gone.content[0].text) == (True, tool_texts.unknown_session(second))
        for kept in (first, third):
            assert not (await client.call_tool("execute_code", {"code": "1", "session": kept})).is_error


async def begin(client):
    begun = await client.call_tool("execute_code", {"code": "1", "session": "new"})
    return begun.structured_content["session"]


async def test_a_session_in_which_a_script_runs_gives_way_to_none(connected, started):
    async with connected(sessions=1) as client, anyio.create_task_group() as tasks:
        await client.call_tool("get_tool_details", {"tools": ["desk.wait"]})
        tasks.start_soon(client.call_tool, "execute_code", {"code": "from tools import desk\nawait desk.wait()"})
        await started.wait()
        refused = await client.call_tool("execute_code", {"code": "1", "session": "new"})
        assert (refused.is_error, refused.content[0].text) == (True, tool_texts.TOO_MANY_SESSIONS)
        assert not (await client.call_tool("execute_code", {"code": "1"})).is_error
        tasks.cancel_scope.cancel()
