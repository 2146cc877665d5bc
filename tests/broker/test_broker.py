"""Scripts across servers of this process, through the sandbox: what a script sees and what is on record."""

from __future__ import annotations

import ast
import inspect
import math
import re
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import fields
from pathlib import Path

import anyio
import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

import broker as broker_package
from broker import Broker, Config, Denial, ExecutionError, ExecutionResult, Grant, Question, Session, errors
from broker.calls.attempts import CallRecord
from broker.errors import ConfigError, PatternError
from broker.runs.envelope import StoppedBy
from sandbox import Limits, Sandbox

pytestmark = pytest.mark.anyio


@pytest.fixture
def desk_server(calls, desk_server):
    @desk_server.tool(structured_output=False)
    def note(text: str) -> str:
        """Keeps a note."""
        calls.append(("note", text))
        return f"kept {text}"

    return desk_server


@pytest.fixture
def opened(desk_server, faulty):
    """A broker with the server `desk`, and one that exits at once."""

    @asynccontextmanager
    async def open_broker(**servers):
        with anyio.fail_after(60):
            config = Config(servers={"broken": faulty("exits")})
            async with Broker(config, servers={"desk": desk_server, **servers}) as broker:
                yield broker

    return open_broker


def error_of(result: ExecutionResult) -> ExecutionError:
    assert result.error is not None
    return result.error


def records(result: ExecutionResult) -> list[tuple[str, str, str]]:
    return [(f"{call.server}.{call.tool}", call.decision, call.status) for call in result.calls]


async def run(broker: Broker, script: str, *allowed: str, answerer=None, **settings) -> ExecutionResult:
    session = broker.session(grants=map(Grant, allowed), answerer=answerer)
    return await session.execute_code(script, describe_references=True, **settings)


async def test_a_script_calls_tools_and_its_calls_are_on_record(opened, calls):
    script = """
import asyncio
from tools import desk
sums = await asyncio.gather(*(desk.add(a=n) for n in range(3)))
print(await desk.note(text="x"))
sums
"""
    async with opened() as broker:
        result = await run(broker, script, "desk.*")
    assert (result.outcome, result.value, result.stdout) == ("completed", [2, 3, 4], "kept x\n")
    assert sorted(calls) == [("add", 0, 2), ("add", 1, 2), ("add", 2, 2), ("note", "x")]
    assert records(result) == [("desk.add", "allowed", "ok")] * 3 + [("desk.note", "allowed", "ok")]


async def test_nothing_is_called_without_a_grant(opened, calls):
    async with opened() as broker:
        result = await run(broker, "from tools import desk\nawait desk.add(a=1)", "desk.note", "other.*")
    assert (result.outcome, error_of(result).type, result.is_refused) == ("raised", "ToolRefusedError", True)
    assert error_of(result).message == (
        "desk.add was not called: nobody has allowed it and nobody is there to ask. Allow it beforehand, as with "
        "--allow 'desk.add'."
    )
    assert records(result) == [("desk.add", "denied", "refused")]
    assert calls == []


async def test_a_refusal_inside_a_task_group_is_a_refusal(opened):
    script = """
import asyncio
from tools import desk
async with asyncio.TaskGroup() as group:
    group.create_task(desk.add(a=1))
"""
    async with opened() as broker:
        result = await run(broker, script)
    assert (error_of(result).type, result.is_refused) == ("ExceptionGroup", True)


async def test_a_script_may_catch_a_refusal_and_go_on(opened):
    script = """
from tools import desk, ToolRefusedError
try:
    await desk.add(a=1)
except PermissionError as error:
    caught = isinstance(error, ToolRefusedError), error.server, error.tool
caught
"""
    async with opened() as broker:
        result = await run(broker, script)
    assert (result.outcome, result.value, result.is_refused) == ("completed", [True, "desk", "add"], False)


