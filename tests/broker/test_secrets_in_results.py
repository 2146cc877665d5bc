"""A secret of the config in what a server sends: gone also where text is cut, shown to a client or read as bytes."""

from __future__ import annotations

import base64
import sys
from contextlib import asynccontextmanager

import anyio
import mcp.types as t
import pytest
from mcp import MCPError
from mcp.server import Server

from broker import Broker, Config, Grant
from broker.calls.call_failures import HEAD_CHARACTERS, SERVER_TEXT_CHARACTERS
from tests.broker.conftest import FAULTY

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("deadline")]

SECRET = "tok-c0ffee-c0ffee-c0ffee-c0ffee"  # noqa: S105  # what must not be seen
BEFORE = "x" * (HEAD_CHARACTERS - len(SECRET) // 2)
BEHIND = "y" * (SERVER_TEXT_CHARACTERS - HEAD_CHARACTERS - len(SECRET) // 2)
LONG = "z" * 5_000
# Within a text that is cut in its middle: where its shown beginning ends, and where its shown end begins.
CUT = {"head": (BEFORE, LONG), "tail": (LONG, BEHIND)}
REJECTING = {f"rejects_{place}": around for place, around in CUT.items()}
MAX_SHOWN = 4
"""Of the secret: its first characters are those of other words too."""


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """Nothing here depends on it."""
    return request.param


def packed(text):
    return base64.b64encode(text.encode()).decode()


def resource(**contents):
    kind = t.TextResourceContents if "text" in contents else t.BlobResourceContents
    return t.CallToolResult(content=[t.EmbeddedResource(resource=kind(uri="file:///a", **contents))])


def server_that_says(secret):
    results = {
        **{
            f"fails_{place}": t.CallToolResult(content=[t.TextContent(text=secret.join(around))], is_error=True)
            for place, around in CUT.items()
        },
        "text": resource(text=f"key {secret}"),
        "bytes": resource(blob=packed(f"key {secret}")),
        "image": t.CallToolResult(content=[t.ImageContent(data=packed(f"key {secret}"), mime_type="image/png")]),
    }

    async def listing(_ctx, _params):
        tools = [t.Tool(name=name, input_schema={"type": "object"}) for name in [*results, *REJECTING, "progresses"]]
        return t.ListToolsResult(tools=tools)

    async def call(ctx, params):
        if params.name in REJECTING:
            raise MCPError(-32602, secret.join(REJECTING[params.name]))
        if params.name == "progresses":
            await ctx.session.report_progress(1, 2, f"with {secret}")
            return t.CallToolResult(content=[])
        return results[params.name]

    return Server("leaky", on_list_tools=listing, on_call_tool=call)


@asynccontextmanager
async def session_with(secret=SECRET):
    """A session with a server that says a text, where `SECRET` is a secret."""
    other = {"command": "never", "disabled": True, "env": {"API_TOKEN": SECRET}}
    config = Config.of_data({"mcpServers": {"other": other}})
    async with Broker(config, servers={"leaky": server_that_says(secret)}) as broker:
        yield broker.session(grants=[Grant("leaky.*")])


def longest_part(text):
    """Of the secret, as many of its characters in a row as are in a text."""
    places = range(len(SECRET))
    return max(end - start for start in places for end in range(start, len(SECRET) + 1) if SECRET[start:end] in text)


CAUGHT = """
from tools import leaky, ToolError
try:
    await leaky.{}()
except ToolError as error:
    found = str(error)
found
"""


@pytest.mark.parametrize("place", CUT)
@pytest.mark.parametrize("kind", ["fails", "rejects"])
async def test_an_error_is_cut_beside_a_secret_and_not_within_it(kind, place):
    script = CAUGHT.format(f"{kind}_{place}")
    async with session_with() as session:
        result = await session.execute_code(script, describe_references=True)
    assert longest_part(result.value) <= MAX_SHOWN
    assert len(result.value) < 800
    harmless = "harmless-harmless-harmless-harm"
    async with session_with(harmless) as session:
        result = await session.execute_code(script, describe_references=True)
    assert ("x" * 100 + harmless[:8] if place == "head" else harmless[-8:] + "y" * 100) in result.value


SHOWN = """
from tools import leaky, ToolError
blocks = await leaky.{}()
display(blocks[0])
try:
    read = (await read_bytes(blocks[0])).decode()
except ToolError as error:
    read = type(error).__name__
read[::-1]
"""
READ = {"text": "key [redacted]", "bytes": "ToolResultError", "image": "ToolResultError"}


@pytest.mark.parametrize("tool", READ)
async def test_what_is_displayed_and_read_as_bytes_holds_no_secret(tool):
    async with session_with() as session:
        result = await session.execute_code(SHOWN.format(tool), describe_references=True)
    assert result.value[::-1] == READ[tool]
    envelope = result.model_dump_json() + str(result.displayed)
    assert (SECRET in envelope, packed(f"key {SECRET}") in envelope) == (False, False)
    async with session_with("harmless") as session:
        result = await session.execute_code(SHOWN.format(tool), describe_references=True)
    assert (result.value[::-1], len(result.displayed)) == ("key harmless", 1)


async def test_progress_holds_no_secret():
    told = []

    async def tell(*progress) -> None:
        told.append(progress)

    async with session_with() as session:
        await session.get_tool_details("leaky.progresses")
        await session.call_directly("leaky.progresses", {}, on_progress=tell)
    assert told == [(1.0, 2.0, "with [redacted]")]


DIE = "import os, sys; sys.exit('x' * 190 + os.environ['API_TOKEN'])"


@pytest.mark.parametrize("args", [["-c", DIE], [str(FAULTY), "lists_nothing"]], ids=["ends", "answers with an error"])
async def test_the_words_of_a_server_that_is_down_are_cut_behind_a_secret_and_not_within_it(args):
    said = {"API_TOKEN": SECRET, "WORDS": "x" * 190 + SECRET}
    server = {"command": sys.executable, "args": args, "env": said}
    with anyio.fail_after(30):
        async with Broker.from_config({"mcpServers": {"leaky": server}}) as broker:
            problem = broker.server_statuses()[0].problem or ""
    assert longest_part(problem) <= MAX_SHOWN
    assert "x" * 190 in problem
