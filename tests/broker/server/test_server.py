"""The MCP server as a client of either era sees it."""

from __future__ import annotations

import json
import re
from functools import partial

import anyio
import jsonschema
import mcp.types as t
import pytest
from mcp import Client, MCPError

from broker import Broker, BrokerServer, Grant
from broker.runs.envelope import ExecutionResult
from broker.surface import tool_definitions
from broker.texts import tool_texts
from broker.texts.run_texts import UNFORESEEN
from broker.tiers import token_counter

pytestmark = pytest.mark.anyio

ADD = "from tools import desk\nawait desk.add(a=1)"


async def run(client: Client, code: str, **arguments):
    return await client.call_tool("execute_code", {"code": code, **arguments})


async def describe(client: Client, *names: str):
    return await client.call_tool("get_tool_details", {"tools": list(names)})


async def test_the_three_tools_are_listed_in_their_order_and_word_for_word(connected):
    async with connected() as client:
        listed = (await client.list_tools()).tools
    assert [tool.name for tool in listed] == ["search_tools", "get_tool_details", "execute_code"]
    assert [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in listed] == tool_definitions()


async def test_an_agent_finds_describes_and_calls_a_tool(connected, calls):
    async with connected() as client:
        found = await client.call_tool("search_tools", {"query": "add numbers"})
        details = await describe(client, "desk.add")
        result = await run(client, f"print('sum')\n{ADD}")
    assert found.content[0].text == "desk.add: Adds two numbers."
    assert "async def add(*, a: int, b: int = 2) -> int:" in details.content[0].text
    assert result.content[0].text == "stdout:\nsum\nvalue:\n3\ncalls: desk.add ok"
    assert calls == [("add", 1, 2)]


async def test_a_tool_that_was_not_described_stops_the_script_and_is_described_by_the_reply(connected, calls):
    async with connected() as client:
        refused = await run(client, f"{ADD}\nawait desk.fail(reason='')")
        called = list(calls)
        fetched = await describe(client, "desk.add", "desk.fail")
        again = await run(client, ADD)
    assert (refused.is_error, called) == (True, [])
    assert refused.content[0].text == (
        "ToolDescriptionRequired: The script was not started: these tools have not been described yet: "
        "desk.add (line 2), desk.fail (line 3). They are described now: check that the script fits the stubs below, "
        f"and run it again.\nNo tool was called.\n\n{fetched.content[0].text}"
    )
    assert refused.structured_content["error"]["message"].endswith(f"\n\n{fetched.content[0].text}")
    assert (again.is_error, calls) == (False, [("add", 1, 2)])


async def test_a_script_describes_no_tool_but_those_that_it_names(connected, calls):
    async with connected() as client:
        await run(client, ADD)
        computed = await run(client, "import tools\nawait getattr(tools.desk, 'fa' + 'il')(reason='')")
    assert "get_tool_details" in computed.content[0].text
    assert (computed.structured_content["error"]["type"], calls) == ("ToolDescriptionRequired", [])


async def test_searching_in_full_describes_what_is_found(connected):
    async with connected() as client:
        found = await client.call_tool("search_tools", {"query": "add numbers", "detail": "full"})
        result = await run(client, ADD)
    assert "async def add(" in found.content[0].text
    assert not result.is_error


@pytest.mark.parametrize(
    ("code", "outcome"), [("1 + 1", "completed"), ("1 / 0", "raised"), ("while True: pass", "stopped")]
)
async def test_the_envelope_fits_the_output_schema_whatever_happens(connected, code, outcome):
    [schema] = [tool["outputSchema"] for tool in tool_definitions() if "outputSchema" in tool]
    async with connected() as client:
        result = await run(client, code, timeout=0.5)
    jsonschema.validate(result.structured_content, schema)
    assert result.structured_content["outcome"] == outcome
    assert set(result.structured_content) == set(schema["properties"])
    told = {name for name, field in ExecutionResult.model_fields.items() if not field.exclude}
    assert told <= set(schema["properties"])


async def test_a_failure_says_which_calls_were_made(connected):
    async with connected() as client:
        await describe(client, "desk.add", "desk.fail")
        result = await run(
            client,
            "from tools import desk\nprint('before')\nfor n in range(3):\n    await desk.add(a=n)\n"
            "await desk.fail(reason='closed')",
        )
    text = result.content[0].text
    assert result.is_error
    assert "ToolError: [text of desk] Error executing tool fail: closed" in text
    assert text.endswith(
        "before\ncalls: desk.add ok x3; desk.fail tool_error\n"
        "Calls that were sent stay done: in the corrected script, repeat only read-only calls."
    )


