from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import mcp.types as t
import pytest
from mcp.server import MCPServer, Server
from mcp.server.mcpserver import Context  # noqa: TC002  # read at run time

from broker.errors import (
    CallTimeoutError,
    OutcomeUnknownError,
    ToolRejectedError,
    UnavailableError,
)
from broker.redaction import Redactor
from broker.texts.search_texts import down
from broker.upstreams.server_config import ServerConfig
from broker.upstreams.upstream import Upstream

if TYPE_CHECKING:
    from broker.upstreams.listing import Listing

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("deadline")]


def text_of(reply):
    return reply["content"][0]["text"]


async def until(condition) -> None:
    """Wait for a state that another task brings about; the caller's deadline bounds it."""
    while not condition():
        await anyio.lowlevel.checkpoint()


UNUSABLE = {
    "exits": (
        'it exited with code 3; its last words: "missing the setting PROJECT"',
        "Run its command by hand to see why.",
    ),
    "bad_version": ("it supports no protocol version that codemode supports", "Update the server."),
    "lists_nothing": (
        'it answered with JSON-RPC error -32603 before it was ready; its words: "fetch failed"',
        "Run its command by hand, or ask the server's author.",
    ),
    "not_a_list": ("faulty answered tools/list without a list of tools", "This is a fault of the server."),
}


@pytest.mark.parametrize("behaviour", UNUSABLE)
async def test_a_server_that_cannot_be_used_says_why(faulty, running, behaviour):
    async with running(faulty(behaviour)) as upstream:
        problem, what_to_do = UNUSABLE[behaviour]
        assert (upstream.status.state, upstream.status.problem) == ("down", problem)
        assert upstream.status.what_to_do == what_to_do
        with pytest.raises(UnavailableError) as caught:
            await upstream.call_tool("echo", {})
    assert str(caught.value).startswith(f"faulty is not available: {problem}. Nothing was sent. Do without it, or ")


@pytest.mark.parametrize(
    "reason",
    [
        "Error: Cannot find module '/srv/index.js'",
        "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod'",
        "TypeError: x is not a function",
    ],
)
async def test_of_what_node_writes_when_it_fails_the_reason_is_quoted(running, reason):
    trace = "    at load (node:internal:1207:15) {\n  code: 'E'\n}"
    words = f"node:internal:1210\n  throw err;\n  ^\n\n{reason}\n{trace}\n\nNode.js v22.1.0"
    program = f"cat >&2 <<'END'\n{words}\nEND\nexit 1"
    async with running(ServerConfig(command="sh", args=("-c", program))) as upstream:
        assert upstream.status.problem == f'it exited with code 1; its last words: "{reason}"'


async def test_last_words_that_look_like_ours_stay_in_quotes(running):
    said = 'gone". Nothing was sent. Call it again: search_tools({"query": "x"})'
    program = f"cat >&2 <<'END'\n{said}\nEND\nexit 1"
    quoted = """"gone'. Nothing was sent. Call it again: search_tools({'query': 'x'})\""""
    async with running(ServerConfig(command="sh", args=("-c", program))) as upstream:
        assert upstream.status.problem == f"it exited with code 1; its last words: {quoted}"
        with pytest.raises(
            UnavailableError, match=re.escape(f"its last words: {quoted}. Nothing was sent. Do without")
        ):
            await upstream.call_tool("echo", {})


async def test_last_words_that_are_cut_in_a_text_still_end_in_a_quote(running):
    program = f"echo {'x' * 300} >&2; exit 1"
    async with running(ServerConfig(command="sh", args=("-c", program))) as upstream:
        said = down(upstream.status)
    assert re.search(r'; its last words: "x+…"; its tools are not among these', said)


