"""Servers that are broken in further ways than the table of hostile upstreams has: what they write, byte for byte.

Each is a process of its own; the reaction is asserted, that the call was sent once, and that the broker goes on.
"""

from __future__ import annotations

import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from broker import Broker, Config, Grant, ServerConfig

pytestmark = pytest.mark.anyio

RAW = Path(__file__).parents[1] / "servers" / "raw_upstream.py"
CALL = """
from tools import raw, ToolError
try:
    found = "value", await raw.echo(text="hi")
except ToolError as error:
    found = type(error).__name__, str(error)
found
"""
SHOW = "from tools import raw\ndisplay(await raw.echo(text='hi'))"
UNKNOWN = "ToolOutcomeUnknown"
NOT_JSON_RPC = (UNKNOWN, "it sent a message that is not JSON-RPC")
NO_BLOCKS = ("ToolResultError", "has no list of at most 1000 content blocks. The call was made and is not repeated.")
TOO_DEEP = ("ToolResultError", "is nested deeper than 60 levels")
LATE = ("ToolTimeoutError", "did not answer within 1 s")


def result(value: Any) -> str:
    """The lines of a response, with a value or the JSON text of one."""
    text = value if isinstance(value, str) else json.dumps(value)
    return f'{{"jsonrpc": "2.0", "id": %ID%, "result": {text}}}\n'


def error(value: str) -> str:
    return f'{{"jsonrpc": "2.0", "id": %ID%, "error": {value}}}\n'


def blocks(*content: Any) -> str:
    return result({"content": content})


def notice(method: str, params: str = "{}") -> str:
    return f'{{"jsonrpc": "2.0", "method": "{method}", "params": {params}}}\n'


OK = blocks({"type": "text", "text": "hi"})
ASKS = '{"jsonrpc": "2.0", "id": 77, "method": "%s", "params": {"name": "echo", "arguments": {}}}\n'

# What a server writes for tools/call, and what its script gets.
ANSWERS: dict[str, tuple[str, tuple[str, Any]]] = {
    "a result that is null": (result("null"), NOT_JSON_RPC),
    "a result that is a list": (result("[]"), NOT_JSON_RPC),
    "no content": (result({"content": None}), NO_BLOCKS),
    "content that is text": (result({"content": "hi"}), NO_BLOCKS),
    "blocks of nothing": (blocks(None, 5, {}), ("value", [{"type": "unknown"}] * 3)),
    "too many blocks": (blocks(*[{"type": "text", "text": ""}] * 1_500), NO_BLOCKS),
    "a block of the future": (blocks({"type": "hologram"}, {"type": "text"}), ("value", "hologram")),
    "an error said in another way": (
        result({"content": [{"type": "text", "text": "no"}], "isError": "yes"}),
        ("ToolError", "[text of raw] no"),
    ),
    "no error said in another way": (result({"content": [], "isError": None}), ("value", "")),
    "a result within results": (
        result('{"content": [], "structuredContent": ' + '{"a":' * 150 + "1" + "}" * 151),
        TOO_DEEP,
    ),
    "an integer of 4,000 digits": (
        result('{"content": [], "structuredContent": {"n": ' + "1" * 4_000 + "}}"),
        ("ToolResultError", "has an integer of more than 4096 bits"),
    ),
    "a result over the bound": (
        blocks({"type": "text", "text": "x" * 5_000_000}),
        ("ToolResultError", "is larger than 4194304 bytes"),
    ),
    "an error that is text": (error('"no"'), NOT_JSON_RPC),
    "an error without a message": (error('{"code": 1}'), NOT_JSON_RPC),
    "an error with escapes": (
        error('{"code": -5, "message": "\\u001b[2Jno"}'),
        ("ToolError", "error -5. It may have acted: check before you call again. [text of raw] no"),
    ),
    "neither result nor error": ('{"jsonrpc": "2.0", "id": %ID%}\n', NOT_JSON_RPC),
    "another protocol": ('{"jsonrpc": "1.0", "id": %ID%, "result": {}}\n', NOT_JSON_RPC),
    "no JSON-RPC at all": ('{"id": %ID%, "result": {"content": []}}\n5\n"x"\nnull\n', LATE),
    "two answers on one line": (OK.rstrip() + OK, NOT_JSON_RPC),
    "answers in UTF-16": (OK.encode("utf-16").decode("utf-8", "surrogateescape"), LATE),
    "a message behind a byte order mark": ("\ufeff" + '{"jsonrpc": "2.0", "id": %ID%}\n', NOT_JSON_RPC),
    "a coloured message": ("\x1b[32m" + '{"jsonrpc": "2.0", "id": %ID%}\n', NOT_JSON_RPC),
    "a log line that quotes a message": ("[DEBUG] Received: " + OK + OK, ("value", "hi")),
    "a log record that holds a message": (f'{{"level": 20, "sent": {OK.rstrip()}}}\n{OK}', ("value", "hi")),
    "lines of Windows, and empty ones": ("\r\n\n \n" + OK.rstrip() + "\r\n", ("value", "hi")),
    "two results under one key": (OK.replace('"result"', '"result": {"content": []}, "result"'), ("value", "hi")),
    "the cancellation of our call": (notice("notifications/cancelled", '{"requestId": %ID%}') + OK, ("value", "hi")),
    "a request with the id of our call": ('{"jsonrpc": "2.0", "id": %ID%, "method": "ping"}\n' + OK, ("value", "hi")),
    "a call of our tools": (ASKS % "tools/call" + OK, ("value", "hi")),
    "a handshake with us": (ASKS % "initialize" + OK, ("value", "hi")),
    "a method of a megabyte": (notice("x" * 1_000_000) + OK, ("value", "hi")),
    "progress that is none": (
        "".join(
            notice("notifications/progress", f'{{"progressToken": {token}, "progress": {progress}}}')
            for token, progress in (("%ID%", '"x"'), ("%ID%", "-1"), ("{}", "1"), ("null", "null"))
        )
        + OK,
        ("value", "hi"),
    ),
    "a log of no level": (notice("notifications/message", '{"level": "doom", "data": [1]}') + OK, ("value", "hi")),
    "changes announced in a row": (notice("notifications/tools/list_changed") * 500 + OK, ("value", "hi")),
}


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    return request.param


