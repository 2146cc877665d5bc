"""What the hints of a failed script say. Nothing here decides anything.

Above: hints.py, which finds the one that fits. Below: nothing. tests/broker/surface_texts.txt has all of them.
"""

from __future__ import annotations

from keyword import iskeyword
from typing import TYPE_CHECKING, Any

from codegen.plain_text import indented, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME_CHARACTERS = 80
_CALL_CHARACTERS = 400

PARTS_OF_ERRORS = "a ToolError has server, tool, message, content and structured_content; str(error) is its message"
HOW_TO_CALL = "tools are functions of their servers: `from tools import SERVER`, then `await SERVER.TOOL(argument=...)`"
WITHOUT_MARKDOWN = "send the code alone, without Markdown around it"
REAL_LINE_ENDS = r"the code has the two characters \n where its lines should end: send real newlines"
RESULTS_ARE_VALUES = "results of tools are Python values already, as their stubs say: leave out json.loads()"
RESULTS_ARE_DICTS = 'results of tools are plain dicts and lists: write value["key"], not value.key'
RESULT_IS_A_LIST = "if this is a tool's result, it is a list: take one element, as in value[0], or loop over it"
RESULTS_HAVE_NO_PARTS = "a call returns the tool's result itself, as its stub says, not an object around it"
NO_DATA = (
    "if this is an image, audio or a file: it has type, mime_type, size and id; its data stays outside the script. "
    "`await read_bytes(block)` returns its bytes, `base64.b64encode(await read_bytes(block)).decode()` its base64 "
    "text; display(block) shows it"
)
WITHOUT_PROMPTS = "send the code alone, without the prompts of an interactive session"
WITHOUT_MARKUP = "send the code alone, without the markup around it"
NO_ENTITIES = "the code holds HTML entities: send <, >, & and quotes as they are"
NO_NOTEBOOK = "notebook commands (% and !) are not Python, and nothing can be installed: leave them out"
PYTHON_ALONE = "execute_code runs Python, no other language"
NO_SHELL = "execute_code runs Python, no shell commands: call a server's tools instead"
NO_COMMAND_LINE = "a script has no command line: write the values into the script instead of reading arguments"
PLAIN_CHARACTERS = (
    "outside string literals, Python takes only plain characters: straight quotes, -, ... and ordinary spaces"
)
ASYNC_DEF = (
    "write `async def` for the function around it and `await` its calls; a lambda can return the call to be awaited"
)
GATHER_TAKES_CALLS = "asyncio.gather takes calls that are not awaited yet: leave out the `await` inside of it"
GATHER_THEM = "to await several calls at once write `await asyncio.gather(*calls)`"
SEVERAL_OR_NONE = f"{GATHER_THEM}; what calls have returned goes without `await`"
MAKE_A_LIST = "this is an asynchronous generator: write a list, `[await ... for ...]`, or loop with `async for`"
CALL_AND_AWAIT = (
    "a coroutine is an `async` call without `await`: write `await` before it, or `asyncio.gather` around several"
)
HELP_SHOWS = "help(tool) shows the stub of a tool"
TASKS_HAVE_RESULTS = "a task or a gather is not its result: `await` it, or take task.result() once it is done"
TIME_WAS_UP = (
    "the script's own timeout (asyncio.wait_for or asyncio.timeout) ran out: allow more seconds, or wait for less at a "
    "time"
)
NEXT_FOUND_NOTHING = "next() found nothing: give it a value for that case, as in next(..., None)"
NONE_HAS_NO_ORDER = (
    "a value is None, which has no order: leave it out, or sort by key=lambda one: (one is None, one), where `one` is "
    "what you sort by"
)
FORMAT_AS_TEXT = "a width is for text and numbers: write {value!s:<10} where it may be None, a list or a dict"
TAKE_THE_TEXT = (
    'if this is a tool\'s result, its text is in one of its keys, as its stub says: result["content"] or another'
)
NO_FILE = (
    "a script has no file or folder of its own: write the paths that tools need into it, as their servers know them"
)
BESIDE_SCRIPTS = (
    "search_tools, get_tool_details and execute_code are called beside a script, not in it; in a script, help(SERVER) "
    "shows a server's tools"
)
CALL_IN_JSON = "the code is a tool call in JSON, not Python"
FAILED_CALLS_RAISE = "a call that fails raises ToolError, and results do not say whether it failed: leave the test out"
CLASS_IN_MODULE = "the class of that name is in the module: write `from datetime import datetime`"
AWAIT_IT = "write `await` before it"
PYTHON_TEXT = "if this is a tool's result, its text is not JSON but a Python literal: `ast.literal_eval(text)` reads it"
NOT_AWAITED = (
    "`await` is for calls of tools and of `async` functions: functions that are not `async`, such as display() and "
    "print(), and values go without it"
)
TEXT_IS_NOT_PARSED = (
    "if this is a tool's result, it is text (str): json.loads() reads it if it is JSON, and if it is not, print its "
    "beginning first"
)
NUMBERS_ARE_TEXT = (
    "if this is of a tool's result, it is text (str): int(text) or float(text) reads it if it is no more than a "
    "number, and if it is more, print its beginning first"
)
DATES_ARE_TEXT = (
    "dates in results are text: datetime.fromisoformat(text) reads one; one with a time zone goes together with "
    "datetime.now(timezone.utc)"
)
ERRORS_AMONG_RESULTS = (
    "asyncio.gather(..., return_exceptions=True) returns errors among the results: leave out those for which "
    "isinstance(result, ToolError)"
)
LOOK_AT_THE_TEXT = "if this is a tool's result, it is text (str) in a format of its own: print its beginning first"