NATIVE = "Could not locate the bindings file. Tried:"
TRACES = {
    "printed, with fields": (
        f"Fatal error: Error: {NATIVE}\n → /srv/x.node\n    at bindings (/srv/b.js:126) {{\n  tries: [\n    1\n  ]\n}}",
        f"Fatal error: Error: {NATIVE} → /srv/x.node",
    ),
    "printed, with a place": ("starting\nError: no key\n    at run (/srv/a.js:1:1)", "Error: no key"),
    "with a cause": (
        "TypeError: fetch failed\n    at a (b:1) {\n  [cause]: Error: getaddrinfo ENOTFOUND x\n      at c (d:1)\n}",
        "[cause]: Error: getaddrinfo ENOTFOUND x",
    ),
    "of Java": (
        'Exception in thread "main" java.lang.IllegalStateException: no port\n\tat a.B.main(B.java:3)',
        "Exception in thread 'main' java.lang.IllegalStateException: no port",
    ),
    "of a launcher": (
        "fatal: no key\nnode:child_process:930\n    throw err;\n\nError: Command failed: /srv/x\n    at run (a:1)\n",
        "fatal: no key",
    ),
    "of a launcher alone": (
        "Starting\nnode:child_process:930\n    throw err;\n    ^\n\nError: spawnSync /srv/x ENOENT\n    at run (a:1)\n",
        "Error: spawnSync /srv/x ENOENT",
    ),
    "in the box of Typer": (
        "Usage: srv [OPTIONS]\n╭─ Error ─────────╮\n│ Missing option  │\n│ '--url'.        │\n╰─────────────────╯\n",
        "Missing option '--url'.",
    ),
    "brackets alone": ('{\n  "level": "fatal",\n  "message": "no port"\n}', "'message': 'no port'"),
    "before other words": ("Error: no key\n    at run (/srv/a.js:1:1)\nGood bye", "Good bye"),
}


@pytest.mark.parametrize(("words", "reason"), TRACES.values(), ids=TRACES.keys())
async def test_of_a_trace_the_reason_is_quoted(running, words, reason):
    program = f"cat >&2 <<'END'\n{words}\nEND\nexit 1"
    async with running(ServerConfig(command="sh", args=("-c", program))) as upstream:
        assert upstream.status.problem == f'it exited with code 1; its last words: "{reason}"'


@pytest.mark.parametrize(
    "words",
    [
        "ModuleNotFoundError: No module named 'mcp.server.fastmcp'. This is mcp 2.x, where FastMCP was renamed",
        "AttributeError: 'Server' object has no attribute 'list_tools'",
        "ImportError: cannot import name 'McpError' from 'mcp' (/srv/mcp/__init__.py)",
    ],
)
async def test_a_server_made_for_version_1_of_the_sdk_is_to_be_installed_with_that(running, words):
    async with running(ServerConfig(command="sh", args=("-c", f'echo "{words}" >&2; exit 1'))) as upstream:
        assert "uvx --with 'mcp<2'" in (upstream.status.what_to_do or "")


async def test_the_fault_of_a_server_that_is_not_wanted_any_more_reaches_nobody(faulty, log):
    config = faulty("bad_version_and_stays", env={"CALLS_LOG": str(log)})
    upstream = Upstream("faulty", config, lambda *_: None, redact=Redactor(()))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(upstream.run)
        await until(lambda: "given up" in log.read_text())
        tasks.cancel_scope.cancel()
    assert upstream.status.state != "ready"


async def test_a_server_that_never_answers_is_given_up_after_its_timeout(faulty, running):
    async with running(faulty("silent", connect_timeout_seconds=0.5)) as upstream:
        assert upstream.status.problem == "it did not become ready within 0.5 s"


async def test_a_server_that_is_given_up_is_quoted_with_what_it_was_at(running):
    program = "echo '\033[31mWaiting for the database' >&2; exec sleep 60"
    config = ServerConfig(command="sh", args=("-c", program), connect_timeout_seconds=2)
    async with running(config) as upstream:
        assert upstream.status.problem == (
            'it did not become ready within 2 s; its last words: "Waiting for the database"'
        )


async def test_a_server_that_prints_no_messages_is_quoted_with_what_it_prints(running):
    program = "echo 'Welcome to faulty 1.0'; echo; exec sleep 60"
    config = ServerConfig(command="sh", args=("-c", program), connect_timeout_seconds=2)
    async with running(config) as upstream:
        assert upstream.status.problem == 'it did not become ready within 2 s; its last words: "Welcome to faulty 1.0"'


MISSING: dict[str, tuple[dict[str, Any], str, str]] = {
    "command": (
        {"command": "no-such-program"},
        "the command 'no-such-program' was not found",
        "Install it, or give its full path as 'command'.",
    ),
    "command with its arguments": (
        {"command": "uvx no-such-program"},
        "the command 'uvx no-such-program' was not found",
        "'command' takes only the program: put the rest into 'args'.",
    ),
    "folder": (
        {"command": "python3", "cwd": "/no/such/folder"},
        "its working directory does not exist",
        "Correct 'cwd'.",
    ),
    "permission": (
        {"command": "/etc/passwd"},
        "the command '/etc/passwd' may not be run",
        "Make the file executable, or correct 'command'.",
    ),
    "address": (
        {"url": "http://-ü.example/mcp"},
        "its 'url' is not a usable URL",
        "Correct 'url'.",
    ),
    "host": (
        {"url": "http://nowhere.invalid/mcp"},
        "the host name of its URL is not known",
        "Correct 'url'.",
    ),
    "url": (
        {"url": "http://127.0.0.1:1/mcp"},
        "nothing answers at its URL",
        "Start the server or correct 'url'.",
    ),
}


