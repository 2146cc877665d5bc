"""The module `tools` as a script sees it."""

from __future__ import annotations

import pytest

from sandbox import Completed, Failed, Returned

pytestmark = pytest.mark.anyio

KINDS = {
    "ToolError": (),
    "ToolArgumentsError": ("TypeError",),
    "ToolRefusedError": ("PermissionError",),
    "ToolDescriptionRequired": (),
    "ToolNotFoundError": ("AttributeError",),
    "ToolTimeoutError": ("TimeoutError",),
    "ToolUnavailableError": ("ConnectionError",),
    "ToolOutcomeUnknown": (),
    "ToolResultError": (),
}


@pytest.mark.parametrize(
    "imported",
    [
        "from tools import good",
        "import tools\ngood = tools.good",
        "import tools.good\ngood = tools.good",
        "import tools.good as good",
        "from tools.good import echo\nclass good: echo = staticmethod(echo)",
        "from tools import *",
        "good = tools.good",
    ],
)
async def test_tools_are_imported_like_modules(run, imported):
    assert (await run(f"{imported}\nawait good.echo(text='hi')")).outcome == Completed("hi")


@pytest.mark.parametrize(
    "imported",
    [
        "server = getattr(__import__('tools'), name)",
        "server = __import__('tools', fromlist=[name]).__dict__[name]",
        "import importlib\nserver = importlib.import_module('tools.' + name)",
        "server = __import__('tools.' + name).__getattribute__(name)",
        "from tools import *\nserver = globals()[name]",
        "exec('from tools import ' + name)\nserver = globals()[name]",
        "import sys\nassert dir(tools) == [name]\ntools.__getattr__(name)\nserver = sys.modules['tools.' + name]",
    ],
)
async def test_a_server_whose_name_the_script_makes_up_is_there_too(run, imported):
    script = f"name = 'go' + 'od'\n{imported}\nawait server.echo(text='hi')"
    assert "good" not in script
    assert (await run(script)).outcome == Completed("hi")


async def test_what_is_no_server_can_not_be_imported_from_tools(run):
    script = """
        import importlib
        found = []
        for name in ("tools.nowhere", "tools.good.echo", "nowhere"):
            try:
                found.append(importlib.import_module(name))
            except ImportError as error:
                found.append(error.name)
        return found
    """
    assert (await run(script)).outcome == Completed(["tools.nowhere", "tools.good.echo", "nowhere"])


async def test_a_call_carries_the_tools_own_keys_and_omits_what_was_not_given(run):
    calls = []

    async def answer(call):
        calls.append((call.id, call.function, call.arguments))
        return Returned(None)

    entry = {
        "described": True,
        "doc": "d",
        "parameters": [["from_", "from", True], ["max", "max-count", False]],
        "accepts_extra": True,
        "types": [],
    }
    manifest = {"s": {"functions": {"f": entry}}}
    script = "from tools import s\nawait s.f(from_=1)\nawait s.f(from_=(1, 2), max=None, other={3})"
    await run(script, answer=answer, manifest=manifest)
    assert calls == [
        (1, "s.f", {"from": 1}),
        (2, "s.f", {"from": [1, 2], "max-count": None, "other": [3]}),
    ]