async def test_the_pending_calls_of_a_script_are_asked_about_together(opened, calls):
    class Person:
        def __init__(self):
            self.questions: list[Question] = []

        async def answer(self, question):
            self.questions.append(question)
            return [Grant("desk.add"), Denial("desk.note", "not now")]

    script = """
import asyncio
from tools import desk
await asyncio.gather(desk.add(a=1), desk.add(a=2), desk.note(text="x"), return_exceptions=True)
await desk.add(a=3)
"""
    person = Person()
    async with opened() as broker:
        result = await run(broker, script, answerer=person)
    assert result.value == 5
    assert [[call.qualified_name for call in asked.calls] for asked in person.questions] == [
        ["desk.add", "desk.add", "desk.note"]
    ]
    assert [call[0] for call in calls] == ["add"] * 3
    assert ("desk.note", "denied", "refused") in records(result)


async def test_time_for_an_answer_is_not_time_of_the_script(opened):
    class Slow:
        async def answer(self, _question):
            await anyio.sleep(0.6)
            return [Grant("*")]

    async with opened() as broker:
        result = await run(
            broker,
            "from tools import desk\nawait desk.add(a=1)",
            answerer=Slow(),
            limits=Limits(wall_seconds=0.5),
        )
    assert result.outcome == "completed"


BROKEN = 'it exited with code 3; its last words: "missing the setting PROJECT"'

FAILING = {
    "the tool fails": (
        "await desk.fail(reason='x')",
        "ToolError",
        "[text of desk] Error executing tool fail: failed: x",
        ("desk.fail", "allowed", "tool_error"),
    ),
    "wrong arguments": (
        "await desk.add(a='one')",
        "ToolArgumentsError",
        "desk.add() was not called: a: 'one' is not of type 'integer'",
        ("desk.add", "undecided", "bad_arguments"),
    ),
    "the server is down": (
        "await broken.echo(text='x')",
        "ToolUnavailableError",
        (
            f"broken is not available: {BROKEN}. Nothing was sent. Do without it, or call again once "
            'search_tools({"query": "", "server": "broken"}) says this no more.'
        ),
        ("broken.echo", "undecided", "unavailable"),
    ),
}


@pytest.mark.parametrize("case", FAILING)
async def test_a_call_that_fails_raises_in_the_script(opened, case):
    line, kind, message, record = FAILING[case]
    async with opened() as broker:
        result = await run(broker, f"from tools import desk, broken\n{line}", "*", check="off")
    assert (error_of(result).type, error_of(result).message) == (kind, message)
    assert records(result) == [record]


async def test_a_server_that_is_down_leaves_the_others_usable(opened):
    script = """
from tools import broken, desk, ToolUnavailableError
try:
    await broken.echo(text="x")
except ToolUnavailableError:
    total = await desk.add(a=1)
total
"""
    async with opened() as broker:
        assert [(status.name, status.state) for status in broker.server_statuses()] == [
            ("broken", "down"),
            ("desk", "ready"),
        ]
        result = await run(broker, script, "*")
    assert (result.outcome, result.value) == ("completed", 3)


async def test_a_slow_server_does_not_delay_the_others(faulty, desk_server):
    config = Config(servers={"silent": faulty("silent", connect_timeout_seconds=600)})
    with anyio.fail_after(60):
        async with Broker(config, servers={"desk": desk_server}, startup_seconds=0) as broker:
            result = await run(broker, "from tools import desk\nawait desk.add(a=1)", "*")
            assert result.value == 3
            assert broker.server_statuses()[0].state == "connecting"


async def test_a_tool_that_is_not_described_stops_the_script_before_it_starts(opened):
    script = "from tools import desk\nprint('started')\nawait desk.add(a=1)\nawait desk.note(text='x')"
    async with opened() as broker:
        session = broker.session(grants=[Grant("*")])
        refused = await session.execute_code(script)
        details = await session.get_tool_details(["desk.add", "desk.note", "desk.ad"])
        done = await session.execute_code(script)
    assert (error_of(refused).type, refused.stdout, refused.calls) == ("ToolDescriptionRequired", "", [])
    assert error_of(refused).message == (
        "The script was not started: these tools have not been described yet: desk.add (line 3), desk.note (line 4). "
        'Fetch them with get_tool_details({"tools": ["desk.add", "desk.note"]}) and run the script again.'
    )
    assert details.described == ("desk.add", "desk.note")
    assert details.unknown["desk.ad"][0] == "desk.add"
    assert "async def add(" in details.source
    assert done.outcome == "completed"