@pytest.mark.parametrize("missing", MISSING)
async def test_what_is_missing_is_named(running, missing):
    settings, problem, what_to_do = MISSING[missing]
    async with running(ServerConfig(**settings)) as upstream:
        assert (upstream.status.problem, upstream.status.what_to_do) == (problem, what_to_do)


@pytest.mark.parametrize(
    ("scheme", "problem"), [("http", "it closed the connection before it answered"), ("https", "it does not speak TLS")]
)
async def test_an_http_server_that_breaks_off_is_told_from_one_that_is_not_there(running, scheme, problem):
    async def break_off(stream):
        async with stream:
            await stream.receive()

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610  # no Django here
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, break_off)
        async with running(ServerConfig(url=f"{scheme}://127.0.0.1:{port}/mcp")) as upstream:
            assert upstream.status.problem == problem
        tasks.cancel_scope.cancel()


async def test_a_banner_on_stdout_is_harmless(faulty, running):
    async with running(faulty("banner")) as upstream:
        assert text_of(await upstream.call_tool("echo", {"text": "hi"})) == "hi"


async def test_what_is_no_message_on_stdout_is_logged_once(faulty, running, caplog):
    caplog.set_level("INFO", "codemode")
    async with running(faulty("banner")) as upstream:
        assert text_of(await upstream.call_tool("echo", {"text": "hi"})) == "hi"
    [told] = [line for line in caplog.messages if "stdout" in line]
    assert "server='faulty' line='Welcome to the server!xxx" in told
    assert len(told) < 400


async def test_malformed_tools_are_left_out_and_named(faulty, running):
    listings: list[Listing] = []
    async with running(faulty("malformed_tools"), listings) as upstream:
        assert [spec.name for spec in listings[0].tools] == ["empty_schema", "array_output", "echo"]
        assert upstream.status.warnings == (
            "left out tool 1 of a page: it is not a JSON object",
            "left out tool 2 of a page: it is not a JSON object",
            "left out tool 3 of a page: it has no name",
            "left out tool 4 of a page: it has no name",
            "left out the tool 'no_schema': its inputSchema is not a JSON object",
            "left out the tool 'list_output': its outputSchema is not a JSON object",
            "left out a second tool named 'echo'",
        )
        assert text_of(await upstream.call_tool("echo", {"text": "hi"})) == "hi"


LISTINGS = {
    "endless_pages": (
        {"max_pages": 5},
        5,
        ("more than 5 pages of tools are offered; raise max_pages to use the others",),
    ),
    "same_cursor": (
        {},
        1,
        ("left out a second tool named 'echo'", "its pages of tools go round; the listing was cut there"),
    ),
    "empty_cursor": ({}, 2, ()),
    "many_tools": (
        {"max_tools": 10},
        10,
        ("more than 10 tools are offered; raise max_tools to use the others",),
    ),
}


@pytest.mark.parametrize("behaviour", LISTINGS)
async def test_listings_are_bounded(faulty, running, behaviour):
    settings, count, warnings = LISTINGS[behaviour]
    async with running(faulty(behaviour, **settings)) as upstream:
        assert upstream.status.tool_count == count
        assert upstream.status.warnings == warnings


async def test_a_death_during_a_call_is_reported_once_and_the_server_comes_back(faulty, running, tmp_path):
    log = tmp_path / "calls"
    async with running(faulty("dies_in_call", env={"CALLS_LOG": str(log)})) as upstream:
        with pytest.raises(OutcomeUnknownError) as caught:
            await upstream.call_tool("echo", {"text": "die"})
        assert str(caught.value) == (
            'The answer of faulty was lost: it was ended by SIGKILL; its last words: "no space left on device". The '
            "call was sent and may have taken effect. It is not repeated; check before you call again."
        )
        assert text_of(await upstream.call_tool("echo", {"text": "again"})) == "again"
    assert log.read_text().splitlines() == ['{"text": "die"}', '{"text": "again"}']


