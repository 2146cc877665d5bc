"""The usual mistakes of models: each error says what was meant, and an error that means something else says no more."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from mcp.server.mcpserver import Image

from broker import Broker, Config, Grant, ServerConfig
from broker.runs.script_check import spelled
from broker.surface.sent_code import plain_code
from broker.texts import hint_texts

pytestmark = pytest.mark.anyio

MISTAKES = {
    "a server that was not imported": ("await time.now()", "write `from tools import time` first"),
    "a tool by its bare name": (
        "await add(a=1)",
        "`add` is not imported (write `from tools.desk import add`)",
    ),
    "a server imported as a module": ("import desk", "write `from tools import desk` instead"),
    "a tool imported as a server": (
        "from tools import add",
        "(desk.add is a tool: write `from tools import desk` and `await desk.add(...)`)",
    ),
    "a tool by the name that hosts give it": (
        "await mcp__desk__add(a=1)",
        "desk.add is a tool: write `from tools import desk` and `await desk.add(...)`",
    ),
    "a client's method as a server": ("from tools import call_tool", "(tools are functions of their servers: "),
    "a server as an entry": ("import tools\ntools['desk']", "tools are functions of their servers: "),
    "a server by its own name": (
        "from tools import side-desk",
        "the server side-desk is `side_desk` in scripts: write `from tools import side_desk`",
    ),
    "calls that were not awaited": (
        "import asyncio\nfrom tools import desk\na, b = asyncio.gather(desk.add(a=1), desk.add(a=2))",
        "write `await` before it",
    ),
    "data of an image": (
        "from tools import desk\n{**(await desk.boxed())}['data']",
        "`await read_bytes(block)` returns its bytes",
    ),
    "data of an image by attribute": (
        "from tools import desk\n[*await desk.pictured()][1].data",
        "`await read_bytes(block)` returns its bytes",
    ),
    "data of an image that is None": (
        "import base64\nfrom tools import desk\nbase64.b64decode((await desk.pictured())[1].get('data'))",
        "`await read_bytes(block)` returns its bytes",
    ),
    "the type of an image as MCP spells it": (
        "from tools import desk\n(await desk.pictured())[1]['mimeType']",
        "it has type, mime_type, size and id",
    ),
    "a key as an attribute": (
        "from tools import desk\n[*await desk.pictured()][1].size",
        'write value["key"], not value.key',
    ),
    "the text of a block as an attribute": (
        "from tools import desk\n(await desk.pictured())[0].text",
        'write value["key"], not value.key',
    ),
    "a list of blocks as an object": (
        "from tools import desk\n(await desk.pictured())['content']",
        "it is a list: take one element, as in value[0], or loop over it",
    ),
    "a list of blocks as text": (
        "from tools import desk\n(await desk.pictured()).splitlines()",
        "it is a list: take one element, as in value[0], or loop over it",
    ),
    "a key that is a method of every dict": (
        "from tools import desk\nfor one in [*await desk.pictured()][1].items:\n    pass",
        'write value["key"], not value.key',
    ),
    "an attribute of an error": (
        "from tools import desk\ntry:\n    await desk.fail()\nexcept Exception as error:\n    error.code",
        "a ToolError has server, tool, message, content and structured_content",
    ),
    "a call in JSON": (
        '{"name": "add", "arguments": {"a": 1, "b": "x  y", "c": true, "d": null}}',
        (
            "1:1: the code is a tool call in JSON, not Python (write `from tools import desk` and "
            "`await desk.add(a=1, b='x  y', c=True, d=None)`)"
        ),
    ),
    "calls in JSON": (
        '[\n  {"tool": "mcp__desk__boxed", "input": {}},\n  {"tool": "add", "input": {"a": 1}}\n]',
        "(write `from tools import desk` and `await desk.boxed()`)",
    ),
    "a call in JSON with its server": (
        '{"server": "side-desk", "tool": "note", "args": {}}',
        "(write `from tools import side_desk` and `await side_desk.note()`)",
    ),
    "a call in JSON as a model's interface has it": (
        '{"id": "1", "type": "function", "function": {"name": "desk.add", "arguments": "{}"}}',
        "(desk.add is a tool: write `from tools import desk` and `await desk.add(...)`)",
    ),
    "a call in JSON of a tool that several servers have": (
        '{"name": "note", "arguments": {"text": "x"}}',
        "(desk.note is a tool: write `from tools import desk` and `await desk.note(...)`)",
    ),
    "a call in JSON with a key that is no name": (
        '{"name": "add", "arguments": {"from": 1}}',
        "(desk.add is a tool: write `from tools import desk` and `await desk.add(...)`)",
    ),
    "a call of search_tools in JSON": (
        '{"name": "search_tools", "arguments": {"query": "add"}}',
        "are called beside a script, not in it",
    ),
    "a method of a tool": (
        "from tools import desk\nawait desk.note.ainvoke({})",
        "`from tools import SERVER`, then `await SERVER.TOOL(argument=...)`",
    ),
    "a number that is awaited": ("await len('a')", "functions that are not `async`"),
    "a client's method": (
        "await call_tool('add', {'a': 1})",
        "(desk.add is a tool: write `from tools import desk` and `await desk.add(...)`)",
    ),
    "a method of a client": (
        "await session.call_tool(\n    name='add', arguments={'a': 1})",
        "\ndesk.add is a tool: write `from tools import desk` and `await desk.add(...)`",
    ),
    "a server of a client": ("await client.desk.add(a=1)", "\ndesk.add is a tool: write `from tools import desk`"),
    "a tool as a function of functions": ("await functions.add(a=1)", "(desk.add is a tool: write `from tools"),
    "a client's method that calls nothing": ("await client.list_resources()", "`from tools import SERVER`"),
    "a tool as an entry": ("import tools\nawait tools['desk.add'](a=1)", "\ndesk.add is a tool: write `from tools"),
    "a tool by getattr of all": ("import tools\ngetattr(tools, 'add')", "\ndesk.add is a tool: write `from tools"),
    "a tool of another server": (
        "from tools import side_desk\nawait side_desk.add(a=1)",
        "there is no tool `add` in tools.side_desk (desk.add is a tool: write `from tools import desk` and ",
    ),
    "a tool imported with its server": (
        "from tools import desk.add\nawait add(a=1)",
        "\ndesk.add is a tool: write `from tools import desk` and `await desk.add(...)`",
    ),
    "a server that is called a little like another": (
        "from tools import desktop\nawait desktop.open()",
        "(did you mean `desk`? there are: desk, side_desk, time)",
    ),
    "a value of a call that failed": (
        "from tools import desk\ntry:\n    x = await desk.fail()\nexcept ToolError:\n    pass\nprint(x)",
        "`x` gets its value at line 3, which did not run to its end before this",
    ),
    "a value of a loop over nothing": ("for n in ():\n    last = n\nlast", "`last` gets its value at line 2, "),
    "a variable of such a loop": ("for n in ():\n    pass\nn", "`n` gets its value at line 1, "),
    "a value of another function": (
        "def f():\n    x = 1\nf()\nx",
        "line 2, which did not run to its end before this, or",
    ),
    "an error after its except": (
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    pass\nstr(error)",
        "`error` of line 3 exists only within its `except`",
    ),
    "an error after its except, with a tool": (
        "try:\n    await desk.fail()\nexcept ToolError as error:\n    pass\nprint(error)",
        "5:7: `error` is not defined (`error` of line 3 exists only within its `except`",
    ),
    "a value that needs itself": ("total = total + 1", "each script starts anew: define what it uses"),
    "a name of an argument": ("print(\n    end='')\nend", "each script starts anew: define what it uses"),
    "a result by its server's name": (
        "from tools import desk\ndesk = await desk.note()\nawait desk.add(a=1)",
        "\nline 2 gives `desk` another value, so it is no server after that: choose another name for the value",
    ),
    "a typed result by its server's name": (
        "from tools import desk\ndesk = await desk.boxed()\nawait desk.add(a=1)",
        "(line 2 gives `desk` another value, so it is no server after that",
    ),
    "whether a call failed": (
        "from tools import desk\n(await desk.note()).isError",
        "a call that fails raises ToolError",
    ),
    "the arguments of a program": ("import sys\nsys.argv[1]", "a script has no command line"),
    "the options of a program": (
        "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('a')\nparser.parse_args()",
        "a script has no command line",
    ),
    "other arguments for extract": (
        "await extract(text='a', schema=list)",
        "as in extract(text, list[str], 'Only names.')",
    ),
    "prose around the code": ("Both:\n```\n1\n```\n```\n2\n```\n", "send the code alone, without Markdown around it"),
    "fences in a text": ("~~~py\n1\n~~~\nDone.\n~~~", "send the code alone, without Markdown around it"),
    "the prompts of a session": (">>> x = 1\n>>> x", "without the prompts of an interactive session"),
    "a command of a notebook": ("%pip install pandas\n1", "notebook commands (% and !) are not Python"),
    "tags around the code": ("<code>\n1\n</code>", "without the markup around it"),
    "entities": ("if 1 &lt; 2:\n    1", "the code holds HTML entities: send <"),
    "another language": ("const x = 1;\nconsole.log(x);", "runs Python, no other language"),
    "another language that calls a tool": (
        "async function main() {\n  return await desk.add({ a: 1 });\n}\nmain();",
        "SyntaxError: invalid syntax\nexecute_code runs Python, no other language",
    ),
    "a loop of another language": (
        "x = await desk.add(a=1)\nfor (const y of x) {\n}",
        "runs Python, no other language",
    ),
    "a test of another language": ("if (a === 1) {\n    1\n}", "runs Python, no other language"),
    "an import of another language": ("import { desk } from 'tools';", "runs Python, no other language"),
    "a comment of another language": ("// one\n1", "runs Python, no other language"),
    "a query": ("SELECT * FROM rows;", "runs Python, no other language"),
    "a command": ("git log --oneline | head -5", "runs Python, no shell commands: call a server's tools instead"),
    "a command that Python can read": ("ls -la /tmp", "runs Python, no shell commands: call a server's tools instead"),
    "a command without options": ("ls", "runs Python, no shell commands: call a server's tools instead"),
    "commands after each other": ("cd /tmp && ls", "runs Python, no shell commands: call a server's tools instead"),
    "tags with attributes": ('<invoke name="add">\n1\n</invoke>', "without the markup around it"),
    "curly quotes": ("print(“a”)", "straight quotes"),
    "hard spaces": ("x\u00a0= 1", "ordinary spaces"),
    "an await in a plain function": (
        "from tools import desk\ndef f():\n    return await desk.add(a=1)\nf()",
        "write `async def` for the function around it",
    ),
    "a list that is awaited": (
        "from tools import desk\nawait [desk.add(a=n) for n in (1, 2)]",
        "write `await asyncio.gather(*calls)`",
    ),
    "a generator with await in it": (
        "from tools import desk\nsum(await desk.add(a=n) for n in (1, 2))",
        "write a list, `[await ... for ...]`",
    ),
    "a generator with await in it, asked for any": (
        "from tools import desk\nany(await desk.add(a=n) for n in (1, 2))",
        "write a list, `[await ... for ...]`",
    ),
    "an asynchronous generator that is awaited": ("async def g():\n    yield 1\nawait g()", "loop with `async for`"),
    "a sum of coroutines": ("async def f(): return 1\nsum(f() for _ in 'ab')", "an `async` call without `await`"),
    "a server to be entered": (
        "from tools import desk\nasync with desk as client:\n    pass",
        "tools are functions of their servers: ",
    ),
    "the source of a tool": ("import inspect\nfrom tools import desk\ninspect.getsource(desk.add)", "help(tool) shows"),
    "an object as text": (
        "import io\nfrom tools import desk\nio.StringIO({**await desk.boxed()})",
        'result["content"]',
    ),
    "a tool with its server's name before it": (
        "await side_desk_note()",
        "side_desk.note is a tool: write `from tools import side_desk` and `await side_desk.note(...)`",
    ),
    "a server that is called otherwise": (
        "await desktop.add(a=1)",
        "desk.add is a tool: write `from tools import desk` and `await desk.add(...)`",
    ),
    "a variable that is called like a server": ("desktop.size", "each script starts anew: define what it uses"),
    "a variable of an earlier script": ("nothing_known", "each script starts anew: define what it uses"),
    "a server that there is not": (
        "await jira.search(query='a')",
        "no server is called so either (there are: desk, side_desk, time)",
    ),
    "a tool beside scripts": ("await search_tools(query='a')", "are called beside a script, not in it"),
    "a tool beside scripts as a server": ("from tools import search_tools", "are called beside a script, not in it"),
    "a class of the library": ("Counter('aab')", "write `from collections import Counter`"),
    "a module of the library": ("json.dumps(1)", "write `import json`"),
    "a class named like its module": ("datetime.now()", "write `from datetime import datetime`"),
    "a module for its class": ("import datetime\ndatetime.now()", "write `from datetime import datetime`"),
    "a word of JSON": ("x = null", "in Python it is `None`"),
    "the script's own file": (
        "import pathlib\npathlib.Path(__file__).parent",
        "a script has no file or folder of its own: write the paths that tools need into it",
    ),
    "a server with the name of a module": (
        "from tools import time\nimport time\nawait time.now()",
        "write `from tools import time as time_server`",
    ),
    "line ends as text": (r"import json\nprint(1)\n", "send real newlines"),
    "a result as JSON text": (
        "import json\nfrom tools import desk\njson.loads(await desk.boxed())",
        "leave out json.loads()",
    ),
    "text as JSON": (
        "import json\nfrom tools import desk\njson.loads(await desk.note())",
        "print its beginning",
    ),
    "Python as JSON": (
        "import json\nfrom tools import desk\njson.loads(await desk.rows())",
        "`ast.literal_eval(text)` reads it",
    ),
    "a display that is awaited": ("await display('a')", "such as display() and print(), and values go without it"),
    "text as an object": (
        "from tools import desk\n(await desk.note())['notes']",
        "json.loads() reads it if it is JSON",
    ),
    "text as a number": (
        "from tools import desk\ntotal = 0\ntotal += await desk.note()",
        "it is text (str): int(text) or float(text) reads it if it is no more than a number, and if it is more, print",
    ),
    "a column that is text": (
        "from tools import desk\nrows = [[await desk.note(), '3']]\n[row for row in rows if row[1] > 2.5]",
        "int(text) or float(text) reads it",
    ),
    "text in the format of a number": (
        "from tools import desk\nf'{await desk.note():.2f}'",
        "int(text) or float(text) reads it",
    ),
    "text in the old format of a number": (
        "from tools import desk\n'%d' % await desk.note()",
        "int(text) or float(text) reads it",
    ),
    "an error of another program": (
        "from tools import desk\ntry:\n    await desk.fail()\nexcept (ValueError, McpError) as error:\n    pass",
        "(failed calls of tools raise `ToolError`; an error of your own has to be defined in this script)",
    ),
    "an error of another program, on a line of its own": (
        "try:\n    1 / 0\nexcept (\n    ValueError,\n    LookupFailed,\n):\n    pass",
        "\nfailed calls of tools raise `ToolError`; an error of your own has to be defined in this script",
    ),
    "a name beside prose that excepts it": (
        "# all of them except lines that failed\nlen(lines)",
        "\neach script starts anew: define what it uses",
    ),
    "an error of another program, without a tool": (
        "try:\n    1 / 0\nexcept LookupFailed:\n    pass",
        "\nfailed calls of tools raise `ToolError`; an error of your own has to be defined in this script",
    ),
    "a method of objects on text": (
        "from tools import desk\n(await desk.note()).get('notes')",
        "json.loads() reads it if it is JSON",
    ),
    "a date that is text": (
        "from datetime import datetime\nfrom tools import time\ndatetime.now() - await time.now()",
        "datetime.fromisoformat(text) reads one",
    ),
    "a text before a date": (
        "from datetime import date\nfrom tools import desk\nawait desk.note() < date.today()",
        "datetime.fromisoformat(text) reads one",
    ),
    "an error among results": (
        "import asyncio\nfrom tools.desk import lost\n(await asyncio.gather(lost(), return_exceptions=True))[0]['a']",
        "isinstance(result, ToolError)",
    ),
    "the usual mistake in a task group": (
        "import asyncio\nasync def f(): (await desk.note()).a\nasync with asyncio.TaskGroup() as g: g.create_task(f())",
        "json.loads() reads it if it is JSON",
    ),
    "a task for its result": (
        "import asyncio\nasync def f(): return {}\n[asyncio.create_task(f())][0]['a']",
        "take task.result() once it is done",
    ),
    "calls to be waited for": (
        "import asyncio\nfrom tools import desk\nawait asyncio.wait([desk.add(a=1), desk.add(a=2)])",
        "write `await asyncio.gather(*calls)`",
    ),
    "an object that is awaited": ("import json\nawait json.loads('{}')", "and values go without it"),
    "results to be gathered": (
        "import asyncio\nfrom tools import desk\nawait asyncio.gather(*[await desk.boxed() for _ in 'ab'])",
        "leave out the `await` inside of it",
    ),
    "texts to be gathered": (
        "import asyncio\nawait asyncio.gather(\n    await desk.note(),\n    await desk.note(),\n)",
        "leave out the `await` inside of it",
    ),
    "the first of none": ("next(n for n in () if n)", "as in next(..., None)"),
    "None in order": ("sorted([None, 1])", "a value is None, which has no order"),
    "a width for None": ("f'{None:<10}'", "write {value!s:<10} where it may be None"),
    "an error of another name": ("from tools import desk, ToolException", "write `ToolError`, the base of all errors"),
    "a timeout of its own": (
        "import asyncio\nawait asyncio.wait_for(asyncio.sleep(5), 0.01)",
        "the script's own timeout",
    ),
    "a destructuring constant": ("const { a, b } = f();", "runs Python, no other language"),
    "a value that is awaited": ("x = [1]\nawait x[0]", "and values go without it"),
    "a key as an attribute of a typed result": (
        "from tools import desk\n(await desk.boxed()).a",
        'it is a dict: write ["a"]',
    ),
    "parts of a result": (
        "from tools import desk\n(await desk.note()).content",
        "returns the tool's result itself",
    ),
}


def note() -> Any:
    """Returns text of which no type is known."""
    return "a note"


def add(a: int) -> int:
    """Adds."""
    return a + 1


def fail() -> str:
    """Fails."""
    raise ValueError("no")


def lost() -> Any:
    """Fails too."""
    raise ValueError("no")


def pictured() -> Any:
    """Returns text and an image."""
    return ["a picture", Image(data=b"\x89PNG\r\n\x1a\n", format="png")]


def rows() -> Any:
    """Returns rows as some servers write them."""
    return str([{"name": "Ada"}])


def now() -> str:
    """Returns the time."""
    return "now"


def boxed() -> dict[str, int]:
    """Returns an object."""
    return {"a": 1}


@pytest.fixture
async def session():
    async with Broker(
        servers={"desk": [note, add, boxed, fail, lost, pictured, rows], "side-desk": [note], "time": [now]}
    ) as broker:
        yield broker.session(grants=[Grant("*")])


async def told(session, script: str) -> str:
    result = await session.execute_code(script, describe_references=True)
    return str(result.error.traceback)


@pytest.mark.parametrize(("script", "hint"), MISTAKES.values(), ids=MISTAKES.keys())
async def test_a_usual_mistake_is_told_what_was_meant(session, script, hint):
    assert hint in await told(session, script)


@pytest.mark.parametrize(
    "script",
    [
        "import nothing_known",
        "x = (",
        "x = '''\n<b>&lt;\n%d\n>>> 1\n'''\ny = (",
        "import time\ntime.nothing",
        "import json\njson.loads('{')",
        "x = {}\nx[{}]",
        "raise TimeoutError('the lamp is off')",
        "import json\njson.loads(str([{'name': 'Ada'}]))",
        "(5).content",
        "from tools import desk\nawait desk.boxed()\n1 / 0",
        "for (x, y) in [1, 2:",
        "find = 1 2",
        "x = 7 //",
        "class Desk:\n    pass\ndesk = Desk()\ndesk.nothing",
    ],
)
async def test_any_other_error_is_told_as_it_is(session, script):
    last = (await told(session, script)).rstrip().splitlines()[-1]
    assert ": " in last
    assert "`" not in last.removesuffix("and `tools`")


@pytest.mark.parametrize(
    "script",
    [
        '{"name": "nothing", "arguments": {"a": 1}}',
        '{"name": "add"}',
        '{"name": "add", "arguments": {"a": 1}, "total": 3}',
        '{"name": 1, "arguments": {}}',
        '[{"name": "Ada"}, {"name": "Bob"}]',
        '["add"]',
        "[]",
        "{}",
    ],
)
async def test_a_value_that_could_be_json_is_a_value(session, script):
    result = await session.execute_code(script)
    assert (result.value, result.error) == (json.loads(script), None)


@pytest.mark.parametrize("argument", ["[" * 900 + "]" * 900, "9" * 5_000, '"' + "x" * 90_000 + '"'])
async def test_a_call_in_json_may_hold_anything(session, argument):
    script = f'{{"name": "add", "arguments": {{"a": {argument}}}}}'
    assert await told(session, script)


@pytest.mark.parametrize("check", ["error", "off"])
@pytest.mark.parametrize(
    "script",
    ["from tools import desk", "await desk.add(a=1)", "import desk", "import tools\nawait tools.desk.add(a=1)"],
)
async def test_a_script_is_told_that_a_server_is_disabled(script, check):
    async with Broker(Config(servers={"desk": ServerConfig(command="x", disabled=True)})) as broker:
        result = await broker.session().execute_code(script, describe_references=True, check=check)
    assert result.error is not None
    assert "desk is disabled in the config: do without it" in result.error.message
    assert "write `from tools import desk`" not in result.error.message


async def test_a_call_in_json_of_a_disabled_server_is_told_so():
    async with Broker(Config(servers={"desk": ServerConfig(command="x", disabled=True)})) as broker:
        said = await told(broker.session(), '{"name": "desk.add", "arguments": {"a": 1}}')
    assert "desk is disabled in the config: do without it" in said


async def test_the_server_that_a_call_in_json_names_is_connected_for_it(faulty):
    config = Config(servers={"idle": faulty("plain", lazy=True)})
    async with Broker(config) as broker:
        said = await told(broker.session(), '{"name": "idle.echo", "arguments": {"text": "x"}}')
    assert "`from tools import idle` and `await idle.echo(text='x')`" in said


async def test_a_check_alone_tells_of_a_call_in_json(session):
    checked = await session.check_code('{"name": "add", "arguments": {"a": 1}}')
    assert [spelled(one) for one in checked.diagnostics] == [
        "1:1: the code is a tool call in JSON, not Python (write `from tools import desk` and `await desk.add(a=1)`)"
    ]


@pytest.mark.parametrize("use", ["one['a']", "one.get('a')"])
async def test_a_loop_over_the_keys_of_a_result_is_not_taken_for_text(session, use):
    script = f"from tools import desk\nbox = {{**await desk.boxed()}}\nfor one in box: {use}"
    assert (await told(session, script)).endswith("\n`box` has the key 'a': a loop over it gives these\n")


async def test_the_hint_is_the_message_of_an_error_that_has_none(session):
    result = await session.execute_code("import asyncio\nawait asyncio.wait_for(asyncio.sleep(5), 0.01)")
    assert (result.error.type, result.error.message) == ("TimeoutError", hint_texts.TIME_WAS_UP)


async def test_tools_and_its_errors_need_no_import(session):
    script = (
        "try:\n    await tools.desk.add(a=1)\n    raise ToolError('why')\n"
        "except tools.ToolError as error:\n    told = error.message\ntold"
    )
    result = await session.execute_code(script, describe_references=True)
    assert (result.value, [call.status for call in result.calls]) == ("why", ["ok"])


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("await desk.add(a=1)", 2),
        ("async def f(x):\n    return await desk.add(a=x)\nawait f(2)", 3),
        ("import asyncio\nawait asyncio.gather(side_desk.note(), desk.add(a=1))", ["a note", 2]),
        ("desk = {'add': [1]}\ndesk.get('add')", [1]),
        ("found = []\nfor desk in ('a', 'b'): found.append(desk.upper())\nfound", ["A", "B"]),
        ("import json as desk\ndesk.loads('1')", 1),
        ("'desk.add'", "desk.add"),
    ],
)
async def test_servers_need_no_import_and_names_of_the_script_come_first(session, script, value):
    result = await session.execute_code(script, describe_references=True)
    assert (result.value, result.error) == (value, None)


async def test_a_server_without_an_import_is_described_and_checked_as_any_other(session):
    lacking = await session.dispatch("execute_code", {"code": "await desk.add(a=1)"})
    wrong = await session.dispatch("execute_code", {"code": "await desk.add(b=1)"})
    ran = await session.dispatch("execute_code", {"code": "await desk.add(a=1)"})
    assert "not been described yet: desk.add (line 1)." in lacking.text
    assert "async def add(" in lacking.text
    assert "ScriptCheckError" in wrong.text
    assert "has no parameter `b`" in wrong.text
    assert ran.text == "2\ncalls: desk.add ok"


@pytest.mark.parametrize(
    ("script", "place"),
    [
        ("from tools import desk\nawait desk.Add(a=1)", "desk.add (line 2, where it is written desk.Add)"),
        ("from tools import add\nawait add(a=1)", "desk.add (line 1, where it is written add)"),
        ("import tools\nawait tools.mcp__desk__add(a=1)", "desk.add (line 2, where it is written mcp__desk__add)"),
        ("await mcp__desk__add(a=1)", "desk.add (line 1, where it is written mcp__desk__add)"),
        ("x = 1\nawait mcp_desk_add(a=x)", "desk.add (line 2, where it is written mcp_desk_add)"),
        ("await desk__add(a=1)", "desk.add (line 1, where it is written desk__add)"),
        ("print(await add(a=1))", "desk.add (line 1, where it is written add)"),
        ("await functions.add(a=1)", "desk.add (line 1, where it is written functions.add)"),
        ("print(default_api.add(a=1))", "desk.add (line 1, where it is written default_api.add)"),
        ("from mcp__desk import add\nawait add(a=1)", "desk.add (line 1, where it is written mcp__desk.add)"),
        ("await call_tool('add', {'a': 1})", "desk.add (line 1, where it is written add)"),
    ],
)
async def test_a_tool_that_is_spelt_otherwise_is_described_at_once(session, script, place):
    lacking = await session.dispatch("execute_code", {"code": script})
    assert f"not been described yet: {place}." in lacking.text
    assert "async def add(" in lacking.text
    described = await session.dispatch("execute_code", {"code": script})
    assert described.structured["error"]["type"] in {"ScriptCheckError", "ModuleNotFoundError"}
    assert "No tool was called." in described.text


async def test_of_a_tool_that_its_server_has_withdrawn_that_is_said(session):
    fetched = await session.dispatch("get_tool_details", {"tools": ["desk.add", "desk.note"]})
    assert not fetched.is_error
    catalog = session._catalog
    catalog.replace("desk", [entry.spec for entry in catalog.of_server("desk") if entry.spec.name != "add"])
    checked = await session.dispatch("execute_code", {"code": "from tools import desk\nawait desk.add(a=1)"})
    assert checked.structured["error"]["type"] == "ScriptCheckError"
    assert "there is no tool `add` in tools.desk any more: its server has withdrawn it (" in checked.text
    fetched = await session.dispatch("get_tool_details", {"tools": ["desk.add"]})
    assert fetched.text.startswith('The server of "desk.add" has withdrawn it.\nThere is no tool "desk.add": ')
    other = await session.dispatch("execute_code", {"code": "from tools import desk\nawait desk.ad(a=1)"})
    assert "there is no tool `ad` in tools.desk (" in other.text


async def test_a_tool_that_has_changed_is_not_said_to_have_never_been_described(session):
    await session.dispatch("get_tool_details", {"tools": ["desk.add"]})
    catalog = session._catalog
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a"]}
    catalog.replace(
        "desk",
        [replace(entry.spec, input_schema=schema) for entry in catalog.of_server("desk") if entry.spec.name == "add"],
    )
    lacking = await session.dispatch("execute_code", {"code": "await desk.add(a=1)"})
    assert (
        "these tools have not been described yet, or have changed since they were: desk.add (line 1). "
        "desk.add changed: new parameter 'b', parameter 'a'. They are described now"
    ) in lacking.text
    assert lacking.text.endswith("\n\"desk.add\" changed since you fetched it: new parameter 'b', parameter 'a'")


async def test_of_a_tool_that_its_server_withdraws_while_a_script_runs_that_is_said(session):
    catalog = session._catalog
    left = [entry.spec for entry in catalog.of_server("desk") if entry.spec.name != "add"]
    result = await session.execute_code(
        "from tools import desk\nawait desk.note()\nawait desk.add(a=1)",
        describe_references=True,
        on_call=lambda *_: catalog.replace("desk", left),
    )
    assert result.error.type == "ToolNotFoundError"
    assert result.error.message.startswith("There is no tool desk.add any more: its server has withdrawn it.")


async def test_what_a_script_does_not_fit_is_said_with_the_descriptions_that_it_lacked(session):
    script = "from tools import desk\nawait desk.add(b=1)\nawait mcp__desk__boxed()"
    wrong = await session.dispatch("execute_code", {"code": script})
    assert wrong.text.index("does not fit them: correct it by the stubs below") < wrong.text.index("async def add(")
    assert "2:16: add has no parameter `b`" in wrong.text
    assert "3:7: `mcp__desk__boxed` is not defined (desk.boxed is a tool: write `from tools import desk`" in wrong.text
    assert wrong.structured["error"]["message"].count("async def") == 2
    fitting = await session.dispatch("execute_code", {"code": "from tools import desk\nawait desk.note()"})
    assert "check that the script fits the stubs below, and run it again.\nNo tool was called." in fitting.text


@pytest.mark.parametrize(("namespace", "is_meant"), [("desks", True), ("desktop", True), ("slack", False)])
async def test_the_tool_of_a_server_that_is_near_by_name_is_described_at_once(session, namespace, is_meant):
    script = f"from tools import {namespace}\nawait {namespace}.add(a='x')"
    lacking = await session.dispatch("execute_code", {"code": script})
    assert f"there is no server `{namespace}` in tools (" in lacking.text
    is_described = f"desk.add (line 2, where it is written {namespace}.add)" in lacking.text
    assert (is_described, "async def add(" in lacking.text) == (is_meant, is_meant)


@pytest.mark.parametrize(
    ("script", "instead"),
    [
        ("import desk\nawait desk.add(a=1)", "from tools import desk"),
        ("from desk import add\nawait add(a=1)", "from tools.desk import add"),
    ],
)
async def test_a_tool_of_a_server_that_is_imported_as_a_module_is_described_at_once(session, script, instead):
    lacking = await session.dispatch("execute_code", {"code": script})
    assert "async def add(" in lacking.text
    assert f"there is no module `desk` (write `{instead}` instead)" in lacking.text
    described = await session.dispatch("execute_code", {"code": script})
    assert f"write `{instead}` instead" in described.text
    assert "No tool was called." in described.text


@pytest.mark.parametrize(
    "script",
    [
        "try:\n    from desk import add\nexcept ImportError:\n    from tools.desk import add\nawait add(a=5)",
        "try:\n    import desk\nexcept ImportError:\n    desk = None\n6",
    ],
)
async def test_a_script_that_reckons_with_no_module_of_a_servers_name_runs(session, script):
    await session.get_tool_details(["desk.*"])
    reply = await session.dispatch("execute_code", {"code": script})
    assert (reply.text.partition("\n")[0], reply.is_error) == ("6", False)


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("def add(a): return a\nadd(a=5)", 5),
        ("from operator import *\nadd(1, 4)", 5),
        ("exec('add = len')\nadd('abcde')", 5),
        ("functions = {'add': 5}\nfunctions.get('add')", 5),
        ("'await mcp__desk__add(a=1)'[:0] or 5", 5),
    ],
)
async def test_a_name_that_a_script_gives_a_value_is_no_tool(session, script, value):
    await session.get_tool_details(["desk.add"])
    reply = await session.dispatch("execute_code", {"code": script})
    assert (reply.text, reply.is_error) == (str(value), False)


@pytest.mark.parametrize("name", ["note", "mcp__note", "mcp__desk__notes", "deskk_add"])
async def test_a_name_that_may_be_of_several_tools_or_of_none_describes_nothing(session, name):
    reply = await session.dispatch("execute_code", {"code": f"await {name}()"})
    assert f"`{name}` is not defined" in reply.text or f"name '{name}' is not defined" in reply.text
    assert "No tool was called." in reply.text
    assert "not been described" in (await session.dispatch("execute_code", {"code": "await desk.note()"})).text


async def test_a_fetch_takes_bare_names_and_says_what_else_to_do(session):
    bare = await session.dispatch("get_tool_details", {"tools": "add"})
    listed = await session.dispatch("get_tool_details", {"tools": '["desk.note", "desk.boxed"]'})
    server = await session.dispatch("get_tool_details", {"tools": ["desk.*"]})
    assert "async def add(" in bare.text
    assert "async def note(" in listed.text
    assert "async def boxed(" in listed.text
    assert all(f"async def {name}(" in server.text for name in ("add", "note", "boxed"))
    assert not server.is_error


async def test_tools_that_a_script_finds_out_while_it_runs_do_not_keep_it_from_starting(session):
    await session.get_tool_details(["desk.add"])
    script = "from tools import desk\nprint(await getattr(desk, 'a' + 'dd')(a=1))\nawait getattr(desk, 'no' + 'te')()"
    result = await session.execute_code(script)
    assert result.stdout == "2\n"
    assert result.error.type == "ToolDescriptionRequired"
    assert 'get_tool_details({"tools": ["desk.note"]})' in result.error.message


@pytest.mark.parametrize(
    ("sent", "run"),
    [
        ("```python\n1 / 0\n```", "\n1 / 0"),
        ("\n```\nx = 1\nx\n```\n\n", "\n\nx = 1\nx"),
        ("\ufeffx = 1\n", "x = 1\n"),
        ("\ufeff```\n1\n```", "\n1"),
        ("print('```')", "print('```')"),
        ("x = '''\n```\n'''", "x = '''\n```\n'''"),
        ("```python\n1\n```\nand more", "\n1"),
        ("Here it is:\n\n```python\nx = 1\nx\n```\n\nThat's all.", "\n\n\nx = 1\nx"),
        ("It's (as you want):\r\n```\r\n1\r\n```\r\n", "\n\n1\r"),
        ("print(3)\nIt prints:\n```\n3\n```", "print(3)\nIt prints:\n```\n3\n```"),
        ("Here:\n```\n1\n```\nx = 1", "Here:\n```\n1\n```\nx = 1"),
        ("First:\n```bash\n1\n```", "First:\n```bash\n1\n```"),
        ("(\n~~~\n1\n+\n~~~\n2)", "(\n~~~\n1\n+\n~~~\n2)"),
        ("One:\n```\n1\n```\nTwo:\n```\n2\n```", "One:\n```\n1\n```\nTwo:\n```\n2\n```"),
        ("x = '''\n```\n1\n```\n'''\nx", "x = '''\n```\n1\n```\n'''\nx"),
        ("x = 'a\\\n```\n1\\\n```'", "x = 'a\\\n```\n1\\\n```'"),
        ("a\n```py\n1\n```py\n", "a\n```py\n1\n```py\n"),
        ('```python title="a.py"\n1\n```', "\n1"),
        ("~~~\n1\n~~~", "\n1"),
        ("```py\n1```", "\n1"),
        ("  ```py\n  if x:\n      1\n  ```", "\nif x:\n    1"),
        ("\n    x = 1\n\n    if x:\n        x\n", "\nx = 1\n\nif x:\n    x\n"),
        ("\ufeff\tx = 1\n\tx", "x = 1\nx"),
        ("  x = 1\nx", "  x = 1\nx"),
        ('"x = 1\\nprint(\\"x\\")"', 'x = 1\nprint("x")'),
        ('"print(1)"', "print(1)"),
        ('{"code": "```python\\nx\\n```", "timeout": 5}', "\nx"),
        ('"a text"', '"a text"'),
        ('{"name": "execute_code", "arguments": {"code": "x"}}', "x"),
        ('{"name": "execute_code", "arguments": "{\\"code\\": \\"import x\\\\n\\"}"}', "import x\n"),
        ('{"name": "execute_code", "arguments": ["import x"]}', '{"name": "execute_code", "arguments": ["import x"]}'),
        ('{"name": "other", "arguments": {"code": "x"}}', '{"name": "other", "arguments": {"code": "x"}}'),
        ('{"code": 1}', '{"code": 1}'),
        ('{"code": "x", "other": 1}', '{"code": "x", "other": 1}'),
        ('"a"\nprint("b")\n"c"', '"a"\nprint("b")\n"c"'),
    ],
)
async def test_a_fence_around_the_code_is_taken_off_and_lines_keep_their_numbers(sent, run):
    assert plain_code(sent) == run


@pytest.mark.parametrize(
    "sent",
    [
        "[" * 500_000 + "]",
        '"' + "\\" * 500_000 + '"',
        "```\n" + " " * 500_000,
        "\n" * 500_000 + "`",
        "```\n" * 100_000 + "x",
        "```" + "x" * 500_000 + "\n```x",
        "~" * 500_000 + "`\n",
        " " * 500_000 + "x = 1\n```\n1\n```",
        "x" * 500_000 + " =\n```\n1\n```",
    ],
    ids=["brackets", "backslashes", "spaces", "lines", "fences", "words", "tildes", "margin", "name"],
)
async def test_code_that_only_begins_like_markdown_is_left_alone_however_long_it_is(sent):
    assert plain_code(sent) == sent


async def test_what_a_long_script_may_have_meant_is_found_in_one_pass(session):
    for script in (r"\n" * 200_000 + "\nx y", "\n" * 400_000 + "x y"):
        result = await session.execute_code(script)
        assert result.error.type == "SyntaxError"


async def test_an_error_of_any_length_gets_its_hint_in_no_time(session):
    # Searched as a whole, it would hold the interpreter for a minute.
    longer = "import sys\nsys.modules['guest.failures'].MAX_MESSAGE = 100_000\n"
    begin = f"{longer}from tools import desk\nawait desk.add(a=1)\n"
    text = "TypeError: a bytes-like object is required, not "
    assert hint_texts.TAKE_THE_TEXT not in await told(session, f"{begin}raise TypeError('{text}' * 410)")
    assert hint_texts.TAKE_THE_TEXT not in await told(
        session, f"{begin}raise TypeError('x' * 1_000 + \"{text}'dict'\")"
    )
    assert hint_texts.TAKE_THE_TEXT in await told(session, f"{begin}raise TypeError(\"{text}'dict'\" + ' ' * 19_000)")


async def test_code_indented_by_any_number_of_spaces_is_taken_back():
    margin = " " * 1_000_000  # `textwrap` would make a pattern of it, and keep that
    assert plain_code(f"{margin}x = 1\n \n{margin} y = 2") == "x = 1\n\n y = 2"


async def test_code_that_is_empty_is_refused(session):
    for code in ("", " \n", "```python\n```"):
        reply = await session.dispatch("execute_code", {"code": code})
        assert reply.is_error
        assert reply.text.startswith("execute_code was not called: code: there is none.")