async def test_mistakes_are_told_before_anything_ran(connected, calls):
    async with connected() as client:
        await describe(client, "desk.add")
        result = await run(client, "from tools import desk\nawait desk.add(a=1)\nawait desk.add(a='x')")
    assert "The script was not started, nothing was executed." in result.content[0].text
    assert calls == []


async def test_output_over_the_budget_is_cut_and_the_rest_can_be_read(connected):
    printed = "".join(f"{n}\n" for n in range(1000))
    async with connected(output_tokens=200) as client:
        result = await run(client, "for n in range(1000): print(n)")
        truncated, pages = result.structured_content["truncated"], [""]
        uri = truncated["resource"]
        while uri:
            page, _, following = (await client.read_resource(uri)).contents[0].text.partition("\n[more at ")
            pages.append(page)
            uri = following.rstrip("]")
    text = result.content[0].text
    assert text.startswith("0\n1\n2\n")
    assert text.endswith("998\n999")
    assert len(text) < 500
    cut = re.search(r"\n\[(\d+) characters left out here: .* at (resource:\S+=)(\d+)\]\n", text)
    assert cut is not None
    assert f"{cut[2]}0" == truncated["resource"]
    count, offset = int(cut[1]), int(cut[3])
    assert f"{text[: cut.start()]}{printed[offset : offset + count]}{text[cut.end() :]}\n" == printed
    assert "".join(pages) == printed
    assert len(pages) > 10
    assert truncated["fields"] == ["stdout"]


async def test_long_kept_output_comes_in_pages_that_name_the_next(connected):
    counter = token_counter()
    async with connected() as client:
        result = await run(client, "for n in range(6_000): print([n, n / 7])")
        uri, pages = result.structured_content["truncated"]["resource"], []
        while uri:
            pages.append((await client.read_resource(uri)).contents[0].text)
            uri = pages[-1].partition("\n[more at ")[2].rstrip("]")
    assert all(5_900 <= counter.count(page) <= 6_000 for page in pages[:-1])
    assert "".join(page.partition("\n[more at ")[0] for page in pages).endswith("\n[5999, 857.0]\n")


@pytest.mark.parametrize("uri", ["resource:///runs/run_0/output", "resource:///other", "file:///etc/passwd"])
async def test_a_resource_that_is_not_there_is_named(connected, mode, uri):
    async with connected() as client:
        with pytest.raises(MCPError, match="There is no resource") as caught:
            await client.read_resource(uri)
    assert caught.value.code == (-32602 if mode == "auto" else -32002)


async def test_a_mistyped_name_of_the_descriptions_is_told_the_right_one_and_unknown_tools_those_of_scripts(connected):
    async with connected() as client:
        with pytest.raises(MCPError, match=r"are at resource:///tool_descriptions\?tools=NAME1,NAME2"):
            await client.read_resource("resource:///tool_description?tools=desk.add")
        read = await client.read_resource("resource:///tool_descriptions?tools=desk.ad")
        assert json.loads(read.contents[0].text)["desk.ad"]["available_tools"][0] == "desk.add"


async def test_progress_counts_the_calls(connected):
    told = []

    async def note(progress, total, message) -> None:
        told.append((progress, total, message))

    async with connected() as client:
        await describe(client, "desk.add")
        code = "from tools import desk\nfor n in range(3):\n    await desk.add(a=n)"
        await client.call_tool("execute_code", {"code": code}, progress_callback=note)
    assert told[-1] == (3, 3, "desk.add ok")
    assert [progress for progress, _, _ in told] == sorted({progress for progress, _, _ in told})


async def test_a_client_hears_of_a_script_that_makes_no_calls_for_long(connected, started, monkeypatch):
    monkeypatch.setattr("broker.server.notices.BEAT_SECONDS", 0.01)
    told, heard = [], anyio.Event()

    async def note(progress, total, message) -> None:
        told.append((progress, total, message))
        if 1 < progress < 2 and started.is_set():
            heard.set()

    async with connected() as client:
        await describe(client, "desk.add", "desk.wait")
        code = "from tools import desk\nawait desk.add(a=1)\nawait desk.wait()"
        async with anyio.create_task_group() as tasks:
            arguments = {"code": code}
            tasks.start_soon(partial(client.call_tool, "execute_code", arguments, progress_callback=note))
            await heard.wait()
            tasks.cancel_scope.cancel()
    values = [progress for progress, _, _ in told]
    assert values == sorted(set(values))
    assert told[-1][1] is None
    assert re.fullmatch(r"running for \d+ s", told[-1][2])


