"""What agent programs are given otherwise than other clients, by the name that they give themselves."""

from __future__ import annotations

import mcp.types as t
import pytest

from broker.surface import tool_definitions

pytestmark = pytest.mark.anyio

SHOWING = [
    "claude-code",
    "codex-mcp-client",
    "copilot-cli",
    "gemini-cli-mcp-client-codemode",
    "Visual Studio Code - Insiders",
]
OTHERS = ["opencode", "mcp-inspector", ""]
DOT = """
display(b'GIF89a', mime_type='image/gif')
display(b'RIFF', mime_type='audio/wav')
display(b'a,b', mime_type='text/csv')
print('shown')
"""


def named(name):
    return {"client_info": t.Implementation(name=name, version="1")}


@pytest.fixture
def seen(connected):
    """What a client of a name is given: `execute_code` as it is listed, and the result of a script."""

    async def see(name, code=DOT, **settings):
        async with connected(client=named(name), **settings) as client:
            tools = (await client.list_tools()).tools
            return tools[-1], await client.call_tool("execute_code", {"code": code})

    return see


@pytest.mark.parametrize("name", SHOWING)
async def test_an_agent_that_shows_structured_content_is_given_text_and_what_was_displayed_alone(seen, name):
    tool, result = await seen(name)
    assert (tool.name, tool.output_schema, result.structured_content) == ("execute_code", None, None)
    assert [block.type for block in result.content] == ["text", "image", "audio", "resource"]
    assert result.content[0].text == "shown"


@pytest.mark.parametrize("name", SHOWING)
async def test_such_an_agent_reads_a_failure_once_with_what_to_do(seen, name):
    _, result = await seen(name, "1 / 0")
    assert (result.is_error, result.structured_content) == (True, None)
    assert result.content[0].text.endswith("ZeroDivisionError: division by zero\nNo tool was called.")


@pytest.mark.parametrize("name", OTHERS)
async def test_every_other_client_is_given_the_envelope_and_its_schema(seen, name):
    tool, result = await seen(name)
    assert tool.output_schema == tool_definitions("mcp")[-1]["outputSchema"]
    assert result.structured_content["stdout"] == "shown\n"


async def test_the_setting_decides_for_all_clients(seen):
    for name in ("codex-mcp-client", "opencode"):
        tool, result = await seen(name, structured_content="always")
        assert (tool.output_schema is None, result.structured_content is None) == (False, False)
        tool, result = await seen(name, structured_content="never")
        assert (tool.output_schema is None, result.structured_content is None) == (True, True)


async def test_an_agent_that_keeps_tools_from_its_model_is_told_to_give_it_these_at_once(connected):
    listed = {}
    for name in ("claude-code", "codex-mcp-client"):
        async with connected(client=named(name)) as client:
            listed[name] = [tool.meta for tool in (await client.list_tools()).tools]
    assert listed == {"claude-code": [{"anthropic/alwaysLoad": True}] * 3, "codex-mcp-client": [None] * 3}
