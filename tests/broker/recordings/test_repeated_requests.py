"""A request that a client of `codemode serve` repeats after the server was killed: its run goes on, in both eras."""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import anyio
import anyio.lowlevel
import mcp.types as t
import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client

from broker import Broker, Config, Grant, ServerConfig, Verdict
from broker.server import BrokerServer, ServeSettings
from tests.broker.servers.plain import plain

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.anyio

CODEMODE = Path(sys.executable).with_name("codemode")
CODE = """
from tools import counting
print("first", await counting.log(n=1))
await counting.log(n=2)
"""


def accept(**content) -> t.ElicitResult:
    return t.ElicitResult(action="accept", content=content)


@pytest.fixture
def served(tmp_path, data_home):
    """Connects a client to a server process of its own; `kill` in the block ends that as `kill -9` does."""
    log = tmp_path / "calls.log"
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"counting": plain("counting", CALL_LOG=str(log))}}))
    pid = tmp_path / "pid"
    command = f'echo $$ > "{pid}"; exec "{CODEMODE}" serve --config "{tmp_path / "mcp.json"}"'
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "XDG_DATA_HOME": data_home}
    parameters = StdioServerParameters(command="sh", args=["-c", command], env=environment)

    @asynccontextmanager
    async def connect(mode, person):
        with anyio.fail_after(90):
            async with Client(stdio_client(parameters), mode=mode, elicitation_callback=person) as client:
                await client.call_tool("get_tool_details", {"tools": ["counting.log"]})
                yield client, lambda number=signal.SIGKILL: os.kill(int(pid.read_text()), number)

    connect.log = log  # type: ignore[attr-defined]
    return connect


async def never(_ctx, _params) -> t.ElicitResult:
    raise AssertionError("nobody is asked here")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_the_answer_to_a_form_of_a_server_that_ended_takes_its_run_up(served, number):
    yes = accept(tool_1="allow these calls")

    async def call(client, **more):
        return await client.session.call_tool("execute_code", {"code": CODE}, allow_input_required=True, **more)

    async with served("auto", never) as (client, kill):
        first = await call(client)
        assert isinstance(first, t.InputRequiredResult)
        [key] = first.input_requests or {}
        second = await call(client, input_responses={key: yes}, request_state=first.request_state)
        assert isinstance(second, t.InputRequiredResult)
        kill(number)
    assert served.log.read_text().split() == ["1"]
    async with served("auto", never) as (client, _):
        [key] = second.input_requests or {}
        with pytest.raises(MCPError, match="of no run that waits"):
            await client.session.call_tool(
                "execute_code",
                {"code": "1"},
                input_responses={key: yes},
                request_state=second.request_state,
                allow_input_required=True,
            )
        # The answer to the question before is none to this one: it is asked again.
        [old] = first.input_requests or {}
        asked = await call(client, input_responses={old: yes}, request_state=second.request_state)
        assert isinstance(asked, t.InputRequiredResult)
        assert asked.input_requests == second.input_requests
        done = await call(client, input_responses={key: yes}, request_state=second.request_state)
        assert isinstance(done, t.CallToolResult)
        envelope = done.structured_content or {}
        assert (envelope["outcome"], envelope["value"], envelope["stdout"]) == ("completed", 2, "first 1\n")
    assert served.log.read_text().split() == ["1", "2"]


class Person:
    """Allows every call, and lets one of `ends` happen at each question about the second, as long as there are any."""

    def __init__(self) -> None:
        self.forms: list[str] = []
        self.ends: list[Callable[[], None]] = []

    async def __call__(self, _ctx, params) -> t.ElicitResult:
        self.forms.append(params.message)
        if "n=2" in params.message and self.ends:
            self.ends.pop()()
            await anyio.sleep_forever()
        return accept(tool_1="allow these calls")


@pytest.fixture
async def interrupted(served):
    """The person of an older client whose server was killed at the question about the second call."""
    person = Person()
    async with served("legacy", person) as (client, kill):
        person.ends.append(kill)
        with pytest.raises(MCPError, match="Connection closed"):
            await client.call_tool("execute_code", {"code": CODE})
    assert served.log.read_text().split() == ["1"]
    return person


async def test_an_older_client_that_calls_again_is_asked_again_and_nothing_is_repeated(served, interrupted):
    async with served("legacy", interrupted) as (client, _):
        result = await client.call_tool("execute_code", {"code": CODE})
    assert (result.structured_content or {})["value"] == 2
    forms = interrupted.forms
    assert ["n=1" in forms[0], *("n=2" in form for form in forms[1:])] == [True, True, True]
    assert served.log.read_text().split() == ["1", "2"]


async def test_a_run_that_was_taken_up_and_is_stopped_again_tells_all_that_it_has_printed(served, interrupted):
    async with served("legacy", interrupted) as (client, kill):
        interrupted.ends.append(lambda: kill(signal.SIGTERM))
        result = await client.call_tool("execute_code", {"code": CODE})
    envelope = result.structured_content or {}
    assert (envelope["stopped"]["limit"], envelope["stdout"]) == ("shutdown", "first 1\n")
    assert served.log.read_text().split() == ["1"]