async def test_printed_text_is_logged_to_clients_that_ask(connected, mode):
    logged = []

    async def note(params) -> None:
        logged.append((params.level, params.logger, params.data))

    async with connected(client={"logging_callback": note, "log_level": "info"}) as client:
        if mode == "legacy":
            request = t.SetLevelRequest(params=t.SetLevelRequestParams(level="info"))
            await client.session.send_request(request, t.EmptyResult)
        await run(client, "import sys\nprint('one')\nprint('two', file=sys.stderr)")
        await run(client, "1")
    assert logged == [("info", "script", "one\n"), ("warning", "script", "two\n")]


@pytest.mark.parametrize("mode", ["legacy"])
async def test_a_level_holds_for_a_script_that_runs_already(connected, desk_server):
    reached, go, logged = anyio.Event(), anyio.Event(), []

    @desk_server.tool()
    async def hold() -> str:
        """Waits for the test."""
        reached.set()
        await go.wait()
        return ""

    async def note(params) -> None:
        logged.append(params.data)

    async with connected(client={"logging_callback": note}) as client:
        await describe(client, "desk.hold")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, client, "print('before')\nawait tools.desk.hold()\nprint('after')")
            await reached.wait()
            request = t.SetLevelRequest(params=t.SetLevelRequestParams(level="info"))
            await client.session.send_request(request, t.EmptyResult)
            go.set()
    assert logged == ["after\n"]


async def test_cancelling_the_request_stops_the_script_and_its_calls(connected, calls, started):
    async with connected() as client:
        await describe(client, "desk.wait")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, client, "from tools import desk\nawait desk.wait()")
            await started.wait()
            tasks.cancel_scope.cancel()
        while ("cancelled",) not in calls:
            await anyio.lowlevel.checkpoint()
        assert (await run(client, "1")).content[0].text == "1"


BAD_ARGUMENTS = {
    "nothing": ({}, "'code' is a required property. execute_code takes code, timeout, session. Correct"),
    "a wrong type": ({"code": 5}, "code: 5 is not of type 'string'"),
    "an unknown argument": (
        {"code": "1", "cod": "2"},
        "'cod' was unexpected). execute_code takes code, timeout, session. Correct",
    ),
    "a timeout of nothing": ({"code": "1", "timeout": 0}, "timeout: 0 is not a number of seconds up to 600"),
    "no number": ({"code": "1", "timeout": "9 s"}, "timeout: '9 s' is not of type 'number'"),
    "no number that is written plainly": ({"code": "1", "timeout": "9e9"}, "timeout: '9e9' is not of type 'number'"),
    "a timeout of nothing in quotes": ({"code": "1", "timeout": "0"}, "timeout: 0.0 is not a number of seconds"),
    "truth": ({"code": "1", "timeout": True}, "timeout: True is not of type 'number'"),
    "a foreign session": ({"code": "1", "session": "s_0"}, 'There is no session "s_0"'),
    "a script without end": ({"code": "#" * 2_097_153}, "the script has 2097153 characters"),
}


@pytest.mark.parametrize("case", BAD_ARGUMENTS)
async def test_bad_arguments_are_explained(connected, case):
    arguments, said = BAD_ARGUMENTS[case]
    async with connected() as client:
        result = await client.call_tool("execute_code", arguments)
    assert result.is_error
    assert said in result.content[0].text
    assert len(result.content[0].text) < 800


async def test_an_argument_that_is_null_is_left_out(connected):
    async with connected() as client:
        ran = await client.call_tool("execute_code", {"code": "1", "timeout": None, "session": None})
        found = await client.call_tool("search_tools", {"query": "add", "server": None, "limit": None, "cursor": None})
        lacking = await client.call_tool("execute_code", {"code": None})
    assert ran.content[0].text == "1"
    assert "desk.add" in found.content[0].text
    assert "'code' is a required property" in lacking.content[0].text