ADD_FIRST = "from tools import desk\nawait desk.add(a=1)\n"

NAMED_IN_PLAIN_SIGHT = {
    "a server under another name": "from tools import desk\nd = desk\nawait d.add(a=1)\nawait d.note(text='x')",
    "a module under another name": "import tools.desk as d\nawait d.add(a=1)\nawait d.note(text='x')",
    "an imported server": "from tools import desk as d\nawait d.add(a=1)\nawait d.note(text='x')",
    "imported tools": "from tools.desk import add as a, note as n\nawait a(a=1)\nawait n(text='x')",
    "a server of a module": "import tools.desk\nd = tools.desk\nawait d.add(a=1)\nawait d.note(text='x')",
    "a server of a renamed module": "import tools as t\nd = t.desk\nawait d.add(a=1)\nawait d.note(text='x')",
    "a name of a name": "from tools import desk\nc = desk\nd = c\nawait c.add(a=1)\nawait d.note(text='x')",
    "two names at once": "from tools import desk\nc = d = desk\nawait c.add(a=1)\nawait d.note(text='x')",
    "a name with a type": "import typing\nd: typing.Any = desk\nawait desk.add(a=1)\nawait d.note(text='x')",
    "a name in an expression": "await desk.add(a=1)\nawait (d := desk).note(text='x')",
    "a tool under another name": "from tools import desk\nn = desk.note\nawait desk.add(a=1)\nawait n(text='x')",
    "tools in a tuple": "a, n = desk.add, desk.note\nawait a(a=1)\nawait n(text='x')",
    "a loop over tools": "for f, k in ((desk.add, {'a': 1}), (desk.note, {'text': 'x'})):\n    await f(**k)",
    "a name in a function": "async def f():\n    d = desk\n    await d.note(text='x')\nawait desk.add(a=1)\nawait f()",
    "an import in a function": (
        "from tools import desk\nasync def f():\n    from tools import desk as d\n    await d.note(text='x')\n"
        "await desk.add(a=1)\nawait f()"
    ),
    "a name in a class": "class C:\n    d = desk\n    n = d.note\nawait desk.add(a=1)\nawait C.n(text='x')",
    "a comprehension": "d = desk\nawait desk.add(a=1)\n[await d.note(text=t) for t in 'x']",
    "a lambda": "d = desk\nf = lambda t: d.note(text=t)\nawait desk.add(a=1)\nawait f('x')",
    "all names": "from tools.desk import *\nawait add(a=1)\nawait note(text='x')",
    "all names, in a function": (
        "from tools.desk import *\nasync def f():\n    await note(text='x')\nawait add(a=1)\nawait f()"
    ),
    "all names, after those of a module": (
        "from math import *\nfrom tools.desk import *\nawait add(a=1)\nawait note(text='x')"
    ),
}

NAMED_OUT_OF_SIGHT = {
    "an argument": "async def f(d):\n    await d.note(text='x')\nawait f(desk)",
    "an attribute": "class C:\n    d = desk\nawait C.d.note(text='x')",
    "a container": "await {'d': desk}['d'].note(text='x')",
    "a loop over servers": "for d in [desk]:\n    await d.note(text='x')",
    "a comprehension over servers": "[await d.note(text='x') for d in [desk]]",
    "a computed name": "await getattr(desk, 'no' + 'te')(text='x')",
    "a name as text": "await getattr(desk, 'note')(text='x')",
    "a name with another value": "d = None\nd = desk\nawait d.note(text='x')",
    "a name of an argument elsewhere": "def f(d):\n    return d\nd = desk\nawait d.note(text='x')",
    "a server in a tuple": "d, e = desk, 1\nawait d.note(text='x')",
    "a choice": "d = desk if desk else None\nawait d.note(text='x')",
    "a result": "def f():\n    return desk\nawait f().note(text='x')",
    "an imported text": "import importlib\nawait importlib.import_module('tools.desk').note(text='x')",
    "all names, before those of a module": "from tools.desk import *\nfrom math import *\nawait note(text='x')",
}


