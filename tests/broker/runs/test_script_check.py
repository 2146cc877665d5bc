"""Scripts checked before they start: what stops one, what only warns, what is not looked at."""

from __future__ import annotations

import threading
from contextlib import asynccontextmanager

import anyio
import psutil
import pytest

from broker import Broker, Config, Grant
from broker.runs.script_check import SYNTAX, stops
from broker.texts.tool_texts import MESSAGE_CHARACTERS
from codegen import CheckerError, Diagnostic, TypeChecker

pytestmark = pytest.mark.anyio

MISTAKEN = """\
from tools import desk
print("started")
total = await desk.add(a=1)
total = await desk.add(a=total, c=2)
await desk.ad(a=3)
"""
FOUND = """\
The check found 2 mistakes, as line:column:
  4:33: add has no parameter `c` (it takes: a, b)
  5:7: there is no tool `ad` in tools.desk (did you mean `add`?)"""


@pytest.fixture
def opened(desk_server, faulty):
    """A broker with the server `desk`, and one that exits at once."""

    @asynccontextmanager
    async def open_broker():
        with anyio.fail_after(60):
            async with Broker(Config(servers={"broken": faulty("exits")}), servers={"desk": desk_server}) as broker:
                yield broker

    return open_broker


@pytest.fixture
def no_checker(monkeypatch):
    """The type checker is not installed."""
    monkeypatch.setattr("codegen.checking.language_server.find_ty_bin", lambda: "/nowhere/ty")


async def run(broker, script, **settings):
    session = broker.session(grants=[Grant("*")])
    return await session.execute_code(script, describe_references=True, **settings)


async def check(broker, script):
    return await broker.session().check_code(script, describe_references=True)


async def test_a_script_with_mistakes_is_not_started_and_calls_nothing(opened, calls):
    async with opened() as broker:
        result = await run(broker, MISTAKEN)
    assert (result.outcome, result.error.type) == ("raised", "ScriptCheckError")
    assert result.error.message == f"The script was not started, nothing was executed. {FOUND}"
    assert result.error.traceback == f"ScriptCheckError: {result.error.message}\n"
    assert (result.stdout, result.calls, calls, result.usage["steps"]) == ("", [], [], 0)


async def test_the_script_mended_as_told_is_run(opened, calls):
    async with opened() as broker:
        result = await run(broker, MISTAKEN.replace("c=2", "b=2").replace(".ad(", ".add("))
    assert (result.outcome, result.stderr) == ("completed", "")
    assert calls == [("add", 1, 2), ("add", 3, 2), ("add", 3, 2)]


async def test_with_warn_the_mistakes_are_on_stderr_and_the_script_runs(opened, calls):
    shown = []
    script = MISTAKEN.replace("await desk.ad(a=3)", "import sys; print('end', file=sys.stderr)")
    async with opened() as broker:
        result = await run(broker, script, check="warn", on_output=lambda *piece: shown.append(piece))
    assert result.error.type == "ToolArgumentsError"
    warned = "The check found 1 mistake, as line:column:\n  4:33: add has no parameter `c` (it takes: a, b)\n"
    assert (result.stdout, result.stderr) == ("started\n", warned)
    assert shown[0] == ("stderr", warned)
    assert calls == [("add", 1, 2)]


async def test_with_off_nobody_looks(opened, calls):
    async with opened() as broker:
        result = await run(broker, MISTAKEN, check="off")
    assert (result.error.type, result.stdout, result.stderr) == ("ToolArgumentsError", "started\n", "")
    assert calls == [("add", 1, 2)]


async def test_another_word_is_refused(opened):
    async with opened() as broker:
        with pytest.raises(ValueError, match="check is one of 'error', 'warn', 'off', not 'no'"):
            await run(broker, "1", check="no")


async def test_a_script_that_names_no_tool_is_not_checked(opened):
    async with opened() as broker:
        result = await run(broker, "print('started')\nnowhere")
    assert (result.error.type, result.stdout) == ("NameError", "started\n")


@pytest.mark.parametrize("line", ["break", "def f(): return await desk.add(a=1)", "x = ("])
async def test_a_syntax_error_stays_pythons_own(opened, line):
    async with opened() as broker:
        result = await run(broker, f"from tools import desk\nprint('started')\n{line}")
    assert (result.error.type, result.stdout) == ("SyntaxError", "")
    assert 'File "script.py", line 3' in result.error.traceback


