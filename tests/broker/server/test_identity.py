"""Whose session a request belongs to."""

from __future__ import annotations

import pytest

from broker.surface import texts

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


async def test_sessions_beyond_the_bound_are_refused_and_the_others_go_on(connected):
    async with connected(sessions=1) as client:
        assert not (await client.call_tool("execute_code", {"code": "1"})).is_error
        refused = await client.call_tool("execute_code", {"code": "1", "session": "new"})
        assert (refused.is_error, refused.content[0].text) == (True, texts.TOO_MANY_SESSIONS)
        assert not (await client.call_tool("execute_code", {"code": "1"})).is_error