@pytest.mark.parametrize("way", NAMED_IN_PLAIN_SIGHT)
async def test_tools_reached_by_another_name_stop_the_script_before_a_call_is_made(opened, way):
    async with opened() as broker:
        session = broker.session(grants=[Grant("*")])
        refused = [await session.execute_code(NAMED_IN_PLAIN_SIGHT[way])]
        await session.get_tool_details(["desk.add"])
        refused.append(await session.execute_code(NAMED_IN_PLAIN_SIGHT[way]))
        await session.get_tool_details(["desk.note"])
        done = await session.execute_code(NAMED_IN_PLAIN_SIGHT[way])
    assert [(error_of(one).type, one.calls) for one in refused] == [("ToolDescriptionRequired", [])] * 2
    messages = [error_of(one).message for one in refused]
    assert all(one.startswith("The script was not started: these tools have not been described") for one in messages)
    named = [set(re.findall(r"desk\.\w+(?= \(line)", message)) for message in messages]
    assert named == [{"desk.add", "desk.note"}, {"desk.note"}]
    assert (done.outcome, [call.tool for call in done.calls]) == ("completed", ["add", "note"])


@pytest.mark.parametrize("way", NAMED_OUT_OF_SIGHT)
async def test_a_tool_reached_out_of_sight_is_refused_when_it_is_called(opened, way):
    script = ADD_FIRST + NAMED_OUT_OF_SIGHT[way]
    async with opened() as broker:
        session = broker.session(grants=[Grant("*")])
        await session.get_tool_details(["desk.add"])
        refused = await session.execute_code(script)
        await session.get_tool_details(["desk.note"])
        done = await session.execute_code(script)
    assert (error_of(refused).type, [call.tool for call in refused.calls]) == ("ToolDescriptionRequired", ["add"])
    assert error_of(refused).message.startswith(
        "desk.note has not been described yet, so it cannot be called. Fetch it first: "
        'get_tool_details({"tools": ["desk.note"]})'
    )
    assert (done.outcome, [call.tool for call in done.calls]) == ("completed", ["add", "note"])


@pytest.mark.parametrize(
    "names",
    [
        "def g():\n    d = tools.desk\ndef f():\n    d = Pad()\n    return d.note(text='x')",
        "d = tools.desk\ndef f(d=Pad()):\n    return d.note(text='x')",
        "d = tools.desk\ndef f():\n    return [d.note(text='x') for d in [Pad()]]",
        "def f():\n    desk = Pad()\n    return desk.note(text='x')",
    ],
)
async def test_a_name_that_also_means_something_else_asks_for_no_description(opened, names):
    script = f"class Pad:\n    def note(self, text): return text\n{names}\nawait tools.desk.add(a=1)\nf()"
    async with opened() as broker:
        session = broker.session(grants=[Grant("*")])
        await session.get_tool_details(["desk.add"])
        done = await session.execute_code(script, check="off")
    assert (done.outcome, [call.tool for call in done.calls]) == ("completed", ["add"])


async def test_a_name_that_a_script_binds_is_no_tool_of_a_server_whose_names_it_imports(opened):
    script = "from tools.desk import *\ndef note(text): return text\nnote(text='x'), await add(a=1)"
    async with opened() as broker:
        session = broker.session(grants=[Grant("*")])
        await session.get_tool_details(["desk.add"])
        done = await session.execute_code(script)
    assert (done.value, [call.tool for call in done.calls]) == (["x", 3], ["add"])


@pytest.mark.parametrize(
    "script",
    [
        "from tools import desk\nawait desk.add(a=1)",
        "from tools.desk import add\nawait add(a=1)",
        "import tools\nawait tools.desk.add(a=1)",
        "await tools.desk.add(a=1)",
        "await tools.tools.tools()",
        "from tools.tools import tools\nawait tools()",
    ],
)
async def test_a_server_and_a_tool_named_tools_stand_in_nobodys_way(opened, script):
    def tools() -> int:
        return 1

    async with opened(tools=[tools]) as broker:
        result = await run(broker, script, "*")
    assert (result.outcome, [call.status for call in result.calls]) == ("completed", ["ok"])