@pytest.fixture
def calls(log):
    """How many calls the server got."""
    return lambda: log.read_text().count("call")


@pytest.fixture
def opened(tmp_path, log):
    @asynccontextmanager
    async def open_broker(*, patience: float = 20, **answers: str):
        told = tmp_path / "answers.json"
        told.write_text(json.dumps({name.replace("_", "/"): lines for name, lines in answers.items()}))
        server = ServerConfig(
            command=sys.executable,
            args=("-I", str(RAW), str(told)),
            env={"HOSTILE_LOG": str(log)},
            mode="legacy",
            call_timeout_seconds=patience,
        )
        with anyio.fail_after(60):
            async with Broker(
                Config(servers={"raw": server}), servers={"other": [again]}, startup_seconds=12
            ) as broker:
                yield broker
                assert (await run(broker, "from tools import other\nawait other.again(text='ok')")).value == "ok"

    return open_broker


def again(text: str) -> str:
    """Says it again."""
    return text


async def run(broker: Broker, code: str):
    session = broker.session(grants=[Grant("*")])
    return await session.execute_code(code, check="off", describe_references=True)


@pytest.mark.parametrize("answer", ANSWERS)
async def test_what_a_broken_server_answers_is_a_value_or_an_error_of_the_script(opened, calls, answer):
    lines, (kind, said) = ANSWERS[answer]
    async with opened(tools_call=lines, patience=1 if (kind, said) == LATE else 20) as broker:
        ended = await run(broker, CALL)
    assert ended.error is None, ended.error
    found, value = ended.value
    assert (found, value == said or str(said) in str(value)) == (kind, True), (found, str(value)[:300])
    assert "\x1b" not in str(value)
    assert calls() == 1


@pytest.mark.parametrize(("said", "successes"), [("yes", 0), (1, 0), (True, 0), (None, 1), (False, 1)])
async def test_a_call_counts_as_a_success_where_its_script_got_no_error(opened, said, successes):
    async with opened(tools_call=result({"content": [], "isError": said})) as broker:
        ended = await run(broker, CALL)
        counted = broker.statistics.of("raw", "echo")
    assert (ended.value[0] == "value", counted.calls, counted.successes) == (successes == 1, 1, successes)


@pytest.mark.parametrize("block", [
    {"type": "image", "data": "no base64!", "mimeType": "image/png"},
    {"type": "image", "data": "AAAA", "mimeType": "image/png\r\nX-Injected: yes"},
    {"type": "audio", "data": "AAAA", "mimeType": "sound"},
    {"type": "resource", "resource": {"uri": "a:b", "blob": "no base64!"}},
])  # fmt: skip
async def test_a_broken_image_is_not_displayed(opened, block):
    async with opened(tools_call=blocks(block)) as broker:
        ended = await run(broker, SHOW)
    assert (ended.error, ended.displayed, ended.not_displayed) == (None, [], 1)