async def test_a_server_that_is_dead_while_its_child_holds_the_pipes_is_started_again(faulty, running, log):
    target = faulty("leaves_a_child_in_call", env={"CALLS_LOG": str(log)}, call_timeout_seconds=3)
    async with running(target) as upstream:
        with pytest.raises(CallTimeoutError):
            await upstream.call_tool("echo", {"text": "die"})
        assert text_of(await upstream.call_tool("echo", {"text": "again"})) == "again"


async def test_a_call_that_is_not_answered_times_out_and_is_cancelled_at_the_server(faulty, running, tmp_path):
    log = tmp_path / "calls"
    target = faulty("hangs_in_call", env={"CALLS_LOG": str(log)}, call_timeout_seconds=0.3)
    async with running(target) as upstream:
        with pytest.raises(CallTimeoutError) as caught:
            await upstream.call_tool("echo", {"text": "hang"})
        assert str(caught.value) == (
            "faulty did not answer within 0.3 s. The call was cancelled; the server may have acted. Check before "
            "you repeat it."
        )
        assert text_of(await upstream.call_tool("echo", {"text": "hi"})) == "hi"
    assert log.read_text().splitlines() == ['{"text": "hang"}', "cancelled", '{"text": "hi"}']


async def test_a_line_without_end_ends_the_connection(faulty, running):
    async with running(faulty("endless_line")) as upstream:
        with pytest.raises(OutcomeUnknownError, match="a message over our bound of 8388608 bytes"):
            await upstream.call_tool("echo", {"text": "hi"})


async def test_a_message_that_is_not_json_rpc_ends_the_connection_at_once(faulty, running):
    async with running(faulty("broken_reply")) as upstream:
        with pytest.raises(OutcomeUnknownError, match="it sent a message that is not JSON-RPC"):
            await upstream.call_tool("echo", {"text": "hi"})


async def test_a_json_rpc_error_keeps_the_words_of_the_server_apart(faulty, running):
    async with running(faulty("rpc_error")) as upstream:
        with pytest.raises(ToolRejectedError) as caught:
            await upstream.call_tool("echo", {"text": "hi"})
    assert str(caught.value) == (
        "faulty answered with JSON-RPC error -32602. It may have acted: check before you call again."
    )
    assert caught.value.server_text == "\x1b[31mno such thing"


async def test_a_flood_on_stderr_blocks_nothing(faulty, running):
    async with running(faulty("stderr_flood")) as upstream:
        assert text_of(await upstream.call_tool("echo", {"text": "hi"})) == "hi"


async def test_a_child_sees_a_minimal_environment(faulty, running, monkeypatch):
    monkeypatch.setenv("BROKER_TOKEN", "not-for-children")
    async with running(faulty("echo_environment", env={"MINE": "1"})) as upstream:
        environment = text_of(await upstream.call_tool("echo", {}))
    assert "not-for-children" not in environment
    assert '"MINE": "1"' in environment


async def test_a_changed_listing_is_listed_again(faulty, running):
    listings: list[Listing] = []
    async with running(faulty("changes_listing"), listings) as upstream:
        await upstream.call_tool("echo", {"text": "hi"})
        await until(lambda: len(listings) == 2)
        before, after = (listing.tools[0] for listing in listings)
    assert (before.description, after.description) == ("Says it again", "Says it once more")
    assert before.digest != after.digest


async def test_a_child_that_ignores_signals_and_its_own_children_are_gone_afterwards(faulty, running):
    async with running(faulty("ignores_signals")) as upstream:
        assert upstream.status.state == "ready"
        group = await anyio.to_thread.run_sync(_groups_of_children)
        assert group
    assert not await anyio.to_thread.run_sync(_groups_of_children)


def _groups_of_children() -> set[int]:
    """The process groups that run the server with this behaviour."""
    groups = set()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and b"ignores_signals" in (entry / "cmdline").read_bytes():
                groups.add(os.getpgid(int(entry.name)))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return groups


async def test_a_disabled_server_is_not_started(running, faulty):
    async with running(faulty("exits", disabled=True)) as upstream:
        assert upstream.status.state == "disabled"
        with pytest.raises(UnavailableError, match="it is disabled"):
            await upstream.call_tool("echo", {})