async def test_at_most_twenty_mistakes_are_told(opened):
    async with opened() as broker:
        result = await run(broker, "from tools import desk\n" + "await desk.ad()\n" * 30)
    lines = result.error.message.splitlines()
    assert lines[0].endswith("The check found at least 20 mistakes, as line:column:")
    assert len(lines) - 2 == len([line for line in lines if "there is no tool" in line]) > 5
    assert lines[-1] == f"  and {20 - (len(lines) - 2)} more: correct these first"
    assert len(result.error.message) < MESSAGE_CHARACTERS


async def test_what_a_script_catches_of_a_server_that_is_down_is_no_mistake(opened):
    script = """
from tools import broken, desk, ToolUnavailableError
try:
    await broken.anything(x=1)
except ToolUnavailableError:
    total = await desk.add(a=1)
total
"""
    async with opened() as broker:
        result = await run(broker, script)
    assert (result.outcome, result.value) == ("completed", 3)


@pytest.mark.usefixtures("no_checker")
async def test_a_script_that_cannot_be_checked_is_run_and_logged(opened, calls, caplog):
    async with opened() as broker:
        result = await run(broker, "from tools import desk\nawait desk.add(a=1)")
    assert (result.value, result.stderr, calls) == (3, "", [("add", 1, 2)])
    assert "the script was not checked" in caplog.text


async def test_checking_alone_runs_nothing(opened, calls):
    async with opened() as broker:
        checked = await check(broker, MISTAKEN)
    assert [(one.line, one.column, one.code) for one in checked.diagnostics] == [
        (4, 33, "unknown-argument"),
        (5, 7, "missing-attribute"),
    ]
    assert (checked.unchecked, calls) == ((), [])


async def test_a_tool_that_is_not_described_is_not_checked(opened):
    script = "from tools import desk\nawait desk.add(c=1)"
    async with opened() as broker:
        session = broker.session()
        assert (await session.check_code(script)).diagnostics == ()
        await session.get_tool_details(["desk.add"])
        assert len((await session.check_code(script)).diagnostics) == 2


async def test_checking_alone_tells_which_servers_are_down(opened):
    async with opened() as broker:
        checked = await check(broker, "from tools import broken\nawait broken.anything(x=1)")
    assert (checked.diagnostics, checked.unchecked) == ((), ("broken",))


@pytest.mark.parametrize(
    ("script", "line", "column"),
    [
        ("x = (\n", 1, 5),
        ("if True:\n    y = 1 1\n", 2, 11),
        ("if True:\n\ty = 1 1\n", 2, 8),
        ("a = 1\r\nb = 'x\r\n", 2, 5),
        ("x = 1\0", 1, 1),
    ],
    ids=["bracket", "spaces", "tab", "line ends", "nul"],
)
async def test_checking_alone_shows_where_python_cannot_read_on(opened, script, line, column):
    async with opened() as broker:
        [found] = (await check(broker, script)).diagnostics
    assert (found.line, found.column, found.code) == (line, column, "invalid-syntax")
    assert found.message.startswith("SyntaxError: ")


@pytest.mark.usefixtures("no_checker")
async def test_checking_alone_without_a_checker_is_an_error(opened):
    async with opened() as broker:
        with pytest.raises(CheckerError, match="could not be started"):
            await check(broker, "from tools import desk")


@pytest.mark.parametrize(
    ("codes", "is_stopped"), [([], False), ([SYNTAX], False), ([SYNTAX, "unknown-argument"], True)], ids=str
)
def test_a_script_is_left_to_python_only_where_its_syntax_alone_is_wrong(codes, is_stopped):
    assert stops([Diagnostic(1, 1, code, "", "") for code in codes]) is is_stopped


@pytest.mark.parametrize("opens_sandbox", [True, False])
async def test_the_checker_is_started_beside_the_servers_where_scripts_are_to_come(
    desk_server, monkeypatch, opens_sandbox
):
    prepared, prepare = threading.Event(), TypeChecker.prepare

    def prepare_and_say(checker):
        prepare(checker)
        prepared.set()

    monkeypatch.setattr(TypeChecker, "prepare", prepare_and_say)
    with anyio.fail_after(60):
        async with Broker(servers={"desk": desk_server}, opens_sandbox=opens_sandbox) as broker:
            if opens_sandbox:
                await anyio.to_thread.run_sync(prepared.wait)
            before = checkers()
            await check(broker, MISTAKEN)
            assert len(checkers()) == 1
            assert before == (checkers() if opens_sandbox else [])
    assert checkers() == []


def checkers() -> list[psutil.Process]:
    """The processes of `ty` that this one has started."""
    return [child for child in psutil.Process().children() if child.name().startswith("ty")]