async def test_a_tool_reached_by_a_computed_name_needs_its_description_too(opened):
    script = "import tools\nname = 'desk'\nawait getattr(getattr(tools, name), 'add')(a=1)"
    async with opened() as broker:
        result = await broker.session(grants=[Grant("*")]).execute_code(script)
    assert error_of(result).type == "ToolDescriptionRequired"
    assert 'get_tool_details({"tools": ["desk.add"]})' in error_of(result).message


async def test_of_a_server_that_the_script_does_not_spell_out_only_what_is_described_can_be_called(opened):
    spelled = "import tools\nserver = getattr(tools, 'de' + 'sk')\n"
    async with opened() as broker:
        session = broker.session(grants=[Grant("*")])
        await session.get_tool_details(["desk.add"])
        done = await session.execute_code(f"{spelled}await server.add(a=1)\ntools.__name__")
        refused = await session.execute_code(
            "x = tools = __import__('too' + 'ls')\nawait getattr(x, 'de' + 'sk').note()"
        )
        listed = await session.execute_code(f"{spelled}[name for name in dir(server) if name == 'note']")
    assert (done.outcome, len(done.calls)) == ("completed", 1)
    assert error_of(refused).type == "ToolDescriptionRequired"
    assert 'get_tool_details({"tools": ["desk.note"]})' in error_of(refused).message
    assert listed.value == ["note"]


async def test_a_tool_that_changed_since_it_was_described_is_not_called(faulty):
    script = """
from tools import changing
await changing.echo(text="first")
"""
    config = Config(servers={"changing": faulty("changes_listing")})
    with anyio.fail_after(60):
        async with Broker(config) as broker:
            session = broker.session(grants=[Grant("*")])
            await session.get_tool_details(["changing.echo"])
            before = broker.catalog.lookup("changing.echo").spec.digest
            assert (await session.execute_code(script)).value == "first"
            while broker.catalog.lookup("changing.echo").spec.digest == before:
                await anyio.lowlevel.checkpoint()
            assert error_of(await session.execute_code(script)).type == "ToolDescriptionRequired"


async def test_a_script_that_is_stopped_leaves_its_open_call_on_record(opened, calls):
    async with opened() as broker:
        result = await run(broker, "from tools import desk\nawait desk.wait()", "*", limits=Limits(wall_seconds=0.5))
    assert (result.outcome, result.stopped) == ("stopped", StoppedBy(limit="wall_seconds", amount=0.5, line=2))
    assert records(result) == [("desk.wait", "allowed", "cancelled")]
    assert calls == [("wait",)]


async def test_the_last_calls_that_are_the_same_are_counted(opened):
    pages = "from tools import desk\nfor page in range(5):\n    await desk.add(a=1)\n"
    endless = "while True:\n    await desk.add(a=2)\n"
    async with opened() as broker:
        ended = await run(broker, pages, "*")
        stopped = await run(broker, f"{pages}{endless}", "*", limits=Limits(calls=30))
        varied = await run(broker, pages.replace("a=1", "a=page"), "*")
    assert (ended.alike_calls, varied.alike_calls) == (5, 1)
    assert stopped.stopped is not None
    assert (stopped.stopped.limit, stopped.alike_calls) == ("calls", 25)


async def test_a_syntax_error_is_shown_as_python_shows_it(opened):
    async with opened() as broker:
        result = await run(broker, "x = (\n", filename="mine.py")
    assert error_of(result).traceback == (
        "  File \"mine.py\", line 1\n    x = (\n        ^\nSyntaxError: '(' was never closed\n"
    )


