"""The broker against servers that others wrote, over stdio and streamable HTTP, in both protocol eras."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from broker import Broker, Config, Grant

pytestmark = pytest.mark.anyio

DEADLINE_SECONDS = 120


async def run(broker, script, *allowed, **settings):
    return await broker.session(grants=map(Grant, allowed)).execute_code(script, describe_references=True, **settings)


def broker_with(**servers) -> Broker:
    return Broker(Config(servers=servers), startup_seconds=60)


@pytest.fixture(autouse=True)
async def deadline():
    with anyio.fail_after(DEADLINE_SECONDS):
        yield


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_every_server_is_listed_with_its_era(node_server, python_server, repository, tmp_path, anyio_backend):
    async with broker_with(
        everything=node_server("server-everything", "stdio"),
        files=node_server("server-filesystem", str(tmp_path)),
        memory=node_server("server-memory", env={"MEMORY_FILE_PATH": str(tmp_path / "graph.jsonl")}),
        git=python_server("mcp-server-git", "--repository", str(repository)),
        time=python_server("mcp-server-time"),
    ) as broker:
        assert anyio_backend
        assert [
            (status.name, status.state, status.era, status.tool_count, status.warnings)
            for status in broker.server_statuses()
        ] == [
            ("everything", "ready", "2025", 13, ()),
            ("files", "ready", "2025", 14, ()),
            ("memory", "ready", "2025", 9, ()),
            ("git", "ready", "2026", 12, ()),
            ("time", "ready", "2026", 2, ()),
        ]


ACROSS = """
import asyncio, re
from tools import files, git, memory, time

log = await git.git_log(repo_path=REPOSITORY, max_count=10)
people = re.findall(r"Author: (\\w+)", log)
await memory.create_entities(
    entities=[{"name": name, "entityType": "person", "observations": []} for name in sorted(set(people))]
)
for name in people:
    await memory.add_observations(observations=[{"entityName": name, "contents": [f"commit {people.index(name)}"]}])
graph = await memory.read_graph()
names = sorted(entity["name"] for entity in graph["entities"])
await asyncio.gather(*(files.write_file(path=f"{FOLDER}/{name}.md", content=f"# {name}") for name in names))
listing = await asyncio.gather(*(files.read_text_file(path=f"{FOLDER}/{name}.md") for name in names))
now = await time.get_current_time(timezone="UTC")
texts = [text["content"] for text in listing]
return {"names": names, "texts": texts, "zone": now["timezone"], "log": type(log).__name__}
"""


async def test_a_script_works_across_servers_of_both_eras(node_server, python_server, repository, tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    script = ACROSS.replace("REPOSITORY", repr(str(repository))).replace("{FOLDER}", str(folder))
    async with broker_with(
        files=node_server("server-filesystem", str(folder)),
        memory=node_server("server-memory", env={"MEMORY_FILE_PATH": str(tmp_path / "graph.jsonl")}),
        git=python_server("mcp-server-git", "--repository", str(repository)),
        time=python_server("mcp-server-time"),
    ) as broker:
        result = await run(broker, script, "git.git_log", "memory.*", "files.*_file", "time.*")
    assert result.error is None
    assert result.value == {"names": ["Ada", "Bob"], "texts": ["# Ada", "# Bob"], "zone": "UTC", "log": "str"}
    assert (folder / "Ada.md").read_text() == "# Ada"
    assert {(call.decision, call.status) for call in result.calls} == {("allowed", "ok")}
    assert len(result.calls) == 11


KINDS = """
from tools import everything
text = await everything.echo(message="hi")
image = await everything.get_tiny_image()
structured = await everything.get_structured_content(location="New York")
links = await everything.get_resource_links(count=2)
return {
    "text": text,
    "image": [{"type": block["type"], "mime": block.get("mime_type")} for block in image],
    "structured": sorted(structured),
    "links": [block["type"] for block in links],
    "data": "data" in str(image),
}
"""
KINDS_FOUND = {
    "text": "Echo: hi",
    "image": [
        {"type": "text", "mime": None},
        {"type": "image", "mime": "image/png"},
        {"type": "text", "mime": None},
    ],
    "structured": ["conditions", "humidity", "temperature"],
    "links": ["text", "resource_link", "resource_link"],
    "data": False,
}


async def test_every_kind_of_content_reaches_a_script_over_stdio(node_server):
    async with broker_with(everything=node_server("server-everything", "stdio")) as broker:
        result = await run(broker, KINDS, "everything.*")
    assert (result.error, result.value) == (None, KINDS_FOUND)


async def test_every_kind_of_content_reaches_a_script_over_http(everything_url):
    config = Config.parse(
        f'{{"mcpServers": {{"everything": {{"type": "http", "url": "{everything_url}"}}}}}}',
        source="c",
        folder=Path(),
    )
    async with Broker(config, startup_seconds=60) as broker:
        assert [status.state for status in broker.server_statuses()] == ["ready"]
        result = await run(broker, KINDS, "everything.*")
    assert (result.error, result.value) == (None, KINDS_FOUND)


async def test_an_error_of_a_real_tool_is_caught_in_the_script(node_server, tmp_path):
    script = """
from tools import files, ToolError
try:
    await files.read_text_file(path="/etc/passwd")
except ToolError as error:
    found = error.server, error.tool, str(error)
found
"""
    async with broker_with(files=node_server("server-filesystem", str(tmp_path))) as broker:
        result = await run(broker, script, "files.*")
    server, tool, message = result.value
    assert (server, tool) == ("files", "read_text_file")
    assert message.startswith("[text of files] Access denied")


async def test_a_real_server_that_is_killed_is_started_again(node_server):
    script = "from tools import everything\nawait everything.echo(message='hi')"
    async with broker_with(everything=node_server("server-everything", "stdio")) as broker:
        assert (await run(broker, script, "*")).value == "Echo: hi"
        for process in await anyio.to_thread.run_sync(_children):
            os.kill(process, signal.SIGKILL)
        status = broker.server_statuses
        while status()[0].state == "ready":
            await anyio.lowlevel.checkpoint()
        assert (await run(broker, script, "*")).value == "Echo: hi"
    assert not await anyio.to_thread.run_sync(_children)


def _children() -> list[int]:
    """The processes that this one has started and that run server-everything."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and b"server-everything" in (entry / "cmdline").read_bytes():
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                found += [int(entry.name)] * (parent == os.getpid())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


NO_CREDENTIALS = (
    'Add "headers": {"Authorization": "Bearer …"} to its entry, or add "oauth": {} and log in with '
    "`codemode mcp login web`."
)
HTTP_FAULTS = {401: "it answered HTTP 401", 403: "it answered HTTP 403"}


@pytest.mark.parametrize("code", HTTP_FAULTS)
async def test_a_server_that_wants_credentials_says_so(code):
    async def refuse(stream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(f"HTTP/1.1 {code} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610  # no Django here
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, refuse)
        config = Config.parse(
            f'{{"mcpServers": {{"web": {{"url": "http://127.0.0.1:{port}/mcp"}}}}}}', source="c", folder=Path()
        )
        async with Broker(config, startup_seconds=30) as broker:
            status = broker.server_statuses()[0]
        tasks.cancel_scope.cancel()
    assert (status.problem, status.what_to_do) == (HTTP_FAULTS[code], NO_CREDENTIALS)
