"""What a script prints arrives at once, in order, and cannot act on a terminal."""

from __future__ import annotations

import pytest

from sandbox import Completed

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("script", "stdout", "stderr"),
    [
        ("print('a', 1, sep='-', end='!')", "a-1!", ""),
        ("print()", "\n", ""),
        ("print('a', 'b', sep=None, end=None)", "a b\n", ""),
        ("import sys\nprint('e', file=sys.stderr)", "", "e\n"),
        ("import sys\nsys.stdout.write('x')\nsys.__stdout__.write('y')", "xy", ""),
        ("import sys\nsys.stdout.buffer.write(b'\\xff ok')", "\\xff ok", ""),
        ("import sys\nsys.stdout.writelines(['a', 'b'])", "ab", ""),
        ("import os\nos.write(1, b'one')\nos.write(2, b'two')", "one", "two"),
        ("import sys\nsys.stdout = None\nprint('nowhere')", "", ""),
        ("import sys\nsys.stdout.close()\nprint('still')", "still\n", ""),
        ("print('\\ud800')", "\\ud800\n", ""),
        ("print('a\\x00\\x1b[2J\\rb')", "a\\x00\\x1b[2J\\x0db\n", ""),
        ("print('Zürich 中文 🎉')", "Zürich 中文 🎉\n", ""),
        ("print('x' * 100_000)", "x" * 100_000 + "\n", ""),
        ("print('é' * 50_000)", "é" * 50_000 + "\n", ""),
        ("import warnings\nwarnings.warn('careful')", "", "script.py:2: UserWarning: careful\n"),
        (
            "class C:\n    async def f(self): pass\nC().f()\n1",
            "",
            "script.py:3: RuntimeWarning: coroutine 'C.f' was never awaited, so it did not run: write `await f(...)`\n",
        ),
        (
            "x = 'a' is 'b'\ntry:\n    pass\nfinally:\n    return x",
            "",
            (
                'script.py:1: SyntaxWarning: "is" with \'str\' literal. Did you mean "=="?\n'
                "script.py:5: SyntaxWarning: 'return' in a 'finally' block\n"
            ),
        ),
        ("import pprint\npprint.pprint({'a': 1})", "{'a': 1}\n", ""),
        (
            "import io, contextlib as c\nwith c.redirect_stdout(io.StringIO()) as f: print('in')\nprint(f.getvalue())",
            "in\n\n",
            "",
        ),
    ],
)
async def test_what_is_printed_arrives(run, script, stdout, stderr):
    result = await run(script)
    assert isinstance(result.outcome, Completed)
    assert (result.stdout, result.stderr) == (stdout, stderr)


async def test_output_is_handed_on_while_the_script_runs(run):
    seen = []
    await run(
        "import sys\nprint('a')\nprint('b', file=sys.stderr)\nprint('c\\x1b')",
        on_output=lambda name, text: seen.append((name, text)),
    )
    assert seen == [("stdout", "a\n"), ("stderr", "b\n"), ("stdout", "c\\x1b\n")]


async def test_a_failed_task_that_nobody_awaits_is_said_on_stderr(run):
    script = """
        import asyncio, gc
        async def fail():
            raise ValueError("lost")
        task = asyncio.create_task(fail())
        await asyncio.sleep(0)
        del task
        gc.collect()
        print("end")
    """
    result = await run(script)
    assert result.stdout == "end\n"
    assert result.stderr == "Task exception was never retrieved: ValueError: lost\n"