async def test_the_envelope_has_exactly_the_documented_keys(opened):
    async with opened() as broker:
        envelope = (await run(broker, "from tools import desk\nawait desk.add(a=1)", "*")).model_dump(mode="json")
    assert list(envelope) == [
        "outcome",
        "value",
        "stdout",
        "stderr",
        "error",
        "stopped",
        "calls",
        "usage",
        "run_id",
        "duration_ms",
    ]
    assert [name for name, used in envelope["usage"].items() if type(used) is int] == ["output_bytes", "calls", "steps"]
    assert [field.name for field in fields(CallRecord)] == ["server", "tool", "decision", "status", "duration_ms"]


async def test_sessions_share_neither_descriptions_nor_grants(opened):
    script = "from tools import desk\nawait desk.add(a=1)"
    async with opened() as broker:
        assert (await run(broker, script, "*")).outcome == "completed"
        other = await broker.session().execute_code(script)
    assert error_of(other).type == "ToolDescriptionRequired"


async def test_a_secret_of_the_config_is_kept_out_of_errors():
    script = "from tools import leaking\nawait leaking.echo(text='die')"
    text = """{"mcpServers": {"leaking": {"command": "sh", "args": ["-c", "echo key $KEY >&2; exit 1"],
               "env": {"KEY": "${UPSTREAM_KEY}"}}}}"""
    config = Config.parse(text, source="c", folder=Path(), environment={"UPSTREAM_KEY": "k3y-of-upstream"})
    with anyio.fail_after(60):
        async with Broker(config) as broker:
            result = await run(broker, script, "*")
            problem = broker.server_statuses()[0].problem
    assert problem == 'it exited with code 1; its last words: "key [redacted]"'
    assert "k3y-of-upstream" not in result.model_dump_json()


@pytest.mark.parametrize("name", ["a.b", "", "ToolError", "a b", "caf\u00e9"])
def test_a_server_has_a_name_that_is_no_others(name):
    with pytest.raises(ConfigError, match="servers: server "):
        Broker(servers={name: MCPServer("x")})


async def test_an_error_of_a_direct_call_names_no_folders_of_the_host():
    server = MCPServer("desk")

    @server.tool()
    def fail(path: str) -> str:
        """Fails."""
        raise ToolError(f"no {path} in /home/ada/shop/data")

    with anyio.fail_after(60):
        async with Broker(servers={"desk": server}, opens_sandbox=False) as broker:
            session = broker.session(grants=[Grant("desk.*")])
            await session.get_tool_details(["desk.fail"])
            answer = (await session.call_directly("desk.fail", {"path": "/my/own/file"})).answer
    assert answer is not None
    assert answer["isError"]
    assert answer["content"][0]["text"].endswith("no /my/own/file in <path>/data")


@pytest.mark.parametrize("arguments", [{"a": math.inf}, {"a": math.nan}, {"a": "\ud800"}, {"a": {1, 2}}])
async def test_arguments_of_a_direct_call_are_json_or_refused(desk_server, calls, arguments):
    with anyio.fail_after(60):
        async with Broker(servers={"desk": desk_server}, opens_sandbox=False) as broker:
            session = broker.session(grants=[Grant("desk.*")])
            await session.get_tool_details(["desk.add"])
            with pytest.raises(ValueError, match=r"the arguments cannot be written as JSON: .* as a set or a date"):
                await session.call_directly("desk.add", arguments)
            assert calls == []
            assert (await session.call_directly("desk.add", {"a": 1})).answer is not None


async def test_a_tool_that_a_server_comes_back_with_is_not_called_by_the_leave_for_the_one_before(faulty, tmp_path):
    log = tmp_path / "calls"
    server = faulty("comes_back_changed", env={"CALLS_LOG": str(log)})
    script = """
from tools import faulty, ToolError
found = []
for text in ("a", "die", "b"):
    try:
        found.append(await faulty.echo(text=text))
    except ToolError as error:
        found.append(type(error).__name__)
found
"""
    with anyio.fail_after(60):
        async with Broker(Config(servers={"faulty": server})) as broker:
            session = broker.session(grants=[Grant("faulty.*")])
            result = await session.execute_code(script, describe_references=True)
            assert result.value == ["a", "ToolOutcomeUnknown", "ToolDescriptionRequired"]
            assert log.read_text().splitlines() == ["started", '{"text": "a"}', '{"text": "die"}']
            again = await session.execute_code("from tools import faulty\nawait faulty.echo(text='c')")
            assert again.error is not None
            assert "changed: its description" in again.error.message


