"""A script from its source to its outcome: values, ends, tracebacks, and what is said about mistakes."""

from __future__ import annotations

import pytest

from sandbox import Completed

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("", None),
        ("# only a comment", None),
        ("1 + 1", 2),
        ("x = 5", None),
        ("x = 5\nx", 5),
        ("5;", 5),
        ("return 7", 7),
        ("return", None),
        ("if True:\n    return 'early'\nraise ValueError", "early"),
        ("def f():\n    return 3\nf()", 3),
        ("for i in range(3): pass\ni", 2),
        ("import asyncio\nawait asyncio.sleep(0, 'slept')", "slept"),
        ("[x async for x in aiter_()] if False else 'async'", "async"),
        ("async def gen():\n    yield 1\n    yield 2\n[x async for x in gen()]", [1, 2]),
        ("async def f():\n    return 4\nreturn await f()", 4),
        ("import asyncio\nasync def main():\n    return 9\nasyncio.run(main())", 9),
        ("from asyncio import run as go\nasync def main():\n    return 9\ngo(main())", 9),
        ("import asyncio as aio\nasync def main():\n    return 9\nx = aio.run(main())\nx", 9),
        (
            (
                "import asyncio\nasync def main():\n    return 9\nloop = asyncio.new_event_loop()\n"
                "asyncio.set_event_loop(loop)\nx = loop.run_until_complete(main())\nloop.close()\nx"
            ),
            9,
        ),
        ("global_ = 1\ndef f():\n    global global_\n    global_ += 1\nf()\nreturn global_", 2),
        ("x: int = 3\nreturn x", 3),
        ("from math import *\nreturn floor(2.5)", 2),
        ("exec('b = 5')\nreturn [b, eval('b + 1')]", [5, 6]),
        (
            "c = 1\nreturn [locals()['c'], vars()['c'], 'c' in dir(), [n for n in locals() if n == 'c']]",
            [1, 1, True, ["c"]],
        ),
        ("c = 1\nreturn list(n for n in locals() if n == 'c')", ["c"]),
        ("from __future__ import annotations\ndef f(a: undefined): ...\nreturn 'lazy'", "lazy"),
        ("class A:\n    y = 2\nreturn [A.y for _ in range(2)]", [2, 2]),
        ("if __name__ == '__main__':\n    x = 'main'\nx", "main"),
        ("import __main__\nx = 1\n__main__.x", 1),
        ("import pickle\nclass A:\n    y = 2\npickle.loads(pickle.dumps(A())).y", 2),
        ("import doctest\ndef f():\n    '>>> f()'\ndoctest.testmod().attempted", 1),
        (
            (
                "from __future__ import annotations\nfrom dataclasses import dataclass, fields\n"
                "from typing import ClassVar\n@dataclass\nclass A:\n    y: ClassVar[int] = 3\n    x: int = 1\n"
                "[field.name for field in fields(A)]"
            ),
            ["x"],
        ),
        ("def f():\n    return g()\ndef g():\n    return 1\nreturn f()", 1),
        ("match {'a': 1}:\n    case {'a': n}:\n        r = n\nr", 1),
        ("import sys\nsys.exit()", None),
        ("raise SystemExit(0)", None),
        ("import os\nos._exit(0)", None),
    ],
)
async def test_the_value_of_a_script_is_its_return_or_its_last_expression(run, script, value):
    assert (await run(script)).outcome == Completed(value)


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("(1, 2)", [1, 2]),
        ("{3}", [3]),
        ("{1: 'a', None: 'b', True: 'c', (1, 2): 'd'}", {"1": "c", "null": "b", "[1,2]": "d"}),
        ("b'ab'", "YWI="),
        ("float('nan'), float('inf'), -float('inf')", ["NaN", "Infinity", "-Infinity"]),
        ("10**5000", "<integer of 16610 bits>"),
        ("2**64", 2**64),
        ("object", "<class 'object'>"),
        ("import datetime\ndatetime.datetime(2026, 1, 2, 3, 4)", "2026-01-02T03:04:00"),
        ("import datetime\ndatetime.date(2026, 1, 2)", "2026-01-02"),
        ("import datetime\ndatetime.timedelta(1)", "1 day, 0:00:00"),
        ("import decimal\ndecimal.Decimal('1.10')", "1.10"),
        ("import fractions\nfractions.Fraction(1, 3)", "1/3"),
        ("import uuid\nuuid.UUID(int=5)", "00000000-0000-0000-0000-000000000005"),
        ("import pathlib\npathlib.PurePath('a/b')", "a/b"),
        ("import enum\nclass C(enum.Enum):\n    RED = 'r'\nC.RED, {C.RED: 1}", ["r", {"r": 1}]),
        (
            "import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int\n    y: list\nP(1, [2])",
            {"x": 1, "y": [2]},
        ),
        ("import collections\ncollections.Counter('aab')", {"a": 2, "b": 1}),
        ("import collections\nP = collections.namedtuple('P', 'x y')\nP(1, 2)", [1, 2]),
        ("range(3)", [0, 1, 2]),
        ("(n * n for n in range(3))", [0, 1, 4]),
        (
            "{'a': map(str, [1]), 'b': zip('ab', [1, 2]), 'c': {1: 2}.items()}",
            {"a": ["1"], "b": [["a", 1], ["b", 2]], "c": [[1, 2]]},
        ),
        (
            "import array, collections as c\n[array.array('i', [1]), c.UserList([2]), c.UserString('ab')]",
            [[1], [2], "ab"],
        ),
        ("{'a': 1}.items()", [["a", 1]]),
        ("'\\ud800'", "\\ud800"),
        ("'\\x1b[31m'", "\\x1b[31m"),
        ("class S(str): pass\nS('x')", "x"),
        ("import types\ntypes.SimpleNamespace(a=1)", "namespace(a=1)"),
        ("x = []\ny = [x, x]\ny", [[], []]),
    ],
)
async def test_a_value_becomes_json(run, script, value):
    assert (await run(script)).outcome == Completed(value)