def only_there(name: str, line: int) -> str:
    """Return why a name to which a script gives a value has none."""
    shown = one_line(name, _NAME_CHARACTERS)
    return (
        f"`{shown}` gets its value at line {line}, which did not run to its end before this, or belongs to another "
        "function: give it a value first"
    )


def gone_after_except(name: str, line: int) -> str:
    """Return why the name of an error that was caught has no value any more."""
    shown = one_line(name, _NAME_CHARACTERS)
    return f"`{shown}` of line {line} exists only within its `except`: keep it under another name there"


def no_server_after(name: str, line: int) -> str:
    """Return that a script gave another value to the name of a server."""
    shown = one_line(name, _NAME_CHARACTERS)
    return (
        f"line {line} gives `{shown}` another value, so it is no server after that: choose another name for the value"
    )


def import_it(name: str) -> str:
    """Return how a script imports a server."""
    return f"write `from tools import {one_line(name, _NAME_CHARACTERS)}` first"


def import_as(server: str, name: str) -> str:
    """Return how a script imports a server whose name is no name in Python."""
    return f"the server {one_line(server, _NAME_CHARACTERS)} is `{name}` in scripts: write `from tools import {name}`"


def import_beside(server: str) -> str:
    """Return how a script gets at a server that has the name of one of Python's modules, and at both."""
    server = one_line(server, _NAME_CHARACTERS)
    return f"{server} is both a server and a Python module: write `from tools import {server} as {server}_server`"


def import_server(server: str, function: str) -> str:
    """Return how a script gets at a tool that it uses by its bare name."""
    call = f"{server}.{one_line(function, _NAME_CHARACTERS)}"
    return f"{call} is a tool: write `from tools import {server}` and `await {call}(...)`"


def write_call(server: str, function: str, arguments: Mapping[str, Any]) -> str:
    """Return a tool's call as a script writes it, with these arguments if they have room and legal names."""
    given = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    call = f"await {server}.{function}({given})"
    are_names = all(name.isidentifier() and not iskeyword(name) for name in arguments)
    if not are_names or len(call) > _CALL_CHARACTERS:
        return import_server(server, function)
    return f"write `from tools import {server}` and `{indented(call, _CALL_CHARACTERS)}`"