async def test_a_number_in_quotes_is_that_number(connected):
    async with connected() as client:
        ran = await client.call_tool("execute_code", {"code": "1", "timeout": "9.5"})
        found = await client.call_tool("search_tools", {"query": "", "detail": "name", "limit": "1"})
        wrong = await client.call_tool("search_tools", {"query": "", "limit": "1.5"})
    assert ran.content[0].text == "1"
    assert len([line for line in found.content[0].text.splitlines() if line.startswith("desk.")]) == 1
    assert "limit: '1.5' is not of type 'integer'. Correct the arguments" in wrong.content[0].text


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": "add", "server": "", "category": "", "cursor": "", "mode": "", "session": "", "limit": ""},
        {"query": "add", "limit": 5_000},
        {"query": "add", "detail": "Brief", "mode": "AUTO"},
        {"query": "add", "annotations": '{"readOnlyHint": true}'},
        {"server": "desk"},
    ],
)
async def test_a_search_is_taken_as_it_is_meant(connected, arguments):
    async with connected() as client:
        found = await client.call_tool("search_tools", arguments)
    assert not found.is_error
    assert ("desk.add" in found.content[0].text) == ("annotations" not in arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"query": "add", "annotations": "read-only"}, "annotations: 'read-only' is not of type 'object'. Correct"),
        ({"query": "add", "detail": "all"}, "detail: 'all' is not one of"),
        ({"query": "add", "limit": 0}, "The limit 0 cannot be used. Give a whole number from 1 to 200"),
        ({"query": "add", "limit": -1}, "The limit -1 cannot be used."),
    ],
)
async def test_a_search_that_can_mean_nothing_is_refused(connected, arguments, said):
    async with connected() as client:
        found = await client.call_tool("search_tools", arguments)
    assert found.is_error
    assert said in found.content[0].text


@pytest.mark.parametrize("seconds", [601, 1e300, 10**400, "900"])
async def test_a_longer_timeout_than_there_is_becomes_the_longest(connected, monkeypatch, seconds):
    monkeypatch.setattr("broker.surface.dispatch.LONGEST_SECONDS", 0.1)
    async with connected() as client:
        stopped = await client.call_tool("execute_code", {"code": "while True: pass", "timeout": seconds})
        within = await client.call_tool("execute_code", {"code": "1"})
    said = "timeout: a script gets 0.1 s at most. Pass timeout=0.1 or less, and split what takes longer."
    assert "limit wall_seconds=0.1." in stopped.content[0].text
    assert stopped.content[0].text.endswith(said)
    assert within.content[0].text == "1"


async def test_a_tool_of_a_server_called_directly_is_explained(connected):
    async with connected() as client:
        with pytest.raises(MCPError, match=r"Tools of servers are called in scripts") as caught:
            await client.call_tool("desk.add", {"a": 1})
    assert caught.value.code == -32602


async def test_runs_beyond_the_bound_wait_and_beyond_that_are_refused(connected, started):
    answers = []
    answered = anyio.Event()

    async def keep(client) -> None:
        answers.append((await run(client, "1")).content[0].text)
        answered.set()

    async with connected(runs_at_once=1, runs_waiting=1) as client:
        await describe(client, "desk.wait")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, client, "from tools import desk\nawait desk.wait()")
            await started.wait()
            tasks.start_soon(keep, client)
            tasks.start_soon(keep, client)
            await answered.wait()
            tasks.cancel_scope.cancel()
        # The server gives the places back when it has heard of the cancellation.
        while (answer := (await run(client, "2")).content[0].text) == tool_texts.TOO_MANY_RUNS:
            await anyio.lowlevel.checkpoint()
    assert (answer, answers) == ("2", [tool_texts.TOO_MANY_RUNS])


async def test_a_server_that_is_told_to_end_stops_its_runs_and_reports_them(served, mode, started):
    results = []
    async with served() as server, Client(server.mcp, mode=mode) as client:
        await describe(client, "desk.wait", "desk.add")

        async def keep() -> None:
            code = "from tools import desk\nprint('so far')\nawait desk.add(a=1)\nawait desk.wait()"
            results.append(await run(client, code))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keep)
            await started.wait()
            await server.runs.drain(0)
        after = await run(client, "1")
    [stopped] = results
    assert stopped.structured_content["stopped"]["limit"] == "shutdown"
    assert "the server is shutting down" in stopped.content[0].text
    assert "so far\ncalls: desk.add ok; desk.wait cancelled" in stopped.content[0].text
    assert after.content[0].text == "The server is shutting down. Nothing was executed; try again in a moment."