async def test_a_value_that_contains_itself_is_an_error(raised):
    outcome = await raised("x = []\nx.append(x)\nx")
    assert (outcome.type, outcome.message) == (
        "ValueError",
        "the value contains itself, so it cannot be written as JSON: leave that part out",
    )


async def test_an_iterator_without_an_end_is_an_error(raised):
    outcome = await raised("import itertools\nitertools.count()")
    assert outcome.type == "ValueError"
    assert "gives more than 500000 values" in outcome.message


async def test_an_asynchronous_generator_as_value_says_what_to_write(raised):
    outcome = await raised("import asyncio\n(await asyncio.sleep(0, n) for n in range(3))")
    assert (outcome.type, outcome.message.partition(":")[2]) == (
        "TypeError",
        " make a list of it, `[... async for ...]`",
    )


async def test_a_value_whose_repr_fails_is_that_error(raised):
    outcome = await raised("class E:\n    def __repr__(self):\n        1 / 0\nE()")
    assert outcome.type == "ZeroDivisionError"


@pytest.mark.parametrize("value", ["good.echo(text='a')", "[good.echo(text=t) for t in 'ab']"])
async def test_a_value_that_was_not_awaited_says_so(raised, value):
    outcome = await raised(f"from tools import good\n{value}")
    assert outcome.message == (
        "the script's value is or holds a call that was not awaited: write `await` before it, or, around a list of "
        "calls, `await asyncio.gather(*...)`"
    )