async def test_calls_on_one_connection_run_at_the_same_time(running):
    server = MCPServer("meeting")
    arrived = [anyio.Event(), anyio.Event()]

    @server.tool()
    async def meet(number: int) -> str:
        arrived[number].set()
        await arrived[1 - number].wait()
        return "met"

    async with running(server) as upstream, anyio.create_task_group() as tasks:
        for number in range(2):
            tasks.start_soon(upstream.call_tool, "meet", {"number": number})


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_cancelling_a_call_cancels_it_at_the_server(running, mode):
    server = MCPServer("slow")
    started, cancelled = anyio.Event(), anyio.Event()

    @server.tool()
    async def wait() -> None:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    async with running(server) as upstream:
        upstream._mode = mode
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(upstream.call_tool, "wait", {})
            await started.wait()
            tasks.cancel_scope.cancel()
        await cancelled.wait()


async def test_a_server_in_this_process_is_reached_without_a_process(running):
    server = MCPServer("here")

    @server.tool()
    def add(a: int, b: int) -> int:
        return a + b

    async with running(server) as upstream:
        assert (upstream.status.state, upstream.status.era) == ("ready", "2026")
        assert (await upstream.call_tool("add", {"a": 1, "b": 2}))["structuredContent"] == {"result": 3}


async def test_what_a_server_does_to_one_call_is_not_in_the_next(running):
    server, marks = MCPServer("here"), []

    @server.tool()
    def add(a: int, b: int) -> int:
        return a + b

    async def marking(ctx, call_next):
        if ctx.method == "tools/call":
            marks.append(ctx.params["_meta"].get("mark"))
            ctx.params["_meta"]["mark"] = True
        return await call_next(ctx)

    server._lowlevel_server.middleware.append(marking)
    async with running(server) as upstream:
        for _ in range(2):
            await upstream.call_tool("add", {"a": 1, "b": 2})
    assert marks == [None, None]


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"allow_tools": ["echo1?"]}, [f"echo{index}" for index in range(10, 20)]),
        ({"allow_tools": []}, []),
        ({"allow_tools": ["echo1", "echo2"], "hide_tools": ["*2"]}, ["echo1"]),
        ({"hide_tools": ["echo?", "echo[1-4]?"]}, []),
        ({"hide_tools": ["echo?", "echo[2-4]?"], "max_tools": 10}, [f"echo{index}" for index in range(10, 20)]),
    ],
)
async def test_the_config_says_which_tools_of_a_server_are_used(running, faulty, settings, names):
    listings: list[Listing] = []
    async with running(faulty("many_tools", **settings), listings):
        assert [tool.name for tool in listings[0].tools] == names
        assert listings[0].problems == ()


async def test_a_name_in_the_config_that_the_server_does_not_list_is_told(running, faulty):
    listings: list[Listing] = []
    settings = {"allow_tools": ["echo1?", "zzz", "echo11"], "hide_tools": ["ecoh12", "echo13", "echo50*"]}
    async with running(faulty("many_tools", **settings), listings):
        assert listings[0].problems == (
            "allow_tools names 'zzz', which it does not list",
            "hide_tools names 'ecoh12', which it does not list; did you mean 'echo12'?",
        )
    async with running(faulty("many_tools", hide_tools=["zzz"], max_tools=3), listings):
        assert listings[1].problems == ("more than 3 tools are offered; raise max_tools to use the others",)


async def test_a_storm_of_changes_in_the_newer_era_is_one_listing_a_second(running):
    server = MCPServer("stormy")

    @server.tool()
    async def storm(ctx: Context) -> str:
        """Announces that the tools have changed, again and again."""
        for _ in range(500):
            await ctx.notify_tools_changed()
        return "over"

    listings: list[Listing] = []
    async with running(server, listings) as upstream:
        assert upstream.status.era == "2026"
        began = anyio.current_time()
        for _ in range(3):
            await upstream.call_tool("storm", {})
        await until(lambda: len(listings) > 1)
        assert len(listings) <= 2 + (anyio.current_time() - began)


async def test_a_tool_whose_marked_arguments_cannot_go_into_headers_is_left_out(running):
    def tool(name: str, header: str) -> t.Tool:
        city = {"type": "string", "x-mcp-header": header}
        return t.Tool(name=name, input_schema={"type": "object", "properties": {"city": city}})

    async def listed(context: Any, params: Any) -> t.ListToolsResult:
        del context, params
        return t.ListToolsResult(tools=[tool("good", "City"), tool("bad", "no token")])

    server = Server("marked", on_list_tools=listed)
    listings: list[Listing] = []
    async with running(server, listings) as upstream:
        assert upstream.status.era == "2026"
        assert [tool.name for tool in listings[0].tools] == ["good"]
        assert listings[0].problems == ("left out the tool 'bad': its x-mcp-header is not valid",)