async def test_a_client_that_offers_its_model_is_asked_by_extract(connected):
    asked = []

    async def sample(_context, params: t.CreateMessageRequestParams) -> t.CreateMessageResult:
        asked.append(params)
        content = t.TextContent(type="text", text='```json\n{"age": 36}\n```')
        return t.CreateMessageResult(role="assistant", content=content, model="stub")

    code = "from typing import TypedDict\nclass Person(TypedDict):\n    age: int\nawait extract('Ada is 36', Person)"
    async with connected(client={"sampling_callback": sample}) as client:
        result = await run(client, code)
    assert result.structured_content["value"] == {"age": 36}
    assert "Ada is 36" in asked[0].model_dump_json()


TEXT, PROSE = (t.TextContent(type="text", text=text) for text in ("36", "She is 36."))
PICTURE = t.ImageContent(type="image", data="AAAA", mime_type="image/png")


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (t.CreateMessageResultWithTools(role="assistant", content=[TEXT], model="stub"), "36"),
        (t.CreateMessageResult(role="assistant", content=PICTURE, model="stub"), "it is no JSON"),
        (t.CreateMessageResult(role="assistant", content=PROSE, model="stub"), "it is no JSON"),
    ],
    ids=["a list of one text", "a picture", "prose"],
)
async def test_whatever_a_clients_model_answers_is_read_or_called_what_it_is(connected, answer, found):
    async def sample(_context, _params):
        return answer

    async with connected(client={"sampling_callback": sample}) as client:
        code = "try:\n    said = await extract('Ada is 36', int)\nexcept Exception as e:\n    said = e\nstr(said)"
        result = await run(client, code)
    assert found in result.structured_content["value"]


async def test_extractions_at_once_are_answered_each(connected):
    async def sample(_context, params: t.CreateMessageRequestParams) -> t.CreateMessageResult:
        asked = params.messages[0].content
        assert isinstance(asked, t.TextContent)
        number = asked.text.rpartition("number ")[2]
        return t.CreateMessageResult(role="assistant", content=t.TextContent(type="text", text=number), model="stub")

    code = "import asyncio\nawait asyncio.gather(*(extract(f'number {n}', int) for n in range(4)))"
    async with connected(client={"sampling_callback": sample}) as client:
        result = await run(client, code)
    assert result.structured_content["value"] == [0, 1, 2, 3]


@pytest.mark.parametrize("mode", ["legacy"])
async def test_what_a_client_says_in_an_error_instead_of_its_model_is_not_logged(connected, caplog):
    async def sample(_context, _params):
        return t.ErrorData(code=-1, message="no\n2026-11-28T12:00:00Z [error    ] the store is gone \x1b[31m")

    with caplog.at_level("WARNING", "codemode"):
        async with connected(client={"sampling_callback": sample}) as client:
            result = await run(client, "await extract('Ada is 36', int)")
    assert "extract() failed: the model gave no usable answer" in result.content[0].text
    [logged] = [record for record in caplog.records if record.name == "codemode"]
    assert "the client answered sampling/createMessage with error -1" in logged.getMessage()
    assert logged.exc_info is None
    assert "store" not in caplog.text


async def test_without_a_model_extract_says_so(connected):
    async with connected() as client:
        result = await run(client, "await extract('x', int)")
    assert "extract() is not available" in result.content[0].text


async def test_what_an_unforeseen_exception_says_reaches_no_client(desk_server, mode, caplog):
    faults = [FileNotFoundError(2, "No such file", "/home/someone/settings")]

    def make_session(_principal):
        if faults:
            raise faults.pop()
        return broker.session(grants=[Grant("*")])

    async with (
        Broker(servers={"desk": desk_server}) as broker,
        Client(BrokerServer(broker, make_session=make_session).mcp, mode=mode) as client,
    ):
        with pytest.raises(MCPError) as caught:
            await client.call_tool("search_tools", {"query": "add"})
        assert (caught.value.error.code, caught.value.error.message) == (t.INTERNAL_ERROR, UNFORESEEN)
        said = r"method='tools/call' error='FileNotFoundError' place='test_server\.py:\d+ in make_session'"
        assert re.search(said, caplog.text)
        assert "someone" not in caplog.text
        assert not (await client.call_tool("search_tools", {"query": "add"})).is_error