@pytest.mark.parametrize(
    ("script", "kind", "message"),
    [
        ("import sys\nsys.exit(3)", "SystemExit", "3"),
        ("import sys\nsys.exit('sorry')", "SystemExit", "sorry"),
        ("import os\nos._exit(2)", "SystemExit", "2"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", ""),
        ("raise KeyError('k')", "KeyError", "'k'"),
        ("class E(BaseException): pass\nraise E('own')", "E", "own"),
        (
            "import asyncio\nraise asyncio.CancelledError",
            "asyncio.exceptions.CancelledError",
            "the script cancelled itself, or awaited a task that was cancelled",
        ),
        ("import asyncio\nasyncio.current_task().cancel()\nawait asyncio.sleep(1)", None, None),
        ("raise GeneratorExit('g')", "GeneratorExit", "g"),
        ("import json\njson.loads('{')", "json.decoder.JSONDecodeError", None),
        (
            "import asyncio\nasync def f():\n    raise SystemExit(4)\nasyncio.create_task(f())\nawait asyncio.sleep(1)",
            "SystemExit",
            "4",
        ),
        ("raise ExceptionGroup('two', [ValueError(1), KeyError(2)])", "ExceptionGroup", "two (2 sub-exceptions)"),
        ("class E(Exception):\n    def __str__(self):\n        raise SystemExit(0)\nraise E", "E", None),
        ("pint(1)", "NameError", "name 'pint' is not defined. Did you mean: 'print'?"),
        ("'\\ud800'.encode()", "UnicodeEncodeError", None),
    ],
)
async def test_how_a_script_raises(raised, script, kind, message):
    outcome = await raised(script)
    if kind is not None:
        assert outcome.type == kind
    if message is not None:
        assert outcome.message == message


async def test_a_traceback_shows_the_scripts_lines_with_carets_and_none_of_ours(raised):
    script = """\
        import asyncio
        from tools import good

        async def inner(n):
            await good.echo(text="a")
            return n / 0

        async def outer():
            return await inner(1)

        await outer()
    """
    outcome = await raised(script, filename="report.py")
    assert outcome.traceback == (
        "Traceback (most recent call last):\n"
        '  File "report.py", line 11, in <module>\n'
        "    await outer()\n"
        '  File "report.py", line 9, in outer\n'
        "    return await inner(1)\n"
        "           ^^^^^^^^^^^^^^\n"
        '  File "report.py", line 6, in inner\n'
        "    return n / 0\n"
        "           ~~^~~\n"
        "ZeroDivisionError: division by zero\n"
    )


async def test_frames_of_the_standard_library_are_left_out(raised):
    outcome = await raised("import json\njson.loads('{')")
    assert outcome.traceback.count("File ") == 1
    assert 'File "script.py", line 2, in <module>' in outcome.traceback


async def test_causes_and_groups_are_told_in_the_scripts_lines(raised):
    script = """\
        try:
            try:
                1 / 0
            except ZeroDivisionError as error:
                raise ValueError("outer") from error
        except ValueError as error:
            raise ExceptionGroup("many", [error, KeyError("k")])
    """
    text = (await raised(script)).traceback
    assert "direct cause of the following exception" in text
    assert "line 3, in <module>" in text
    assert "KeyError: 'k'" in text
    assert "guest" not in text
    assert "/python" not in text


async def test_long_texts_of_an_exception_are_cut_in_the_middle(raised):
    outcome = await raised("raise ValueError('a' * 30_000 + 'b' * 30_000)")
    assert len(outcome.message) < 5_000
    assert outcome.message.startswith("aaa")
    assert outcome.message.endswith("bbb")
    assert "characters left out]" in outcome.message
    assert len(outcome.traceback) < 10_000


async def test_a_group_of_a_million_exceptions_is_told_in_part(raised):
    script = "g = ValueError('leaf')\nfor _ in range(20):\n    g = ExceptionGroup('g', [g, g])\nraise g"
    outcome = await raised(script)
    assert outcome.type == "ExceptionGroup"
    assert "ExceptionGroup: g" in outcome.traceback


@pytest.mark.parametrize(
    ("script", "message", "shown"),
    [
        ("x = (1,\nprint(2)", "'(' was never closed", "    x = (1,\n        ^\n"),
        ("def f()\n    pass", "expected ':'", "    def f()\n           ^\n"),
        ("x = = 3", "invalid syntax", "    x = = 3\n        ^\n"),
        ("return = 3", "invalid syntax", None),
        ("x = 1\n  y = 2", "unexpected indent", None),
        ("'abc", "unterminated string literal (detected at line 1)", "    'abc\n    ^\n"),
        ("def f():\n    yield 1\nawait = 3", None, None),
        ("x = 1\x00", "source code string cannot contain null bytes", None),
        ("break", "'break' outside loop", None),
    ],
)
async def test_a_syntax_error_has_line_and_caret(raised, script, message, shown):
    outcome = await raised(script)
    assert outcome.type in ("SyntaxError", "IndentationError")
    if message is not None:
        assert outcome.message == message
    if shown is not None:
        assert shown in outcome.traceback
    assert "guest" not in outcome.traceback


async def test_a_script_that_is_no_unicode_is_an_error_of_the_script(raised):
    assert (await raised("x = '\ud800'")).type == "UnicodeEncodeError"


async def test_a_forgotten_await_is_reported_with_its_line(run):
    result = await run("from tools import good\ngood.echo(text='a')\nprint('done')")
    assert result.outcome == Completed(None)
    assert result.usage.calls == 0
    assert result.stderr == (
        "script.py:2: good.echo(...) was never awaited, so it was not called: write `await good.echo(...)`\n"
    )


async def test_calls_that_were_forgotten_at_one_line_are_reported_once(raised):
    script = "from tools import good\ncalls = [good.echo(text='a') for _ in range(40)]\nraise ValueError('x')"
    assert (await raised(script)).message == (
        "x\nline 2: good.echo(...) was never awaited (40 times), so it was not called: write `await good.echo(...)`"
    )


async def test_a_call_that_a_library_makes_for_the_script_is_told_at_the_scripts_line(run):
    result = await run("import asyncio\nfrom tools import good\nawait asyncio.to_thread(good.echo, text='a')\nNone")
    assert result.stderr == (
        "script.py:3: good.echo(...) was never awaited, so it was not called: write `await good.echo(...)`\n"
    )


UNSENT = (
    "good.echo(...) was never awaited, so it was not called: write `await good.echo(...)`, or `await` the task or "
    "gather that it was given to"
)


async def test_a_call_of_a_task_that_nobody_waits_for_is_reported(run):
    script = "import asyncio\nfrom tools import good\nasyncio.create_task(good.echo(text='a'))\nprint('done')"
    result = await run(script)
    assert result.outcome == Completed(None)
    assert result.usage.calls == 0
    assert result.stderr == f"script.py:3: {UNSENT}\n"


TASKS = {
    "waits": (
        "async def save():\n  await asyncio.sleep(1)\nfor _ in 'ab': asyncio.create_task(save())",
        "4: save(...) was cancelled here (2 times), as the script ended without it: `await` its task",
        0,
    ),
    "in a gather": (
        "async def save():\n  await asyncio.sleep(1)\nasyncio.gather(save())\nawait good.echo(text='b')",
        "4: save(...) was cancelled here, as the script ended without it: `await` its task",
        1,
    ),
    "about to call": (
        "async def save():\n  await good.echo(text='a')\nasyncio.create_task(save())\nawait asyncio.sleep(0)",
        f"4: {UNSENT}",
        0,
    ),
}


@pytest.mark.parametrize("case", TASKS)
async def test_what_a_task_had_still_to_do_when_the_script_ended_is_reported(run, case):
    script, note, calls = TASKS[case]
    result = await run(f"import asyncio\nfrom tools import good\n{script}\nNone")
    assert (result.outcome, result.usage.calls) == (Completed(None), calls)
    assert result.stderr == f"script.py:{note}\n"


async def test_what_tasks_had_still_to_do_is_reported_in_the_order_of_lines(run):
    result = await run(
        "import asyncio\nasync def later():\n  await asyncio.sleep(1)\nasync def again():\n  await asyncio.sleep(1)\n"
        "asyncio.gather(again(), later())\nawait asyncio.sleep(0)"
    )
    assert [line.partition("(")[0] for line in result.stderr.splitlines()] == [
        "script.py:3: later",
        "script.py:5: again",
    ]


@pytest.mark.parametrize(
    "script",
    [
        "task = asyncio.create_task(good.echo(text='a'))\nawait good.echo(text='b')",
        "async def f():\n  await asyncio.sleep(9)\nt = asyncio.create_task(f())\nawait asyncio.sleep(0)\nt.cancel()",
        "async def f():\n  return 1\nt = asyncio.create_task(f())\nawait t",
        "a = asyncio.create_task(good.echo(text='a'))\nawait asyncio.sleep(0)\na.cancel()\nawait asyncio.sleep(0)",
        "task = asyncio.create_task(good.echo(text='a'))\nawait task",
    ],
    ids=["sent", "own one cancelled", "own one awaited", "cancelled", "awaited"],
)
async def test_a_task_that_was_sent_cancelled_or_awaited_is_not_reported(run, script):
    assert not (await run(f"import asyncio\nfrom tools import good\n{script}\n")).stderr


async def test_an_error_beside_calls_that_were_not_sent_is_told_alone(raised):
    script = (
        "import asyncio\nfrom tools import good\nasync def fail():\n    raise ValueError('x')\n"
        "await asyncio.gather(good.echo(text='a'), fail())"
    )
    assert (await raised(script)).message == "x"


async def test_a_call_that_is_not_awaited_yet_is_shown_as_the_tools(run):
    script = "from tools import good\ncall = good.echo(text='a')\nprint(call)\nawait call"
    assert (await run(script)).stdout.startswith("<coroutine object tools.good.echo at 0x")


@pytest.mark.parametrize("end", ["print(type(r.f()))", "r.f().upper()"])
async def test_a_call_that_a_plain_function_returns_is_told_with_that_function(run, end):
    script = "from tools import good\nclass R:\n    def f(self):\n        return good.echo(text='a')\nr = R()\n" + end
    outcome = await run(script)
    told = "was not called: make f an `async def` that awaits it, and write `await f(...)`"
    assert told in outcome.stderr + getattr(outcome.outcome, "message", "")


@pytest.mark.parametrize("end", ["print([*calls])", "sum(calls)"])
async def test_a_call_that_a_lambda_returns_is_told_what_to_write_in_its_place(run, end):
    outcome = await run(f"from tools import good\ncalls = map(lambda n: good.echo(text=n), 'ab')\n{end}")
    told = (
        "so it was not called: a lambda cannot `await`. Write `[await good.echo(...) for ... in ...]` in its place, or "
        "`await asyncio.gather(*...)` around what it returns"
    )
    assert told in outcome.stderr + getattr(outcome.outcome, "message", "")


async def test_calls_that_a_lambda_returns_and_that_are_gathered_are_made(run):
    script = "import asyncio\nfrom tools import good\nawait asyncio.gather(*map(lambda n: good.echo(text=n), 'ab'))"
    result = await run(script)
    assert (result.stderr, result.usage.calls) == ("", 2)


async def test_a_wait_for_nothing_says_where(raised):
    outcome = await raised("import asyncio\n\nasync def f():\n    await asyncio.Event().wait()\nawait f()")
    assert outcome.message == (
        "the script waits at line 4 for something that can never happen: no call is open and no timer is set"
    )


async def test_a_missing_module_says_what_there_is(raised):
    assert (await raised("import numpy")).message == (
        "No module named 'numpy'\n"
        "numpy is not available: a script can import only Python's standard library and `tools`"
    )
    assert "ctypes needs what a script does not have" in (await raised("import ctypes")).message


async def test_a_script_that_broke_the_interpreter_is_still_told_how_it_ended(raised):
    script = """
        import builtins, json, sys
        builtins.__import__ = lambda *a, **k: 1 / 0
        json.dumps = json.loads = None
        sys.setrecursionlimit(60)
        raise ValueError("told")
    """
    outcome = await raised(script)
    assert (outcome.type, outcome.message) == ("ValueError", "told")


async def test_asyncio_run_inside_a_function_says_what_to_write(raised):
    script = "import asyncio\nasync def f(): pass\ndef g():\n    asyncio.run(f())\ng()"
    outcome = await raised(script)
    assert outcome.type == "RuntimeError"
    assert "write `await ...` instead, in functions that are `async def`" in outcome.message