@pytest.mark.parametrize(
    ("script", "kind", "message"),
    [
        *(
            (
                f"good.{call}",
                "ToolArgumentsError",
                f"good.{call[: call.index('(')]}() takes keyword arguments only: {usage}",
            )
            for call, usage in (
                ("echo('a')", "await good.echo(text='a')"),
                ("echo({'text': 1})", "await good.echo(**arguments)"),
                ("echo([1])", "await good.echo(text=...)"),
                ("echo('a' * 200)", "await good.echo(text=...)"),
                ("echo('a', 'b')", "await good.echo(text=...)"),
                ("add(1, b=2.5)", "await good.add(a=1, b=2.5)"),
                ("add(1, a=2)", "await good.add(b=1, a=2)"),
            )
        ),
        ("good.add()", "ToolArgumentsError", "good.add() misses a: await good.add(a=..., [b=...])"),
        (
            "good.echo(text='a', texts=1)",
            "ToolArgumentsError",
            "good.echo() has no parameter 'texts'. Did you mean text?",
        ),
        (
            "good.echo(text=object())",
            "ToolArgumentsError",
            "good.echo(): text holds a value of type object, which JSON cannot carry: pass plain values made of it",
        ),
        (
            "import types\ngood.echo(text=types.SimpleNamespace(a=1))",
            "ToolArgumentsError",
            "good.echo(): text holds a value of type SimpleNamespace, which JSON cannot carry: pass `vars(...)` of it",
        ),
        (
            "import zoneinfo\ngood.echo(text=zoneinfo.ZoneInfo('UTC'))",
            "ToolArgumentsError",
            "good.echo(): text holds a value of type ZoneInfo, which JSON cannot carry: pass `str(...)` of it",
        ),
        (
            "good.echo(text=...)",
            "ToolArgumentsError",
            (
                "good.echo(): text holds `...`, which only stands for a value: write the value, or leave it out where "
                "it is optional"
            ),
        ),
        (
            "good.echo(text=(await good.echo(text=t) for t in 'ab'))",
            "ToolArgumentsError",
            (
                "good.echo(): text holds an asynchronous generator: write a list, as `[await ... for ...]` or "
                "`[... async for ...]`"
            ),
        ),
        (
            "good.echo(text=print)",
            "ToolArgumentsError",
            "good.echo(): text holds print itself, which JSON cannot carry: call it, or pass its name as text",
        ),
        (
            "import io\ngood.echo(text=io.StringIO('a'))",
            "ToolArgumentsError",
            "good.echo(): text holds a StringIO, which JSON cannot carry: pass its `.getvalue()`",
        ),
        (
            "import re\ngood.echo(text=[re.match('a', 'a')])",
            "ToolArgumentsError",
            "good.echo(): text holds a Match, which JSON cannot carry: pass its `.group()`",
        ),
        (
            "good.echo(text=[good.echo(text='b')])",
            "ToolArgumentsError",
            "good.echo(): text holds a call that was not awaited: write `await ...` around it",
        ),
        (
            "good.echo(text=['a\\ud800'])",
            "ToolArgumentsError",
            "good.echo(): text: character 1 is half of a surrogate pair, which cannot be written as UTF-8",
        ),
        (
            "x = []\nx.append(x)\nawait good.echo(text=x)",
            "ToolArgumentsError",
            "good.echo(): text: the value contains itself, so it cannot be written as JSON: leave that part out",
        ),
        ("good.ecko(text='a')", "ToolNotFoundError", "there is no tool 'ecko' in tools.good. Did you mean echo?"),
        ("import tools\ntools.god", "ToolNotFoundError", "there is no server 'god' in tools. Did you mean good?"),
        (
            "await good.hidden(a=1)",
            "ToolDescriptionRequired",
            (
                "good.hidden has not been described yet, so it cannot be called. "
                'Fetch it first: get_tool_details(["good.hidden"])'
            ),
        ),
    ],
)
async def test_a_wrong_call_says_what_to_write(raised, script, kind, message):
    outcome = await raised(f"from tools import good\n{script}")
    assert outcome.type == kind
    assert outcome.message.split("\n")[0] == message


async def test_of_a_partial_namespace_what_is_not_told_of_may_be_there_undescribed(raised, manifest):
    partial = {"good": manifest["good"] | {"partial": True}}
    outcome = await raised("from tools import good\nawait good.echo(text=1)\nawait good.other()", manifest=partial)
    assert outcome.type == "ToolDescriptionRequired"
    assert 'get_tool_details({"tools": ["good.other"]})' in outcome.message
    assert (await raised("from tools import good\ngood.__wrapped__", manifest=partial)).type == "AttributeError"


async def test_servers_and_tools_may_be_named_like_what_the_modules_are_made_of(run, manifest):
    names = ("fill", "serves", "namespaces", "_functions", "_types", "_bridge", "_short_name", "_Namespace__fill")
    functions = dict.fromkeys(names, manifest["good"]["functions"]["echo"])
    servers = {name: {"doc": "", "functions": functions} for name in names}
    script = "import tools\nfrom tools import " + ", ".join(names)
    script += "".join(f"\nassert await tools.{one}.{two}(text='x') == 'x'" for one in names for two in names)
    assert (await run(script, manifest=servers)).outcome == Completed(None)


async def test_an_import_of_an_unknown_tool_suggests_the_nearest(raised):
    outcome = await raised("from tools.good import ecko")
    assert outcome.type == "ImportError"
    assert "Did you mean" in outcome.message
    assert "echo" in outcome.message
    assert "no server 'gut' in tools" in (await raised("from tools import gut")).message


async def test_without_servers_the_text_says_so(raised):
    outcome = await raised("import tools\ntools.git", manifest={})
    assert outcome.message == "there is no server 'git' in tools. Servers: none."


@pytest.mark.parametrize("kind", KINDS)
async def test_every_failure_is_an_exception_that_a_script_can_catch(run, kind):
    async def answer(_call):
        details = {"server": "s", "tool": "t", "content": [{"type": "text"}], "structured_content": {"a": 1}}
        return Failed(kind, "why", details)

    bases = "".join(f", {base}" for base in KINDS[kind])
    script = f"""
        from tools import good, ToolError, {kind}
        for cls in (ToolError, {kind}{bases}):
            try:
                await good.echo(text="a")
            except cls as error:
                shown = [type(error).__name__, str(error), error.message, error.server, error.tool]
                shown += [error.content, error.structured_content]
        shown
    """
    result = await run(script, answer=answer)
    assert result.outcome == Completed([kind, "why", "why", "s", "t", [{"type": "text"}], {"a": 1}])