async def allow_these(_ctx, _params) -> t.ElicitResult:
    return accept(tool_1="allow these calls")


WAYS = pytest.mark.parametrize(
    ("person", "mode"),
    [(allow_these, "legacy"), (allow_these, "auto"), (None, "legacy"), (None, "auto")],
    ids=lambda value: getattr(value, "__name__", str(value)),
)


@pytest.fixture
def again(opened, calls):
    """Makes one call as an older client of a server of its own; returns its result and what reached the tools."""

    async def call(
        person: Any = allow_these, mode: Literal["legacy", "auto"] = "legacy", before: Any = None, times: int = 1
    ):
        calls.clear()  # before a run can be resumed in the background
        async with opened() as broker:
            server = BrokerServer(
                broker, ServeSettings(), make_session=lambda _: broker.session(grants=[] if person else [Grant("*")])
            )
            if before is not None:
                await before(broker)
            async with Client(server.mcp, mode=mode, elicitation_callback=person) as client:
                await client.call_tool("get_tool_details", {"tools": ["desk.add"]})
                code = "from tools import desk\n[await desk.add(a=n) for n in range(2)]"
                results = []

                async def execute() -> None:
                    results.append(await client.call_tool("execute_code", {"code": code}))

                async with anyio.create_task_group() as tasks:
                    for _ in range(times):
                        tasks.start_soon(execute)
                return results[0] if times == 1 else results, [a for _, a, _ in calls]

    return call


@pytest.fixture
def leave_waiting(store, recordings):
    """Leave a run, the newest if none is named, as a process does that is killed when it has written so many lines.

    Of its questions the second, if nothing else is said.
    """
    begun: dict[int, str] = {}

    def leave(event: str = "asked", count: int = 2, run: str = "last") -> str:
        entry = recordings.find(run)
        [(request,)] = store.execute("SELECT request FROM recording WHERE id = ?", (entry.id,))
        request = begun.setdefault(entry.id, request)
        lines = list(recordings.content.lines(entry.id))
        places = [number for number, line in enumerate(lines) if line.startswith(f'{{"event":"{event}"')]
        store.execute("DELETE FROM recording_line WHERE recording = ? AND number > ?", (entry.id, places[count - 1]))
        store.execute(
            "UPDATE recording SET state = 'running', owner = 'gone', ended = NULL, was_resumed = 0, request = ? "
            "WHERE id = ?",
            (request, entry.id),
        )
        return str(entry.run_id)

    return leave


async def test_the_same_call_of_an_older_client_is_a_new_one_after_an_hour(again, leave_waiting, store):
    assert (await again())[1] == [0, 1]
    leave_waiting()
    assert (await again())[1] == [1]
    leave_waiting()
    store.execute("UPDATE recording SET began = began - 3601 * 1000000000")
    assert (await again())[1] == [0, 1]


@WAYS
async def test_a_run_that_died_while_it_waited_for_nobody_is_found_by_the_same_call(
    again, leave_waiting, recordings, person, mode
):
    assert (await again(person, mode))[1] == [0, 1]
    run = leave_waiting("answered", 1)
    result, made = await again(person, mode)
    assert ((result.structured_content or {})["value"], made) == ([2, 3], [1])
    assert [entry.run_id for entry in recordings.entries()] == [run]
    assert (await again(person, mode))[1] == [0, 1], "its client has the result: the next call is a new one"


@WAYS
@pytest.mark.parametrize("automatic", [False, True])
async def test_of_equal_calls_that_are_repeated_at_once_each_goes_on_with_a_run_of_its_own(
    world, person, mode, automatic
):
    again, leave_waiting, recordings = world("again", "leave_waiting", "recordings")

    async def resume(broker) -> None:
        assert broker.resume_interrupted() == 2

    await again(person, mode, times=2)
    runs = {leave_waiting("answered", 1, entry.run_id) for entry in recordings.entries()}
    results, made = await again(person, mode, resume if automatic else None, times=2)
    assert ([(one.structured_content or {})["value"] for one in results], made) == ([[2, 3]] * 2, [1, 1])
    assert {entry.run_id: entry.state for entry in recordings.entries()} == dict.fromkeys(runs, "completed")
    assert len(runs) == 2
    assert (await again(person, mode))[1] == [0, 1], "their client has both results"


async def test_a_call_that_is_repeated_goes_on_with_a_run_that_no_other_process_goes_on_with(
    again, leave_waiting, recordings, opened
):
    await again(times=2)
    newer, older = [leave_waiting(run=entry.run_id) for entry in recordings.entries()]
    elsewhere = []

    class Repeating:
        async def answer(self, question):
            elsewhere.append(await again())
            return [Verdict(tuple(range(len(question.calls))), allow=True)]

    async with opened() as broker:
        assert (await broker.session(answerer=Repeating()).resume(newer)).value == [2, 3]
    [(result, made)] = elsewhere
    assert ((result.structured_content or {})["value"], made) == ([2, 3], [1])
    assert recordings.find(older).state == "completed"


