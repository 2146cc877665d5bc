"""How failures are told: in the script's own lines, and whatever an exception's own code does."""

from __future__ import annotations

import pytest

from sandbox import Completed, Failed

pytestmark = pytest.mark.anyio

LIES = """
class E(Exception):
    @property
    def __class__(self): return SystemExit
    code = 0
raise E('x')
"""
NO_ATTRIBUTES = """
class E(Exception):
    def __getattribute__(self, name): raise SystemExit(0)
raise E('x')
"""
NO_EXCEPTIONS = """
class G(ExceptionGroup):
    exceptions = 5
raise G('g', [ValueError(1)])
"""
NO_CODE = """
class E(SystemExit):
    @property
    def code(self): raise ValueError
raise E(3)
"""
FORGOTTEN = "from tools import good\ngood.echo(text='x')\n"


@pytest.mark.parametrize(
    ("script", "kind", "message"),
    [
        (LIES, "E", "x"),
        (NO_ATTRIBUTES, "E", "its message cannot be read: reading it raised SystemExit"),
        (NO_EXCEPTIONS, "G", "its message cannot be read: reading it raised TypeError"),
        (NO_CODE, "E", "3"),
        ("class M(MemoryError):\n    args = property(lambda _: 1 / 0)\nraise M('m')", "M", "m"),
        ("e = ValueError('m')\ne.__notes__ = 5\nraise e", "ValueError", "m\n5"),
        (f"{FORGOTTEN}e = ValueError('m')\ne.__notes__ = 5\nraise e", "ValueError", "m\n5"),
        ("e = ValueError('m: n')\ne.add_note('a\\nb')\ne.add_note('c')\nraise e", "ValueError", "m: n\na\nb\nc"),
        (
            "class N:\n    def __str__(self): 1 / 0\ne = ValueError('m')\ne.__notes__ = [N()]\nraise e",
            "ValueError",
            "m\n<note str() failed>",
        ),
    ],
)
async def test_whatever_an_exception_says_of_itself_its_class_is_told(raised, script, kind, message):
    told = await raised(script)
    assert (told.type, told.message) == (kind, message)
    assert told.traceback.endswith(f"{kind}: {message}\n")


async def test_a_cancelled_task_is_told_with_the_line_that_awaited_it(raised):
    told = await raised("import asyncio\ntask = asyncio.create_task(asyncio.sleep(5))\ntask.cancel()\nawait task")
    assert told.message == "the script cancelled itself, or awaited a task that was cancelled"
    assert "line 4, in <module>\n    await task\n" in told.traceback


async def test_an_exception_that_tells_nothing_is_told_with_its_line(raised):
    assert (
        'File "script.py", line 3\n'
        in (await raised("class E(Exception):\n    __getattribute__ = None\nraise E")).traceback
    )


@pytest.mark.parametrize("separator", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
async def test_what_ends_no_line_in_python_ends_none_in_a_traceback(raised, separator):
    told = await raised(f"x = '''{separator}'''\ny = 1\ny / 0")
    assert "line 3, in <module>\n    y / 0\n    ~~^~~\n" in told.traceback


async def test_of_a_long_line_what_is_around_the_place_is_shown(raised):
    told = await raised(f"x = ['{'é' * 100_000}', len(5), '{'b' * 100_000}']")
    line = told.traceback.splitlines()[2].strip()
    assert len(line) < 200
    assert line.startswith("…é")
    assert "len(5)" in line
    assert line.endswith("b…")


async def test_of_a_long_line_that_does_not_parse_what_is_around_the_place_is_shown(raised):
    told = await raised(f"x = '{'a' * 100_000}'; y = = 5; z = '{'b' * 100_000}'")
    assert len(told.traceback) < 600
    assert "aa'; y = = 5; z = 'bb" in told.traceback


@pytest.mark.parametrize(
    ("script", "shown"),
    [
        ("def f(a, a): pass", "    def f(a, a): pass\n             ^\n"),
        ("def f():\n    x = await g()", "    x = await g()\n        ^^^^^^^^^\n"),
        ("def f():\n    print(x)\n    global x\n", "    global x\n    ^^^^^^^^\n"),
        ("yield 1\n", "    yield 1\n    ^^^^^^^\n"),
    ],
)
async def test_a_mistake_that_is_found_after_parsing_is_shown_in_its_line(raised, script, shown):
    assert shown in (await raised(script)).traceback


async def test_a_group_says_how_many_of_its_exceptions_are_told(raised):
    told = await raised("raise ExceptionGroup('g', [ValueError(n) for n in range(5000)])")
    assert told.message == "g [200 of 5000 shown] (200 sub-exceptions)"


async def test_exceptions_of_a_group_that_differ_are_all_told(raised):
    told = (await raised("raise ExceptionGroup('g', [ValueError(1), ValueError(2), ValueError(1)])")).traceback
    assert (told.count("ValueError: 1"), told.count("ValueError: 2")) == (1, 1)
    assert "ValueError: 1\n    | [and 1 more like this one]" in told


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ("raise ValueError(n) from last", "The above exception was the direct cause of the following exception"),
        (
            "error = ValueError(n)\n        error.__context__ = last\n        raise error",
            "During handling of the above",
        ),
    ],
)
async def test_of_a_long_chain_the_last_exceptions_are_told(raised, link, said):
    loop = f"for n in range(20_000):\n    try:\n        {link}\n    except ValueError as failed:\n        last = failed"
    told = await raised(f"last = None\n{loop}\nraise last")
    assert (told.type, told.message) == ("ValueError", "19999")
    assert told.traceback.startswith(f"RuntimeError: not shown: too many exceptions came before\n\n{said}")


async def test_a_value_that_is_nested_too_deep_is_said_to_be_the_value(raised):
    told = await raised("x = []\nfor _ in range(100_000): x = [x]\nx")
    assert told.type == "RecursionError"
    assert "the script's value, nested too deep" in told.message


@pytest.mark.parametrize(
    "script",
    [
        "try:\n    await good.fail()\nexcept ToolError:\n    traceback.print_exc()",
        "try:\n    good.echo(text=object())\nexcept ToolError:\n    logging.exception('failed')",
        "traceback.print_stack()",
    ],
)
async def test_a_traceback_that_a_script_prints_has_no_line_of_ours(run, script):

    async def fail(_call):
        return Failed("ToolError", "no")

    result = await run(f"import traceback, logging\nfrom tools import good, ToolError\n{script}", answer=fail)
    assert isinstance(result.outcome, Completed)
    assert 'File "script.py", line' in result.stderr
    assert "/guest/" not in result.stderr


async def test_what_the_library_has_raised_and_caught_is_left_out(raised):
    told = (await raised("import asyncio\nawait asyncio.wait_for(asyncio.sleep(5), 0.01)")).traceback
    assert told.startswith('Traceback (most recent call last):\n  File "script.py", line 2, in <module>\n')
    assert "exception" not in told


async def test_what_the_script_was_doing_when_its_time_was_up_is_told(raised):
    told = (await raised("import asyncio\nasync with asyncio.timeout(0.01):\n    await asyncio.sleep(5)")).traceback
    assert "line 3, in <module>\n    await asyncio.sleep(5)\n" in told
    assert told.endswith("TimeoutError\n")


async def test_a_cause_that_was_never_raised_is_told(raised):
    told = (await raised("raise ValueError('a') from KeyError('b')")).traceback
    assert told.startswith("KeyError: 'b'\n\nThe above exception was the direct cause")
