"""Hints that follow the error of a failed script: what it may have meant, for the mistakes that models make most.

Above: execution.py, preparation.py. Below: hint_texts.py, the catalog. Pure. A script is searched by
patterns alone, and a hint that is wrong costs whoever wrote it a line.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.calls.call_failures import text_for
from broker.texts import call_texts, hint_texts
from broker.tools.spellings import STAND_INS
from codegen import Diagnostic
from codegen.undefined_names import STARTS_ANEW, nowhere_hint, python_hint
from sandbox import Raised

if TYPE_CHECKING:
    from broker.tools.catalog import Catalog
    from sandbox import Outcome

_UNDEFINED = re.compile(r"name '(\w+)' is not defined")
_NO_MODULE = re.compile(r"No module named '(\w+)'")
_NO_TOOL = re.compile(r"there is no tool `(\w+)` in tools\.(\w+)\Z")
_UNKNOWN = re.compile(r"there is no server `(\w+)` in tools|`(\w+)` is not defined")
_MODULE_WITHOUT = re.compile(r"module '(\w+)' has no attribute '(\w+)'")
_NO_SYNTAX = frozenset({"SyntaxError", "IndentationError", "TabError"})
_NO_ATTRIBUTE = re.compile(r"has no attribute ['`](\w+)['`]")
_NO_SERVER = re.compile(r"(?m)^there is no server '(\w+)' in tools")
_AT_LINE = re.compile(r'File "[^"\n]*", line (\d+)')
_DOTTED_IMPORT = re.compile(r"\bfrom tools import (\w+)\.(\w+)")
_COMMAND = (
    r"(?:awk|bash|cat|cd|chmod|cp|curl|docker|echo|export|find|git|grep|head|jq|ls|mkdir|mv|node|npm|npx|pip3?|pwd"
    r"|python3?|rg|rm|sed|sh|sudo|tail|touch|wget|which)"
)
_AS_COMMAND = re.compile(rf"(?m)^[ \t]*(?:{_COMMAND} +[-/~]|(?:ls|pwd)[ \t]*$)")
_GIVES = re.compile(
    r"(?m)^[ \t]*(?:(?:async )?for ([^\n]{1,200}?) in\b"
    r"|((?:\w+[ \t]*,[ \t]*)*\w+)[ \t]*(?::[^=\n]{0,100})?[ \t]=(?!=))"
)
"""What gives names a value: a loop, or a statement; a space before `=` is what arguments by name do not have."""
_NAME = re.compile(r"(?<![\w.])\w+")
_MARKDOWN = re.compile(r"(?m)^[ \t]*(?:```|~~~)")
_UNREAD = (
    (re.compile(r"(?m)^[ \t]*(?:>>> |In \[\d+\]:)"), hint_texts.WITHOUT_PROMPTS),
    (re.compile(r"(?m)^[ \t]*[%!][A-Za-z]"), hint_texts.NO_NOTEBOOK),
    (re.compile(r"(?m)^[ \t]*(?:</?\w+(?: [^>\n]{1,300})?>|<!\[CDATA\[)"), hint_texts.WITHOUT_MARKUP),
    (re.compile(r"&(?:lt|gt|amp|quot|#39);"), hint_texts.NO_ENTITIES),
    (
        re.compile(
            r"(?m)^[ \t]*(?:(?:export )?(?:const|let|var) [\w{\[][^=\n]*=|import \{|//|SELECT\b"
            r"|(?:export )?(?:default )?(?:async )?function\b)"
            r"|\bconsole\.log\(|\((?:const|let|var) |\) *=> |^[ \t]*(?:if|for|while) ?\(.*\) *\{$"
        ),
        hint_texts.PYTHON_ALONE,
    ),
    (re.compile(rf"(?m)^[ \t]*{_COMMAND} +[\w./~$\"'-]"), hint_texts.NO_SHELL),
    (re.compile(r"invalid (?:non-printable )?character"), hint_texts.PLAIN_CHARACTERS),
    (re.compile(r"'await' outside|outside of an asynchronous function"), hint_texts.ASYNC_DEF),
)
"""In the error of a script that does not parse, which shows the line at which Python gave up."""

_RESULT_TAKEN_WRONG = (
    (re.compile(r"has the keys? .*: a loop over it gives "), ""),  # which says it all
    (re.compile(r"has no attribute 'is_?[eE]rror'|KeyError: 'is_?[eE]rror'"), hint_texts.FAILED_CALLS_RAISE),
    (re.compile(r"TypeError: the JSON object must be str, .* not (?:dict|list)"), hint_texts.RESULTS_ARE_VALUES),
    (
        re.compile(
            r"KeyError: '(?:data|blob|base64|mimeType)'"
            r"|AttributeError: 'dict' object has no attribute '(?:data|blob|base64|mime_?[tT]ype)'"
            r"|TypeError: argument should be a bytes-like object or ASCII string, not 'NoneType'"
        ),
        hint_texts.NO_DATA,
    ),
    (
        re.compile(
            r"AttributeError: '(?:str|list)' object has no attribute '(?:content|text|data|structured\w*)'"
            r"|AttributeError: 'dict' object has no attribute '(?:content|structured\w*)'"
        ),
        hint_texts.RESULTS_HAVE_NO_PARTS,
    ),
    (re.compile(r"AttributeError: 'dict' object has no attribute "), hint_texts.RESULTS_ARE_DICTS),
    (
        re.compile(
            r"TypeError: list indices must be integers or slices, not str"
            r"|AttributeError: 'list' object has no attribute "
        ),
        hint_texts.RESULT_IS_A_LIST,
    ),
    (
        re.compile(r"(?:Attribute|Type)Error: .*\bbuiltin_function_or_method\b"),
        hint_texts.RESULTS_ARE_DICTS,  # `page.items` is a method
    ),
    (
        re.compile(r"TypeError: .*(?:must be str|expected str|a bytes-like object).* '?(?:dict|list)\b"),
        hint_texts.TAKE_THE_TEXT,
    ),
    (
        re.compile(
            r"TypeError: .*'(?:(?:int|float)' and 'str|str' and '(?:int|float))'"
            r"|TypeError: %\w format: .* number is required, not str|ValueError: Unknown format code .* 'str'"
        ),
        hint_texts.NUMBERS_ARE_TEXT,
    ),
    (
        re.compile(r"TypeError: string indices must be integers|AttributeError: 'str' object has no attribute "),
        hint_texts.TEXT_IS_NOT_PARSED,
    ),
    (
        re.compile(
            r"TypeError: .*'(?:datetime\.date(?:time)?' and 'str|str' and 'datetime\.date(?:time)?)'"
            r"|TypeError: can't (?:subtract|compare) offset-naive and offset-aware"
        ),
        hint_texts.DATES_ARE_TEXT,
    ),
    (re.compile(r"json\.decoder\.JSONDecodeError: Expecting property name enclosed in"), hint_texts.PYTHON_TEXT),
    (re.compile(r"json\.decoder\.JSONDecodeError: "), hint_texts.LOOK_AT_THE_TEXT),
)
"""In the error of a script that has called."""

_ANYWHERE = (
    (
        re.compile(r"(?:Type|Attribute)Error: '(?:guest\.stubs\.)?_(?:Tools|Namespace|Described|Listed)' object "),
        hint_texts.HOW_TO_CALL,
    ),
    (re.compile(r"was expected, got _(?:Described|Listed)"), hint_texts.HELP_SHOWS),
    (re.compile(r"TypeError: extract\(\) (?:got|missing|takes) "), call_texts.EXTRACT_TAKES),
    (re.compile(r"TypeError: '(?:list|tuple|set|generator)' object can't be awaited"), hint_texts.SEVERAL_OR_NONE),
    (
        re.compile(r"TypeError: 'async_generator' object (?:is not (?:iterable|an iterator)|can't be awaited)"),
        hint_texts.MAKE_A_LIST,
    ),
    (re.compile(r"TypeError: .*'coroutine'"), hint_texts.CALL_AND_AWAIT),
    (
        re.compile(r"TypeError: '(?:NoneType|bool|bytes|dict|float|int|str)' object can't be awaited"),
        hint_texts.NOT_AWAITED,
    ),
    (re.compile(r"TypeError: 'Tool\w+' object is not "), hint_texts.ERRORS_AMONG_RESULTS),
    (re.compile(r"AttributeError: 'Tool\w+' object has no attribute "), hint_texts.PARTS_OF_ERRORS),
    (re.compile(r"RuntimeError: await wasn't used with future"), hint_texts.AWAIT_IT),
    (re.compile(r"(?:Type|Attribute)Error: '[\w.]*(?:Task|Future)' object "), hint_texts.TASKS_HAVE_RESULTS),
    (re.compile(r"TypeError: Passing coroutines is forbidden"), hint_texts.GATHER_THEM),
    (re.compile(r"RuntimeError: coroutine raised StopIteration"), hint_texts.NEXT_FOUND_NOTHING),
    (re.compile(r"TypeError: '[<>]=?' not supported between instances of .*'NoneType'"), hint_texts.NONE_HAS_NO_ORDER),
    (re.compile(r"TypeError: unsupported format string passed to \w+\.__format__"), hint_texts.FORMAT_AS_TEXT),
    (re.compile(r"\ATimeoutError: \Z"), hint_texts.TIME_WAS_UP),
)
_AT_A_LINE = (
    (
        re.compile(r"\bsys\.argv\[(?:.*\n){1,3}IndexError: |\.parse_args\((?:.*\n){1,3}SystemExit: 2"),
        hint_texts.NO_COMMAND_LINE,
    ),
    (
        re.compile(r"\bgather\((?:.*\n){1,12}TypeError: (?:cannot use '\w+' as a dict key|An asyncio\.Future, )"),
        hint_texts.GATHER_TAKES_CALLS,
    ),
)
"""In the end of a traceback, with the lines of the script."""
_MAX_READ = 1_000
"""Characters of an error: a script may write more of it, and some patterns take the cube of their number."""
_MAX_SCRIPT = 100_000
"""Characters of a script in which names are looked for that it gives values: this is done on the event loop."""
_OF_CLIENTS = STAND_INS | {"call", "client", "invoke", "mcp", "mcp_client", "session", "tools"}
_BESIDE = frozenset({"execute_code", "get_tool_details", "search_tools"})
_NAME_KEYS = ("name", "tool", "tool_name")
_ARGUMENT_KEYS = ("arguments", "args", "parameters", "input")
_CALL_KEYS = frozenset({*_NAME_KEYS, *_ARGUMENT_KEYS, "id", "server", "type"})


class JsonCall(NamedTuple):
    """A call of what may be a tool, with its arguments, which may be JSON once more."""

    name: str
    arguments: dict[str, Any] | str


def with_hint(outcome: Outcome, script: str, catalog: Catalog, *, has_called: bool) -> Outcome:
    """Return the outcome of a run; the error of one of the usual mistakes gets a hint.

    Args:
        outcome: As the sandbox gave it.
        script: The script.
        catalog: Whose servers and tools it may have meant.
        has_called: Whether it made calls, so that what it stumbled over may be a result.
    """
    if not isinstance(outcome, Raised):
        return outcome
    hint = _hint(outcome, script, catalog, has_called=has_called)
    if not hint:
        return outcome
    message = f"{outcome.message}\n{hint}" if outcome.message else hint
    return Raised(outcome.type, message, f"{outcome.traceback.rstrip()}\n{hint}\n")


def sharpened(diagnostic: Diagnostic, script: str, catalog: Catalog) -> Diagnostic:
    """Return a mistake; if a tool was named wrongly, say which server has it, or that it is gone."""
    if (tool := _NO_TOOL.match(diagnostic.message)) is not None:
        if catalog.has_withdrawn(f"{tool[2]}.{tool[1]}"):
            return replace(diagnostic, message=f"{diagnostic.message}{call_texts.WITHDRAWN}")
        has_no_near = diagnostic.hint.startswith("there are")
        home = _home(tool[1], catalog) if has_no_near else None
        return replace(diagnostic, hint=hint_texts.import_server(home, tool[1])) if home is not None else diagnostic
    named = _UNKNOWN.match(diagnostic.message)
    hint = _tool_hint(named[1] or named[2], script, catalog) if named is not None else ""
    if not hint and named is not None and diagnostic.hint == STARTS_ANEW:
        hint = _without_value(named[2], diagnostic.line, script)
    if not hint and (missing := _NO_ATTRIBUTE.search(diagnostic.message)) is not None:
        hint = _another_value(missing[1], script, catalog)
    return replace(diagnostic, hint=hint) if hint else diagnostic


def is_of_another_language(script: str, line: int) -> bool:
    """Tell whether a line that Python cannot read looks like another language: its other mistakes mean nothing then."""
    text = script.split("\n")[line - 1 : line]
    return any(text_for(one, _UNREAD) == hint_texts.PYTHON_ALONE for one in text)


def json_call(script: str) -> JsonCall | None:
    """Return the call that a script may be in JSON, or the first of several, as models send it elsewhere."""
    text = script.strip()
    if text[:1] + text[-1:] not in {"{}", "[]"} or len(text) > _MAX_SCRIPT:
        return None
    try:
        decoded = json.loads(text)
    except (ValueError, RecursionError):
        return None
    call = decoded[0] if isinstance(decoded, list) and decoded else decoded
    if not isinstance(call, dict):
        return None
    call = call["function"] if isinstance(call.get("function"), dict) else call
    name = next((call[key] for key in _NAME_KEYS if key in call), None)
    arguments = next((call[key] for key in _ARGUMENT_KEYS if key in call), None)
    if not isinstance(name, str) or not isinstance(arguments, dict | str) or not call.keys() <= _CALL_KEYS:
        return None
    return JsonCall(f"{call['server']}.{name}" if "server" in call else name, arguments)


def call_in_json(call: JsonCall, catalog: Catalog) -> Diagnostic | None:
    """Return that a script is no more than a tool call, and how it writes that; None if there is no such tool."""
    try:
        hint = hint_texts.BESIDE_SCRIPTS if call.name in _BESIDE else _written_in_python(call, catalog)
    except RecursionError:  # its arguments nest almost too deep to be read
        return None
    return Diagnostic(1, 1, "call-in-json", hint_texts.CALL_IN_JSON, hint) if hint else None


def _written_in_python(call: JsonCall, catalog: Catalog) -> str:
    bearing = catalog.bearing(call.name)
    tool = catalog.find(call.name) or catalog.meant(call.name) or (catalog.lookup(bearing[0]) if bearing else None)
    if tool is None:
        server = catalog.server_before(call.name)
        return call_texts.server_disabled(server) if server in catalog.disabled else ""
    if isinstance(call.arguments, str) or len(bearing) > 1:
        return hint_texts.import_server(tool.namespace, tool.function)
    return hint_texts.write_call(tool.namespace, tool.function, call.arguments)


def _home(name: str, catalog: Catalog) -> str | None:
    """Return the namespace that has a tool of this name, the first where several have."""
    found = catalog.bearing(name)
    return catalog.lookup(found[0]).namespace if found else None


def _hint(raised: Raised, script: str, catalog: Catalog, *, has_called: bool) -> str:
    if raised.type in _NO_SYNTAX:
        return _sent_wrong(raised, script, catalog)
    if named := _UNDEFINED.match(raised.message):
        return _undefined(named[1], raised, script, catalog)
    if named := _NO_MODULE.match(raised.message):
        return _tool_hint(named[1], script, catalog)
    if hint := _missing_hint(raised, script, catalog):
        return hint
    is_group = raised.type.endswith("ExceptionGroup")
    text = (raised.traceback if is_group else f"{raised.type}: {raised.message}")[:_MAX_READ]
    if hint := text_for(text, _ANYWHERE) or text_for(raised.traceback[-_MAX_READ:], _AT_A_LINE):
        return _how_to_call("tools", raised.traceback, catalog) if hint == hint_texts.HOW_TO_CALL else hint
    return text_for(text, _RESULT_TAKEN_WRONG) if has_called else ""


def _undefined(name: str, raised: Raised, script: str, catalog: Catalog) -> str:
    if name == "__file__":
        return hint_texts.NO_FILE
    if (written := _AS_COMMAND.search(script)) is not None and written[0].split()[0] == name:
        return hint_texts.NO_SHELL
    if hint := _tool_hint(name, script, catalog) or python_hint(name, script) or _near_hint(name, script, catalog):
        return hint
    failed = int([0, *_AT_LINE.findall(raised.traceback)][-1])
    return _without_value(name, failed, script) or nowhere_hint(name, script, _usable(catalog).values())


def _without_value(name: str, failed: int, script: str) -> str:
    """Return why a name has no value to which the script gives one, at another line than the one that `failed`."""
    caught = re.search(rf"(?m)^[ \t]*except\b[^\n]{{0,200}} as {name}:", script)
    if caught is not None:
        return hint_texts.gone_after_except(name, _line_at(caught.end(), script))
    line = _lines_that_give(script).get(name, failed)
    return hint_texts.only_there(name, line) if line != failed else ""


def _lines_that_give(script: str) -> dict[str, int]:
    """Return the names to which the beginning of a script gives values, each with the first line that does."""
    lines: dict[str, int] = {}
    line, place = 1, 0
    for given in _GIVES.finditer(script, 0, _MAX_SCRIPT):
        line, place = line + script.count("\n", place, given.end()), given.end()
        for name in _NAME.findall(given[1] or given[2]):
            lines.setdefault(name, line)
    return lines


def _missing_hint(raised: Raised, script: str, catalog: Catalog) -> str:
    """Return what to write for what a module, a value or `tools` does not have; empty where that is unknown."""
    if named := _MODULE_WITHOUT.match(raised.message):
        return _missing_in_module(named[1], named[2], catalog)
    if named := _NO_SERVER.search(raised.message[:_MAX_READ]):
        return _tool_hint(named[1], script, catalog)
    named = _NO_ATTRIBUTE.search(raised.message[:_MAX_READ]) if raised.type == "AttributeError" else None
    return _another_value(named[1], script, catalog) if named is not None else ""


def _another_value(attribute: str, script: str, catalog: Catalog) -> str:
    """Return that the script gives another value to the name of the server that has this tool, if it does."""
    servers = {*catalog.namespaces.values()}
    for name, line in _lines_that_give(script).items():
        if name in servers and catalog.by_python_name(f"{name}.{attribute}") is not None:
            return hint_texts.no_server_after(name, line)
    return ""


def _line_at(place: int, script: str) -> int:
    return script.count("\n", 0, place) + 1


def _missing_in_module(module: str, name: str, catalog: Catalog) -> str:
    if catalog.by_python_name(f"{module}.{name}") is not None:
        return hint_texts.import_beside(module)
    return hint_texts.CLASS_IN_MODULE if module == "datetime" and hasattr(datetime, name) else ""


def _tool_hint(name: str, script: str, catalog: Catalog) -> str:
    """Return how a script gets at the server or the tool of a name that it has not imported; empty if there is none."""
    if (server := catalog.server_of(name)) is not None:
        return call_texts.server_disabled(server) if server in catalog.disabled else hint_texts.import_it(name)
    if (home := _home(name, catalog)) is not None:
        return hint_texts.import_server(home, name)
    if (meant := catalog.meant(name)) is not None:
        return hint_texts.import_server(meant.namespace, meant.function)
    if name in _BESIDE:
        return hint_texts.BESIDE_SCRIPTS
    return _how_to_call(name, script, catalog) if name in _OF_CLIENTS else ""


def _how_to_call(name: str, script: str, catalog: Catalog) -> str:
    """Return how to call the tool that a script calls through what other programs have for all tools."""
    used = re.search(rf"(?<![\w.]){name}\s*[.(\[]([^{{)]{{0,160}})", script)
    words = re.findall(r"[\w.:/-]+", used[1]) if used is not None else []
    tools = (catalog.find(word) or catalog.meant(word) for word in words)
    tool = next(filter(None, tools), None)
    return hint_texts.HOW_TO_CALL if tool is None else hint_texts.import_server(tool.namespace, tool.function)


def _usable(catalog: Catalog) -> dict[str, str]:
    """Return the servers that scripts can have, each with its name there."""
    return {server: name for server, name in catalog.namespaces.items() if server not in catalog.disabled}


def _near_hint(name: str, script: str, catalog: Catalog) -> str:
    """Return which tool a script means where it first uses a name, if the tool's server is called much like it."""
    used = re.search(rf"\b{name}\.(\w+)", script)
    meant = catalog.of_near_server(name, used[1]) if used is not None else None
    return hint_texts.import_server(meant.namespace, meant.function) if meant is not None else ""


def _sent_wrong(raised: Raised, script: str, catalog: Catalog) -> str:
    """Return what is wrong with the form of a script that does not parse; in linear time, whatever it holds."""
    if _MARKDOWN.search(script):
        return hint_texts.WITHOUT_MARKDOWN
    dotted = _DOTTED_IMPORT.search(raised.traceback)
    if dotted is not None and (tool := catalog.by_python_name(f"{dotted[1]}.{dotted[2]}")) is not None:
        return hint_texts.import_server(tool.namespace, tool.function)
    if found := text_for(raised.traceback, _UNREAD):
        return found
    is_one_line = "\n" not in script.strip()
    if is_one_line and r"\n" in script:
        return hint_texts.REAL_LINE_ENDS
    imported = set(re.findall(r"\bimport ([\w.-]{1,100})", script))
    spelt = [(server, name) for server, name in _usable(catalog).items() if server != name and server in imported]
    return hint_texts.import_as(*spelt[0]) if spelt else ""
