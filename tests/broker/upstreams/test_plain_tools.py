"""Tools that are called without a request around them answer as with one, and see what they would miss."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager

import anyio
import pytest
from mcp import MCPError
from mcp.server import MCPServer
from mcp.server.extension import Extension
from mcp.server.mcpserver import Context  # noqa: TC002  # read at run time
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool, ToolManager
from mcp.types import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY, CallToolResult, TextContent
from typing_extensions import TypedDict

from broker.upstreams.in_process import InProcessDispatcher
from broker.upstreams.plain_tools import PlainToolsDispatcher

pytestmark = pytest.mark.anyio


class Person(TypedDict):
    name: str
    age: int


def find(name: str, limit: int = 3) -> list[Person]:
    """Finds people."""
    return [Person(name=name, age=number) for number in range(limit)]


async def greet(name: str) -> str:
    """Greets."""
    await anyio.lowlevel.checkpoint()
    return f"hello {name}"


def refuse() -> str:
    """Refuses."""
    raise ToolError("not today")


class SpeechlessError(ToolError):
    def __str__(self) -> str:
        raise LookupError("no words")


def mumble() -> str:
    """Refuses without words."""
    raise SpeechlessError


def fail(path: str) -> str:
    """Fails."""
    raise OSError(path)


def protest() -> str:
    """Answers with an error of the protocol."""
    raise MCPError(code=-32042, message="of its own", data={"why": 1})


async def whole() -> CallToolResult:
    """Answers with a whole result."""
    return CallToolResult(content=[TextContent(type="text", text="whole")], structured_content={"part": 1})


async def who(ctx: Context) -> str:
    """Looks at the request."""
    await ctx.report_progress(1, 2)
    return str(ctx.request_context.protocol_version)


CALLS = {
    "a list of objects": ("find", {"name": "Ada"}),
    "a text": ("greet", {"name": "Ada"}),
    "no argument that is needed": ("greet", {}),
    "an argument of a wrong type": ("find", {"name": "Ada", "limit": "many"}),
    "a refusal": ("refuse", {}),
    "a refusal whose text cannot be had": ("mumble", {}),
    "a failure": ("fail", {"path": "/secret"}),
    "an error of the protocol": ("protest", {}),
    "a whole result": ("whole", {}),
    "a function that sees its request": ("who", {}),
    "no such function": ("none", {}),
}


def people(kind: type[MCPServer] = MCPServer, **settings) -> MCPServer:
    server = kind("people", **settings)
    for function in (find, greet, refuse, mumble, fail, protest, whole, who):
        server.add_tool(function)
    return server


async def answered(dispatcher, name, arguments):
    """Return all that comes of one call, but for the name of the server."""
    told = []

    async def on_progress(*how_far):
        told.append(how_far)

    meta = {PROTOCOL_VERSION_META_KEY: "2026-07-28", CLIENT_CAPABILITIES_META_KEY: {}}
    params = {"name": name, "arguments": arguments, "_meta": meta}
    async with anyio.create_task_group() as tasks:
        await tasks.start(dispatcher.run, None, None)
        try:
            result = await dispatcher.send_raw_request("tools/call", params, {"on_progress": on_progress})
            result.pop("_meta", None)
        except MCPError as error:
            result = error.error
        tasks.cancel_scope.cancel()
    return result, told


@pytest.mark.parametrize("case", CALLS)
async def test_a_tool_answers_as_it_would_through_the_whole_server(case):
    server = people()
    directly = await answered(PlainToolsDispatcher(server, {}), *CALLS[case])
    assert directly == await answered(InProcessDispatcher(server._lowlevel_server, {}), *CALLS[case])


@asynccontextmanager
async def connected(server):
    dispatcher = PlainToolsDispatcher(server, {})
    async with anyio.create_task_group() as tasks:
        await tasks.start(dispatcher.run, None, None)
        yield dispatcher
        tasks.cancel_scope.cancel()


async def test_others_have_a_turn_while_tools_that_never_wait_are_called():
    others = 0

    async def count():
        nonlocal others
        while True:
            others += 1
            await anyio.lowlevel.checkpoint()

    async with connected(people()) as dispatcher, anyio.create_task_group() as tasks:
        tasks.start_soon(count)
        with anyio.fail_after(20):
            while others < 3:
                await dispatcher.send_raw_request("tools/call", {"name": "whole", "arguments": {}})
        tasks.cancel_scope.cancel()


async def test_a_tool_is_not_called_for_somebody_who_has_been_cancelled():
    called = []
    server = people()
    server.add_tool(lambda: called.append(1), name="call")
    async with connected(server) as dispatcher:
        for is_cancelled in (False, True):
            with anyio.CancelScope() as scope:
                if is_cancelled:
                    scope.cancel()
                await dispatcher.send_raw_request("tools/call", {"name": "call", "arguments": {}})
            assert scope.cancelled_caught is is_cancelled
    assert called == [1]


@pytest.fixture
def requests(monkeypatch):
    """The tools for which a request was made."""
    made = []
    handled = InProcessDispatcher.handled

    async def noted(self, method, params, opts):
        made.append(params["name"])
        return await handled(self, method, params, opts)

    monkeypatch.setattr(InProcessDispatcher, "handled", noted)
    return made


async def test_a_request_is_made_where_the_tool_looks_at_it(requests):
    for name, arguments in CALLS.values():
        await answered(PlainToolsDispatcher(people(), {}), name, arguments)
    assert requests == ["who", "none"]


async def test_middleware_and_extensions_of_the_server_see_every_call(requests):
    seen = []

    async def watch(ctx, call_next):
        seen.append(ctx.params["name"])
        return await call_next(ctx)

    class Watching(Extension):
        identifier = "example.org/watching"

        async def intercept_tool_call(self, params, ctx, call_next):
            seen.append(params.name)
            return await call_next(ctx)

    later = people()
    dispatcher = PlainToolsDispatcher(later, {})
    later.middleware.append(watch)
    await answered(dispatcher, "greet", {"name": "Ada"})
    await answered(PlainToolsDispatcher(people(middleware=[watch]), {}), "refuse", {})
    await answered(PlainToolsDispatcher(people(extensions=[Watching()]), {}), "whole", {})
    assert seen == requests == ["greet", "refuse", "whole"]


async def test_the_sdk_logs_a_tool_that_breaks_with_its_traceback_and_one_that_refuses_by_name(caplog):
    caplog.set_level(logging.INFO)
    for name, arguments in (("refuse", {}), ("greet", {"name": 5}), ("fail", {"path": "/secret"}), ("protest", {})):
        await answered(PlainToolsDispatcher(people(), {}), name, arguments)
    told = [(record.levelname, record.getMessage(), bool(record.exc_info)) for record in caplog.records]
    assert told == [
        ("INFO", "Tool 'refuse' failed", False),
        ("INFO", "Tool 'greet' failed", False),
        ("ERROR", "Tool 'fail' raised an unexpected exception", True),
    ]
    assert {record.name for record in caplog.records} == {"mcp.server.mcpserver.server"}


class Deciding(MCPServer):
    """Decides about each call by its request."""

    async def call_tool(self, name, arguments, context=None):
        if context.request_context.protocol_version != "2026-07-28" or name == "fail":
            raise ToolError("not by this server")
        return await super().call_tool(name, arguments | {"name": "Eve"}, context)


class Noting(MCPServer):
    """Notes each request."""

    noted = 0

    async def _handle_call_tool(self, ctx, params):
        self.noted += ctx is not None
        return await super()._handle_call_tool(ctx, params)


class Asking(Tool):
    """Decides about each call by its request."""

    async def run(self, arguments, context, *args, **kwargs):
        if context.request_context.protocol_version != "2026-07-28":
            raise ToolError("not by this tool")
        return await super().run(arguments | {"name": "Eve"}, context, *args, **kwargs)


class Renaming(ToolManager):
    """Calls a tool by the request."""

    async def call_tool(self, name, arguments, context, *args, **kwargs):
        meta = context.request_context.meta or {}
        return await super().call_tool(meta.get("tool", name), arguments | {"name": "Eve"}, context, *args, **kwargs)


async def test_a_tool_or_a_manager_of_tools_that_decides_about_calls_sees_their_requests():
    asking, renaming = people(), people()
    asking._tool_manager._tools["greet"] = Asking.from_function(greet)
    renaming._tool_manager = Renaming()
    renaming._tool_manager.add_tool(greet)
    for server in (asking, renaming):
        result, _ = await answered(PlainToolsDispatcher(server, {}), "greet", {"name": "Ada"})
        assert result["structuredContent"] == {"result": "hello Eve"}


async def test_a_subclass_that_decides_about_calls_sees_their_requests():
    server = people(kind=Deciding)
    result, _ = await answered(PlainToolsDispatcher(server, {}), "greet", {"name": "Ada"})
    assert result["structuredContent"] == {"result": "hello Eve"}
    result, _ = await answered(PlainToolsDispatcher(server, {}), "fail", {"path": "/secret"})
    assert (result["isError"], result["content"][0]["text"]) == (True, "not by this server")
    noting = Noting("people")
    noting.add_tool(greet)
    await answered(PlainToolsDispatcher(noting, {}), "greet", {"name": "Ada"})
    assert noting.noted == 1
