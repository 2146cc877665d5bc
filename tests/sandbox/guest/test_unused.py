"""What a script defines and never uses is told, where it was all that the script was for."""

from __future__ import annotations

from inspect import cleandoc

import pytest

from sandbox import Completed, Limits

pytestmark = pytest.mark.anyio

MAIN = "async def main():\n    print('done')\n"


@pytest.mark.parametrize(
    ("script", "line", "call"),
    [
        (MAIN, 1, "await main()"),
        (f"import json\nx = 1\n{MAIN}print(x)", 3, "await main()"),
        ("def one(n): return n\ndef work(n):\n    return one(n)", 2, "work(...)"),
        (f"def one(n): return n\nprint(one(1))\n{MAIN}", 3, "await main()"),
        ("def again(n):\n    return again(n - 1)", 1, "again(...)"),
        ("if False:\n    return\ndef work(): pass", 3, "work()"),
    ],
    ids=["main", "main beside prints", "its parts", "main beside others", "recursion", "with return"],
)
async def test_a_function_that_is_never_called_is_told(run, script, line, call):
    result = await run(script)
    name = call.removeprefix("await ").partition("(")[0]
    assert result.outcome == Completed(None)
    assert result.stderr == (
        f"script.py:{line}: {name} is defined and never called, so nothing in it was done: "
        f"end the script with `{call}`\n"
    )


async def test_a_class_that_is_never_used_is_told(run):
    result = await run("class Job:\n    def run(self, other: 'Job'): return 1")
    assert result.stderr == "script.py:1: the class Job is defined and never used, so nothing in it was done\n"


@pytest.mark.parametrize(
    "script",
    [
        f"{MAIN}await main()",
        f"import asyncio\n{MAIN}asyncio.run(main())",
        f"{MAIN}if __name__ == '__main__':\n    await main()",
        f"{MAIN}globals()['main']()\n",
        f"{MAIN}x = main\n",
        f"def work():\n    return main()\n{MAIN}await work()",
        "def used(): pass\ndef spare(): pass\nused()",
        "def spare(): pass\n1 + 1",
        "from tools import good\ndef spare(): pass\nawait good.echo(text='a')",
        "kept = []\n@kept.append\ndef main(): pass",
        "kept = {}\ndef keep(f):\n    kept[1] = f\n    return f\n@keep\ndef main(): pass\nkept[1]()\nNone",
        "class A: pass\ndef of(a: A) -> A: return a\nof(A())\nNone",
        "import json\nx = 1",
        "total: int = 1",
        "def spare(): pass\nraise SystemExit",
    ],
)
async def test_what_is_used_in_any_way_is_not_told(run, script):
    assert "is defined" not in (await run(script)).stderr


async def test_a_kernel_keeps_definitions_for_later_scripts(sandbox):
    async with sandbox.kernel() as kernel:
        assert not (await kernel.run(MAIN)).stderr
        assert (await kernel.run("await main()")).stdout == "done\n"


async def test_a_definition_that_does_not_like_to_be_looked_at_is_left_alone(run):
    script = "class Odd(type):\n    @property\n    def __module__(cls): raise OSError\nclass A(metaclass=Odd): pass"
    result = await run(script)
    assert (result.outcome, result.stderr) == (Completed(None), "")


async def test_the_names_that_code_loads_are_those_that_the_disassembler_finds(run):
    script = """
        import argparse, dis, sys
        many = compile("\\n".join(f"name_{n} = other_{n}" for n in range(70_000)), "many", "exec")
        module = compile(MODULE, "module", "exec")
        methods = [value.__code__ for value in vars(argparse.ArgumentParser).values() if hasattr(value, "__code__")]
        loads = {"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"}
        for code in [many, module, *methods]:
            found = [one.argval for one in dis.get_instructions(code) if one.opname in loads]
            assert list(sys.modules["guest.unused"].loaded_names(code)) == found
        len(many.co_names)
    """
    module = "MODULE = 'class A:\\n    x: int = len(B)\\n    def f(self): return C'"
    result = await run(f"{module}\n{cleandoc(script)}", limits=Limits(wall_seconds=110))
    assert result.outcome == Completed(140_000)
