"""What clients are told of changes of listings and resources, in both eras, beside what can come of it."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio
import pytest
from mcp import Client, MCPError
from mcp.types import INVALID_PARAMS

from broker import Broker
from broker.server import BrokerServer, ServeSettings

pytestmark = pytest.mark.anyio


@pytest.fixture
def connected(desk_server, mode):
    @asynccontextmanager
    async def connect(served_mode):
        with anyio.fail_after(60):
            async with Broker(servers={"desk": desk_server}, opens_sandbox=False) as broker:
                server = BrokerServer(broker, ServeSettings(mode=served_mode))
                async with Client(server.mcp, mode=mode) as client:
                    yield client

    return connect


@pytest.mark.parametrize(("served_mode", "changes"), [("code", False), ("tools", True)])
async def test_only_the_tools_of_mode_tools_are_said_to_change(connected, served_mode, changes):
    async with connected(served_mode) as client:
        said = client.server_capabilities.model_dump(by_alias=True, exclude_none=True)
    assert said["tools"] == {"listChanged": changes}
    assert said["resources"] == {"subscribe": False, "listChanged": False}
    assert "prompts" not in said


@pytest.mark.parametrize("mode", ["auto"])  # subscriptions are of the newer era
async def test_a_subscription_is_acknowledged_for_changes_of_the_tools_alone(connected):
    everything = {
        "tools_list_changed": True,
        "prompts_list_changed": True,
        "resources_list_changed": True,
        "resource_subscriptions": ["resource:///tool_descriptions"],
    }
    others = {name: value for name, value in everything.items() if name != "tools_list_changed"}
    async with connected("tools") as client:
        async with client.listen(**everything) as events:
            assert events.honored.model_dump(exclude_none=True) == {"tools_list_changed": True}
        async with client.listen(**others) as events:
            assert events.honored.model_dump(exclude_none=True) == {}


@pytest.mark.parametrize("cursor", ["", "x"])
async def test_a_list_of_one_page_has_no_page_of_a_cursor(connected, cursor):
    async with connected("code") as client:
        for ask in (client.list_tools, client.list_resources, client.list_resource_templates):
            with pytest.raises(MCPError, match="the list has one page") as refused:
                await ask(cursor=cursor)
            assert refused.value.error.code == INVALID_PARAMS
