"""Our way to a server object, beside the SDK's own."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio
import mcp.types as t
import pytest
from mcp import MCPError
from mcp.server import MCPServer
from mcp.server.mcpserver import Context  # noqa: TC002  # read at run time
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.runner import modern_on_request
from mcp.shared.direct_dispatcher import create_direct_dispatcher_pair
from pydantic import BaseModel

from broker.upstreams.in_process import InProcessDispatcher

pytestmark = pytest.mark.anyio

ENVELOPE = {
    t.PROTOCOL_VERSION_META_KEY: "2026-07-28",
    t.CLIENT_INFO_META_KEY: {"name": "tester", "version": "1"},
    t.CLIENT_CAPABILITIES_META_KEY: {"elicitation": {"form": {}}},
}


class Point(BaseModel):
    x: int
    label: str = "here"


def all_sorts() -> MCPServer:
    server = MCPServer("all sorts", log_level="CRITICAL")

    @server.tool()
    def point(x: int) -> Point:
        return Point(x=x)

    @server.tool()
    async def far(ctx: Context) -> str:
        await ctx.report_progress(1, 3, "a third")
        return "there"

    @server.tool()
    async def who(ctx: Context) -> list[str]:
        session = ctx.request_context.session
        said = session.client_params.client_info.name if session.client_params else ""
        can_elicit = session.check_client_capability(t.ClientCapabilities(elicitation=t.ElicitationCapability()))
        return [said, session.protocol_version, str(can_elicit), str(session.can_send_request)]

    @server.tool()
    async def says(ctx: Context) -> str:
        await ctx.request_context.session.send_notification(
            t.ToolListChangedNotification(), related_request_id=ctx.request_id
        )
        return "said"

    @server.tool()
    async def asks(ctx: Context) -> str:
        answer = await ctx.elicit("your name?", Point)
        return str(answer)

    @server.tool()
    def refuses() -> str:
        raise ToolError("not today")

    @server.tool()
    def breaks() -> str:
        raise OSError("/secret/path")

    @server.tool()
    def protocol() -> str:
        raise MCPError(code=-32042, message="of its own", data={"why": 1})

    server._lowlevel_server.middleware.append(breaking)
    return server


async def breaking(ctx, call_next):
    if ctx.method == "prompts/list":
        raise RuntimeError("a secret of the middleware")
    return await call_next(ctx)


class Heard:
    """What a client is told beside its answers."""

    def __init__(self) -> None:
        self.said: list[object] = []

    async def notified(self, _ctx: object, method: str, params: object) -> None:
        self.said.append((method, params))

    async def progress(self, *how_far: object) -> None:
        self.said.append(how_far)


@asynccontextmanager
async def sdk(server, heard):
    ours, theirs = create_direct_dispatcher_pair(raise_handler_exceptions=False)
    async with anyio.create_task_group() as tasks:
        await tasks.start(theirs.run, modern_on_request(server, {}), heard.notified)
        await tasks.start(ours.run, None, heard.notified)
        yield ours
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def direct(server, heard):
    ours = InProcessDispatcher(server, {})
    async with anyio.create_task_group() as tasks:
        await tasks.start(ours.run, None, heard.notified)
        yield ours
        tasks.cancel_scope.cancel()


async def answered(way, method, params):
    """Return all that comes of one request, as data."""
    heard = Heard()
    async with way(all_sorts()._lowlevel_server, heard) as dispatcher:
        try:
            result = await dispatcher.send_raw_request(
                method, {**params, "_meta": ENVELOPE}, {"on_progress": heard.progress}
            )
        except MCPError as error:
            result = (error.error.code, error.error.message, error.error.data)
    return result, heard.said


CASES = {
    "a result with a schema": ("tools/call", {"name": "point", "arguments": {"x": 1}}),
    "progress": ("tools/call", {"name": "far", "arguments": {}}),
    "what the server knows of the client": ("tools/call", {"name": "who", "arguments": {}}),
    "a notification": ("tools/call", {"name": "says", "arguments": {}}),
    "a question": ("tools/call", {"name": "asks", "arguments": {}}),
    "an error of the tool": ("tools/call", {"name": "refuses", "arguments": {}}),
    "a tool that breaks": ("tools/call", {"name": "breaks", "arguments": {}}),
    "an error of the protocol": ("tools/call", {"name": "protocol", "arguments": {}}),
    "arguments that do not fit": ("tools/call", {"name": "point", "arguments": {"x": "one"}}),
    "no such tool": ("tools/call", {"name": "none", "arguments": {}}),
    "parameters that are none": ("tools/call", {"name": 7}),
    "middleware that breaks": ("prompts/list", {}),
    "no such method": ("tools/none", {}),
    "a listing": ("tools/list", {}),
    "discovery": ("server/discover", {}),
}


@pytest.mark.parametrize("case", CASES)
async def test_every_request_has_the_answer_that_the_sdk_has_for_it(case):
    with anyio.fail_after(20):
        ours, theirs = [await answered(way, *CASES[case]) for way in (direct, sdk)]
    assert ours == theirs


async def test_what_a_client_says_of_itself_holds_for_that_request_alone():
    said = []
    async with direct(all_sorts()._lowlevel_server, Heard()) as dispatcher:
        for meta in (ENVELOPE, {**ENVELOPE, t.CLIENT_CAPABILITIES_META_KEY: {}}, ENVELOPE):
            params = {"name": "who", "arguments": {}, "_meta": meta}
            result = await dispatcher.send_raw_request("tools/call", params)
            said.append(result["structuredContent"]["result"][2])
    assert said == ["True", "False", "True"]


async def test_what_a_handler_leaves_at_its_connection_ends_with_the_request():
    server = MCPServer("tidy")
    ended: list[int] = []
    found: list[dict[str, object]] = []

    @server.tool()
    async def leave(ctx: Context) -> None:
        connection = ctx.request_context.session._connection
        found.append(dict(connection.state))
        connection.state["left"] = True
        connection.exit_stack.callback(ended.append, len(found))

    async with direct(server._lowlevel_server, Heard()) as dispatcher:
        for _ in range(2):
            await dispatcher.send_raw_request("tools/call", {"name": "leave", "arguments": {}, "_meta": ENVELOPE})
    assert (found, ended) == ([{}, {}], [1, 2])


async def test_a_request_ends_with_its_time():
    server = MCPServer("slow")

    @server.tool()
    async def wait() -> None:
        await anyio.sleep_forever()

    async with direct(server._lowlevel_server, Heard()) as dispatcher:
        params = {"name": "wait", "arguments": {}, "_meta": ENVELOPE}
        with pytest.raises(MCPError) as caught:
            await dispatcher.send_raw_request("tools/call", params, {"timeout": 0})
    assert caught.value.error.code == t.REQUEST_TIMEOUT


async def test_a_connection_that_is_closed_sends_nothing():
    async with direct(all_sorts()._lowlevel_server, Heard()) as dispatcher:
        pass
    with pytest.raises(MCPError) as caught:
        await dispatcher.send_raw_request("tools/call", {"name": "point", "arguments": {"x": 1}})
    assert (caught.value.error.code, caught.value.error.message) == (t.CONNECTION_CLOSED, "Connection closed")