async def test_a_call_that_is_repeated_while_its_run_is_resumed_in_the_background_waits_for_that(
    again, leave_waiting, recordings
):
    await again(None)
    run = leave_waiting("answered", 1)

    async def resume(broker) -> None:
        assert broker.resume_interrupted() == 1

    result, made = await again(None, before=resume)
    assert ((result.structured_content or {})["value"], made) == ([2, 3], [1])
    assert [entry.run_id for entry in recordings.entries()] == [run]


async def test_a_call_that_is_repeated_while_its_server_is_down_leaves_the_run_for_the_next(
    again, leave_waiting, recordings, store
):
    await again(None)
    run = leave_waiting("answered", 1)
    before = recordings.find(run)
    code = "from tools import desk\n[await desk.add(a=n) for n in range(2)]"
    down = Config(servers={"desk": ServerConfig(command="/nowhere/no-such-program")})
    async with Broker(down, store=store) as broker:
        server = BrokerServer(broker, ServeSettings(), make_session=lambda _: broker.session(grants=[Grant("*")]))
        async with Client(server.mcp, mode="legacy") as client:
            told = await client.call_tool("execute_code", {"code": code})
    [block] = told.content
    assert told.is_error
    assert isinstance(block, t.TextContent)
    assert "was not continued, because its server desk is not available. It stays as it is: send the same" in block.text
    assert "nowhere" not in block.text
    assert recordings.find(run) == before
    result, made = await again(None)
    assert ((result.structured_content or {})["value"], made) == ([2, 3], [1])
    assert [entry.run_id for entry in recordings.entries()] == [run]


async def test_a_call_that_is_repeated_after_its_run_was_resumed_in_the_background_gets_its_result_once(
    again, leave_waiting, recordings
):
    await again(None)
    leave_waiting("answered", 1)

    async def resume(broker) -> None:
        broker.resume_interrupted()
        while recordings.find("last").state != "completed":
            await anyio.lowlevel.checkpoint()

    result, made = await again(None, before=resume)
    assert ((result.structured_content or {})["value"], made) == ([2, 3], [1]), "made once, in the background"
    assert (await again(None))[1] == [0, 1]


@pytest.mark.parametrize("ends", [True, False])
async def test_a_run_that_was_ended_with_its_server_goes_on_and_one_that_was_ended_on_purpose_does_not(
    opened, calls, recordings, ends
):
    async with opened() as broker:
        server = BrokerServer(broker, ServeSettings(), make_session=lambda _: broker.session(grants=[Grant("*")]))
        async with Client(server.mcp) as client:
            await client.call_tool("get_tool_details", {"tools": ["desk.add", "desk.wait"]})

            async def wait() -> None:
                code = "from tools import desk\nawait desk.add(a=1)\nawait desk.wait()"
                await client.call_tool("execute_code", {"code": code})

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                while ("wait",) not in calls:
                    await anyio.lowlevel.checkpoint()
                if ends:
                    server.settings = server.settings.model_copy(update={"grace_seconds": 0})
                    await server.drain()
                else:
                    tasks.cancel_scope.cancel()
    found = recordings.find("last")
    assert (found.state, found.has_crashed) == ("interrupted", ends)


async def test_a_client_whose_run_went_on_elsewhere_is_told_once_that_it_has_ended(again, leave_waiting, resume):
    await again(None)
    run = leave_waiting("answered", 1)
    assert (await resume(run)).value == [2, 3]
    refused, made = await again(None)
    assert (refused.is_error, "has ended: completed" in refused.content[0].text, made) == (True, True, [])
    assert (await again(None))[1] == [0, 1]


async def test_a_client_is_told_once_that_its_run_cannot_go_on(again, leave_waiting, store, recordings):
    await again()
    run = leave_waiting()
    image = next(recordings.content.lines(recordings.find(run).id)).partition('"image":"')[2].partition('"')[0]
    store.execute("UPDATE recording_line SET line = replace(line, ?, ?)", (image, "0" * len(image)))
    refused, made = await again()
    assert (refused.is_error, "cannot be resumed" in refused.content[0].text, made) == (True, True, [])
    assert (await again())[1] == [0, 1]
    assert recordings.find(run).state == "interrupted"


async def test_a_call_that_is_repeated_while_its_run_was_resumed_runs_nothing_twice(
    again, leave_waiting, opened, calls, recordings
):
    await again()
    run = leave_waiting()
    refused = []

    class Repeating:
        async def answer(self, question):
            refused.extend(await again())
            return [Verdict(tuple(range(len(question.calls))), allow=True)]

    async with opened() as broker:
        result = await broker.session(answerer=Repeating()).resume(run)
    assert (result.value, calls) == ([2, 3], [("add", 1, 2)])
    assert (refused[0].is_error, refused[1]) == (True, [])
    assert [entry.run_id for entry in recordings.entries()] == [run]