@pytest.mark.parametrize("block", [
    {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
    {"type": "resource", "resource": {"uri": "a:b", "text": "x", "mimeType": "text/html; charset=utf-8"}},
    {"type": "resource", "resource": {"uri": "a:b", "text": "x"}},
])  # fmt: skip
async def test_a_whole_one_is(opened, block):
    async with opened(tools_call=blocks(block)) as broker:
        ended = await run(broker, SHOW)
    if "resource" in block:
        text = f"[text of raw]\n{block['resource']['text']}"
        block = {**block, "resource": {**block["resource"], "text": text}}
    assert (ended.displayed, ended.not_displayed) == ([block], 0)


HANDSHAKE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "x", "version": "1"},
}
BEGINNINGS = {
    "a handshake without a name": ({"initialize": result({**HANDSHAKE, "serverInfo": None})}, "does not allow"),
    "a version that is a number": ({"initialize": result({**HANDSHAKE, "protocolVersion": 5})}, "does not allow"),
    "a handshake refused": ({"initialize": error('{"code": -7, "message": "\\u001b[2Jno"}')}, "JSON-RPC error -7"),
    "a listing refused": ({"tools_list": error('{"code": -8, "message": "no"}')}, "JSON-RPC error -8"),
    "a listing refused with a code of ours": ({"tools_list": error('{"code": -32000, "message": "no"}')}, "-32000"),
}


@pytest.mark.parametrize("beginning", BEGINNINGS)
async def test_a_server_that_cannot_begin_is_down_for_what_it_did_and_not_for_its_exit(opened, beginning):
    answers, said = BEGINNINGS[beginning]
    async with opened(**answers) as broker:
        status = broker.server_statuses()[0]
        ended = await run(broker, CALL)
    assert (status.state, said in str(status.problem)) == ("down", True), status.problem
    assert "\x1b" not in str(status.problem)
    assert (ended.value or [ended.error.type])[0] in {"ToolUnavailableError", "ScriptCheckError"}


TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
WIDE = {"type": "object", "properties": {f"p{number}": {} for number in range(50_000)}}
ROUND = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}
TOOL: dict[str, Any] = {"name": "echo", "inputSchema": TEXT}
NO_SCHEMAS: tuple[Any, ...] = (True, [], None)
ODD = [{"name": f"t{number}", "inputSchema": schema} for number, schema in enumerate(NO_SCHEMAS)]
LISTINGS: dict[str, tuple[list[Any], str]] = {
    "a name of a megabyte": ([{**TOOL, "name": "x" * 1_000_000}, TOOL], "its name is longer than 256 characters"),
    "schemas of no kind": ([*ODD, TOOL], "is not a JSON object"),
    "two of a name": ([TOOL, {**TOOL, "description": "PWNED"}], "left out a second tool named 'echo'"),
    "words that are numbers": ([{**TOOL, "description": 5, "title": [], "annotations": "x"}], ""),
    "a description of megabytes": ([{**TOOL, "description": "x " * 2_000_000}], ""),
    "50,000 parameters": ([{**TOOL, "inputSchema": WIDE}], ""),
    "a schema that names itself": ([{**TOOL, "inputSchema": ROUND}], ""),
}


@pytest.mark.parametrize("listing", LISTINGS)
async def test_a_broken_listing_leaves_the_good_tool_and_a_short_description(opened, listing):
    tools, said = LISTINGS[listing]
    async with opened(tools_list=result({"tools": tools})) as broker:
        status = broker.server_statuses()[0]
        details = await broker.session().get_tool_details(["raw.echo"])
    assert (status.state, status.tool_count) == ("ready", 1)
    assert said in " ".join(status.warnings)
    assert len(details.source) < 4_096


CUT = "its tools take more than 1 MiB; the listing was cut there"


@pytest.mark.parametrize(("mebibytes", "count", "warnings"), [(1, 2, (CUT,)), (64, 4, ())])
async def test_a_listing_is_used_up_to_a_size_in_memory(opened, monkeypatch, mebibytes, count, warnings):
    monkeypatch.setattr("broker.upstreams.listing.LISTING_BYTES", mebibytes * 1024 * 1024)
    monkeypatch.setattr("broker.upstreams.listing._TOOL_BYTES", 0)
    large = {"type": "object", "examples": [[] for _ in range(10_000)]}
    tools = [{"name": f"t{number}", "inputSchema": large} for number in range(3)]
    async with opened(tools_list=result({"tools": [TOOL, *tools]})) as broker:
        status = broker.server_statuses()[0]
    assert (status.state, status.tool_count, status.warnings) == ("ready", count, warnings)


UNSENDABLE = "its next page of tools has a cursor that cannot be sent back"


@pytest.mark.parametrize(
    ("cursor", "said"),
    [
        (5, UNSENDABLE),
        ({}, UNSENDABLE),
        (False, UNSENDABLE),
        ("\ud800", UNSENDABLE),
        ("é", "its pages of tools go round"),
        pytest.param("x" * 1_000_000, "its pages of tools go round", id="a long one"),
    ],
)
async def test_a_cursor_that_is_none_ends_the_listing(opened, cursor, said):
    async with opened(tools_list=result({"tools": [TOOL], "nextCursor": cursor})) as broker:
        status = broker.server_statuses()[0]
    assert (status.state, status.tool_count) == ("ready", 1)
    assert said in " ".join(status.warnings)
