"""Servers over streamable HTTP on loopback, served by the SDK, which speaks both protocol eras."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Annotated

import anyio
import anyio.lowlevel
import mcp.types as t
import pytest
from mcp.server import MCPServer, Server
from mcp.server.mcpserver import Context  # noqa: TC002  # read at run time
from pydantic import Field

from broker import Broker, Config, Grant
from broker.errors import OutcomeUnknownError, UnavailableError
from broker.upstreams.server_config import ServerConfig
from tests.http_apps import bound_socket, serving, url_of

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("deadline")]


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """The HTTP server needs asyncio."""
    return request.param


def mcp_url(sock):
    return f"{url_of(sock)}/mcp"


def make_app():
    server = MCPServer("web")

    @server.tool()
    def double(text: str) -> str:
        return text * 2

    @server.tool()
    def large(size: int) -> str:
        return "x" * size

    @server.tool()
    def who_calls(context: Context) -> list[str]:
        client, request = context.session.client_params, context.request_context.request
        assert client is not None
        assert request is not None
        return [client.client_info.name, client.client_info.version, request.headers["user-agent"]]

    return server.streamable_http_app()


@pytest.mark.parametrize(("mode", "era"), [("auto", "2026"), ("legacy", "2025"), ("2026-07-28", "2026")])
async def test_a_server_is_used_in_either_era(running, mode, era):
    sock = bound_socket()
    async with (
        serving(make_app(), sock),
        running(ServerConfig(url=mcp_url(sock), mode=mode)) as upstream,
    ):
        assert (upstream.status.state, upstream.status.era, upstream.status.problem) == ("ready", era, None)
        assert (await upstream.call_tool("double", {"text": "ab"}))["structuredContent"] == {"result": "abab"}


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize(("headers", "agent"), [({}, "codemode-broker/{}"), ({"user-agent": "house/2"}, "house/2")])
async def test_a_server_is_told_who_calls(running, mode, headers, agent):
    sock, ours = bound_socket(), version("codemode-broker")
    async with (
        serving(make_app(), sock),
        running(ServerConfig(url=mcp_url(sock), mode=mode, headers=headers)) as upstream,
    ):
        raw = await upstream.call_tool("who_calls", {})
    assert raw["structuredContent"]["result"] == ["codemode-broker", ours, agent.format(ours)]


async def test_an_argument_that_a_definition_marks_goes_into_a_header_as_well(running):
    server = MCPServer("web")

    @server.tool()
    def weather(city: Annotated[str, Field(json_schema_extra={"x-mcp-header": "City"})], context: Context) -> list[str]:
        request = context.request_context.request
        assert request is not None
        return [city, request.headers["mcp-param-city"]]

    sock = bound_socket()
    async with serving(server.streamable_http_app(), sock), running(ServerConfig(url=mcp_url(sock))) as upstream:
        assert upstream.status.era == "2026"
        raw = await upstream.call_tool("weather", {"city": "Bern"})
    assert raw["structuredContent"] == {"result": ["Bern", "Bern"]}


async def test_an_argument_goes_into_a_header_also_where_only_a_description_marks_it():
    listed = {"name": "weather", "description": "Tells it.", "inputSchema": {"type": "object", "properties": {}}}
    marked = {"type": "object", "properties": {"city": {"type": "string", "x-mcp-header": "City"}}}

    async def list_tools(_ctx, _params):
        return t.ListToolsResult(tools=[t.Tool.model_validate(listed)])

    async def list_resources(_ctx, _params):
        uri = "resource:///tool_descriptions"
        return t.ListResourcesResult(resources=[t.Resource(uri=uri, name="tool_descriptions")])

    async def read(_ctx, params):
        text = json.dumps({"weather": listed | {"inputSchema": marked}})
        return t.ReadResourceResult(contents=[t.TextResourceContents(uri=params.uri, text=text)])

    async def call(ctx, params):
        said = [params.arguments["city"], ctx.request.headers.get("mcp-param-city")]
        return t.CallToolResult(content=[], structured_content={"said": said})

    server = Server(
        "web", on_list_tools=list_tools, on_list_resources=list_resources, on_read_resource=read, on_call_tool=call
    )
    sock = bound_socket()
    async with (
        serving(server.streamable_http_app(), sock),
        Broker(Config(servers={"web": ServerConfig(url=mcp_url(sock))}), opens_sandbox=False) as broker,
    ):
        session = broker.session(grants=[Grant("*")])
        await session.get_tool_details(["web.weather"])
        result = await session.call_directly("web.weather", {"city": "Bern"})
    assert result.answer is not None
    assert result.answer["structuredContent"] == {"said": ["Bern", "Bern"]}


async def test_results_beyond_a_megabyte_arrive(running):
    sock = bound_socket()
    async with (
        serving(make_app(), sock),
        running(ServerConfig(url=mcp_url(sock), mode="legacy")) as upstream,
    ):
        raw = await upstream.call_tool("large", {"size": 3_000_000})
    assert len(raw["structuredContent"]["result"]) == 3_000_000


async def test_a_result_over_the_bound_is_an_unknown_outcome_and_the_server_stays_usable(running):
    sock = bound_socket()
    async with (
        serving(make_app(), sock),
        running(ServerConfig(url=mcp_url(sock), mode="legacy")) as upstream,
    ):
        with pytest.raises(OutcomeUnknownError, match="it sent a message over our bound of 8388608 bytes"):
            await upstream.call_tool("large", {"size": 9_000_000})
        assert (await upstream.call_tool("double", {"text": "a"}))["structuredContent"] == {"result": "aa"}


async def test_headers_are_sent_with_every_request(running):
    seen: set[str] = set()

    async def note(stream) -> None:
        async with stream:
            received = await stream.receive()
            seen.update(line for line in received.decode().split("\r\n") if "Bearer" in line)
            await stream.send(b"HTTP/1.1 401 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610  # no Django here
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, note)
        config = ServerConfig(url=f"http://127.0.0.1:{port}/mcp", headers={"Authorization": "Bearer abc"})
        async with running(config) as upstream:
            assert upstream.status.problem == "it answered HTTP 401"
        tasks.cancel_scope.cancel()
    assert seen == {"Authorization: Bearer abc"}


async def until_ready(upstream) -> None:
    while upstream.status.state != "ready":
        await anyio.lowlevel.checkpoint()


async def test_a_server_may_come_late_go_away_and_come_back(running):
    first = bound_socket()
    port = first.getsockname()[1]
    async with running(ServerConfig(url=mcp_url(first), connect_timeout_seconds=10)) as upstream:
        assert upstream.status.problem == "nothing answers at its URL"
        async with serving(make_app(), first):
            await until_ready(upstream)
            await upstream.call_tool("double", {"text": "a"})
        with pytest.raises((OutcomeUnknownError, UnavailableError)):
            await upstream.call_tool("double", {"text": "a"})
        async with serving(make_app(), bound_socket(port)):
            await until_ready(upstream)
            assert (await upstream.call_tool("double", {"text": "a"}))["structuredContent"] == {"result": "aa"}