@pytest.mark.parametrize("caught", ["ToolError", "tools.ToolError"])
async def test_failures_are_caught_without_an_import(run, caught):
    async def answer(_):
        return Failed("ToolError", "broken")

    script = f"from tools import good\ntry:\n    await good.echo(text='')\nexcept {caught} as error:\n    print(error)"
    assert (await run(script, answer=answer)).stdout == "broken\n"
    own = "class ToolError(Exception): ...\ntools = [1]\n[ToolError.__module__, tools]"
    assert (await run(own)).outcome == Completed(["__main__", [1]])


def without_import(*names):
    tool = {"described": True, "doc": "", "parameters": [["text", "text", True]], "accepts_extra": False, "types": []}
    return {name: {"functions": {"echo": tool}, "unimported": True} for name in names}


async def test_a_server_needs_no_import_where_the_manifest_says_so(run, raised):
    called = await run("def f(): return good.echo(text='hi')\nawait f()", manifest=without_import("good"))
    own = await run("good = [1]\ngood", manifest=without_import("good"))
    assert (called.outcome, own.outcome) == (Completed("hi"), Completed([1]))
    assert (await raised("good.echo(text='hi')")).type == "NameError"


async def test_no_server_takes_the_name_of_what_is_there_without_it(run):
    names = ["print", "ToolError", "tools", "display", "__import__"]
    script = "import tools\n[tools.__name__, ToolError.__name__, type(print).__name__, type(display).__name__]"
    assert (await run(script, manifest=without_import(*names))).outcome == Completed(
        ["tools", "ToolError", "function", "function"]
    )


async def test_a_kernel_has_the_servers_of_the_present_script_alone_without_an_import(sandbox):
    async def answer(_call):
        return Returned("hi")

    async with sandbox.kernel() as kernel:
        first = await kernel.run("await good.echo(text='')", answer=answer, manifest=without_import("good"))
        second = await kernel.run("await other.echo(text='')", answer=answer, manifest=without_import("other"))
        gone = await kernel.run("good", manifest=without_import("other"))
    assert (first.outcome, second.outcome) == (Completed("hi"), Completed("hi"))
    assert gone.outcome.type == "NameError"


async def test_the_functions_beside_the_tools_can_be_imported_from_there(run, raised):
    script = "import builtins\nfrom tools import display, extract, read_bytes\n"
    assert (await run(f"{script}[display is builtins.display]")).outcome == Completed([True])
    assert (await raised("from tools import open")).type == "ImportError"
    server = await run("from tools import extract\nextract.__name__", manifest={"extract": {"functions": {}}})
    assert server.outcome == Completed("tools.extract")


async def test_an_unknown_kind_of_failure_is_a_tool_error(raised):
    async def answer(_call):
        return Failed("SystemExit", "why")

    outcome = await raised("from tools import good\nawait good.echo(text='a')", answer=answer)
    assert (outcome.type, outcome.message) == ("ToolError", "why")


@pytest.mark.parametrize(
    ("argument", "sent"),
    [
        ("(n for n in range(3))", [0, 1, 2]),
        ("map(str, (1, 2))", ["1", "2"]),
        ("filter(None, [0, 1])", [1]),
        ("{'a': 1}.keys()", ["a"]),
        ("zip('ab', [1, 2])", [["a", 1], ["b", 2]]),
        ("reversed([1, 2])", [2, 1]),
        ("itertools.chain([1], (n for n in [2]))", [1, 2]),
        ("[{'deep': iter('ab')}]", [{"deep": ["a", "b"]}]),
    ],
)
async def test_what_gives_values_one_by_one_is_sent_as_a_list(run, argument, sent):
    script = f"import itertools\nfrom tools import good\nawait good.echo(text={argument})"
    assert (await run(script)).outcome == Completed(sent)


async def test_the_error_of_a_generator_that_is_an_argument_is_its_own(raised):
    outcome = await raised("from tools import good\nawait good.echo(text=(int(t) for t in ['1', 'x']))")
    assert outcome.type == "ValueError"
    assert outcome.message == "invalid literal for int() with base 10: 'x'"


async def test_a_script_can_look_at_what_there_is(run):
    script = """
        import inspect, tools
        echo = tools.good.echo
        ["good" in dir(tools), sorted(dir(tools.good))[:2], echo.__name__, echo.__doc__,
         str(inspect.signature(tools.good.add)), inspect.iscoroutinefunction(echo), tools.good.__doc__]
    """
    assert (await run(script)).outcome == Completed(
        [True, ["add", "echo"], "echo", "A tool.", "(*, a, b=...)", True, "Good tools."]
    )


async def test_a_call_after_the_end_of_the_script_is_not_made(run):
    script = """
        import asyncio
        from tools import good
        async def late():
            try:
                await asyncio.sleep(10)
            finally:
                try:
                    await good.echo(text="late")
                except Exception as error:
                    print(error)
        asyncio.create_task(late())
        await asyncio.sleep(0)
    """
    result = await run(script)
    assert result.outcome == Completed(None)
    assert result.usage.calls == 0
    assert result.stdout == "good.echo was not called: the script has already ended\n"