async def test_a_broker_takes_data_and_texts_as_well(desk_server):
    with pytest.raises(ConfigError, match="unknown key 'comand'; did you mean 'command'"):
        Broker.from_config({"mcpServers": {"x": {"comand": "y"}}})
    with pytest.raises(TypeError, match="from_config takes a file or its data"):
        Broker("mcp.json")  # type: ignore[arg-type]  # the mistake
    async with Broker.from_config({"mcpServers": {}}, servers={"desk": desk_server}) as broker:
        with pytest.raises(TypeError, match=r"write \['desk\.\*'\]"):
            broker.session(grants="desk.*")
        with pytest.raises(PatternError):
            broker.session(grants=["desk"])
        session = broker.session(grants=["desk.add"])
        assert (await session.get_tool_details("desk.add")).described == ("desk.add",)
        assert (await session.execute_code("from tools import desk\nawait desk.add(a=1)")).outcome == "completed"


def test_a_grant_for_a_scope_that_there_is_not_is_refused():
    with pytest.raises(PatternError, match="one of run, session, always"):
        Grant("desk.*", scope="forever")  # type: ignore[arg-type]  # the mistake


def test_names_that_are_not_loaded_yet_are_listed():
    script = "import broker\nassert set(broker.__all__) <= set(dir(broker))\nassert 'Broker' not in vars(broker)"
    subprocess.run([sys.executable, "-c", script], check=True)  # noqa: S603  # a script of this test


def test_every_public_name_can_be_loaded_and_is_known_to_type_checkers():
    tree = ast.parse(Path(str(broker_package.__file__)).read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module != "importlib"]
    typed = {alias.name for node in imports if node.module != "typing" for alias in node.names}
    assert typed == set(broker_package.__all__)
    assert list(broker_package._MODULES) == broker_package.__all__
    assert all(getattr(broker_package, name) is not None for name in broker_package.__all__)


def test_what_the_methods_say_that_they_raise_is_imported_from_the_package():
    methods = [one for kind in (Broker, Session) for one in vars(kind).values() if callable(one)]
    raised = set(re.findall(r"^ +(\w+Error): ", "\n".join(inspect.getdoc(one) or "" for one in methods), re.MULTILINE))
    ours = {name for name in raised if hasattr(errors, name)}
    assert len(ours) > 5
    assert ours <= set(broker_package.__all__)


async def test_a_server_that_ended_before_it_was_ready_is_not_said_to_have_no_such_tool(faulty):
    with anyio.fail_after(60):
        async with Broker(Config(servers={"silent": faulty("silent", connect_timeout_seconds=3600)})) as broker:
            session = broker.session(grants=[Grant("*")])
            broker.serving.end_servers()
            await broker.wait_until_settled()
            result = await session.execute_code("await silent.find()")
            details = await session.get_tool_details(["silent.find"])
    said = "silent is not available: it is stopped"
    assert (error_of(result).type, error_of(result).message.partition(".")[0]) == ("ToolUnavailableError", said)
    assert (details.unknown, details.unavailable) == ({}, {"silent.find": said})


async def test_the_duration_of_a_run_counts_its_check(desk_server, image):
    script = "from tools import desk\nif not desk:\n    await desk.add(a=1)"
    async with (
        Sandbox(cache=image.compiled.parent, isolation="thread") as sandbox,
        Broker(servers={"desk": desk_server}, sandbox=sandbox, opens_sandbox=False) as broker,
    ):
        await sandbox.run("1")
        began = time.monotonic()
        result = await broker.session().execute_code(script, describe_references=True)
        seconds = time.monotonic() - began
    assert result.outcome == "completed"
    assert result.duration_ms > 500 * seconds, "starting a checker takes far longer than the script"
