"""Hints that follow the error of a failed script: what it may have meant, for the mistakes that models make most.

Above: execution.py, preparation.py. Below: hint_texts.py, the catalog. Pure. A script is searched by
patterns alone, and a hint that is wrong costs whoever wrote it a line.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from broker.calls.call_failures import text_for
from broker.texts import call_texts, hint_texts
from broker.tools.spellings import STAND_INS
from codegen.undefined_names import nowhere_hint, python_hint
from sandbox import Raised

if TYPE_CHECKING:
    from broker.tools.catalog import Catalog
    from codegen import Diagnostic
    from sandbox import Outcome

_UNDEFINED = re.compile(r"name '(\w+)' is not defined")
_NO_MODULE = re.compile(r"No module named '(\w+)'")
_NO_TOOL = re.compile(r"there is no tool `(\w+)` in tools\.(\w+)\Z")
_UNKNOWN = re.compile(r"there is no server `(\w+)` in tools|`(\w+)` is not defined")
_MODULE_WITHOUT = re.compile(r"module '(\w+)' has no attribute '(\w+)'")
_NO_SYNTAX = frozenset({"SyntaxError", "IndentationError", "TabError"})
_MARKDOWN = re.compile(r"(?m)^[ \t]*(?:```|~~~)")
_UNREAD = (
    (re.compile(r"(?m)^[ \t]*(?:>>> |In \[\d+\]:)"), hint_texts.WITHOUT_PROMPTS),
    (re.compile(r"(?m)^[ \t]*[%!][A-Za-z]"), hint_texts.NO_NOTEBOOK),
    (re.compile(r"(?m)^[ \t]*(?:</?\w+>|<!\[CDATA\[)"), hint_texts.WITHOUT_MARKUP),
    (re.compile(r"&(?:lt|gt|amp|quot|#39);"), hint_texts.NO_ENTITIES),
    (re.compile(r"(?m)^[ \t]*(?:const|let|var) [\w{\[][^=\n]*=|\bconsole\.log\("), hint_texts.PYTHON_ALONE),
    (re.compile(r"invalid (?:non-printable )?character"), hint_texts.PLAIN_CHARACTERS),
    (re.compile(r"'await' outside|outside of an asynchronous function"), hint_texts.ASYNC_DEF),
)
"""In the error of a script that does not parse, which shows the line at which Python gave up."""

_RESULT_TAKEN_WRONG = (
    (re.compile(r"has the keys? .*: a loop over it gives "), ""),  # which says it all
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
            r"TypeError: string indices must be integers|AttributeError: 'str' object has no attribute "
            r"|TypeError: .*'(?:(?:int|float)' and 'str|str' and '(?:int|float))'"
        ),
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
        re.compile(r"\bgather\((?:.*\n){1,12}TypeError: (?:cannot use '\w+' as a dict key|An asyncio\.Future, )"),
        hint_texts.GATHER_TAKES_CALLS,
    ),
)
"""In the end of a traceback, with the lines of the script."""
_MOST_READ = 1_000
"""Characters of an error: a script may write more of it, and some patterns take the cube of their number."""
_OF_CLIENTS = STAND_INS | {"call", "client", "invoke", "mcp", "mcp_client", "session", "tools"}
_BESIDE = frozenset({"execute_code", "get_tool_details", "search_tools"})


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


def sharpened(diagnostic: Diagnostic, catalog: Catalog) -> Diagnostic:
    """Return a mistake; if a tool was named wrongly, say which server has it, or that it is gone."""
    tool = _NO_TOOL.match(diagnostic.message)
    if tool is not None and catalog.has_withdrawn(f"{tool[2]}.{tool[1]}"):
        return replace(diagnostic, message=f"{diagnostic.message}{call_texts.WITHDRAWN}")
    named = _UNKNOWN.match(diagnostic.message)
    hint = _tool_hint(named[1] or named[2], catalog) if named is not None else ""
    return replace(diagnostic, hint=hint) if hint else diagnostic


def _home(name: str, catalog: Catalog) -> str | None:
    """Return the namespace that has a tool of this name, the first where several have."""
    found = catalog.bearing(name)
    return catalog.lookup(found[0]).namespace if found else None


def _hint(raised: Raised, script: str, catalog: Catalog, *, has_called: bool) -> str:
    if raised.type in _NO_SYNTAX:
        return _sent_wrong(raised, script, catalog)
    if named := _UNDEFINED.match(raised.message):
        return _undefined(named[1], script, catalog)
    if named := _NO_MODULE.match(raised.message):
        return _tool_hint(named[1], catalog)
    if (named := _MODULE_WITHOUT.match(raised.message)) and (hint := _missing_in_module(named[1], named[2], catalog)):
        return hint
    is_group = raised.type.endswith("ExceptionGroup")
    text = (raised.traceback if is_group else f"{raised.type}: {raised.message}")[:_MOST_READ]
    if hint := text_for(text, _ANYWHERE) or text_for(raised.traceback[-_MOST_READ:], _AT_A_LINE):
        return hint
    return text_for(text, _RESULT_TAKEN_WRONG) if has_called else ""


def _undefined(name: str, script: str, catalog: Catalog) -> str:
    if name == "__file__":
        return hint_texts.NO_FILE
    if hint := _tool_hint(name, catalog) or python_hint(name, script) or _near_hint(name, script, catalog):
        return hint
    return nowhere_hint(name, script, catalog.namespaces.values())


def _missing_in_module(module: str, name: str, catalog: Catalog) -> str:
    if catalog.by_python_name(f"{module}.{name}") is not None:
        return hint_texts.import_beside(module)
    return hint_texts.CLASS_IN_MODULE if module == "datetime" and hasattr(datetime, name) else ""


def _tool_hint(name: str, catalog: Catalog) -> str:
    """Return how a script gets at the server or the tool of a name that it has not imported; empty if there is none."""
    if catalog.server_of(name) is not None:
        return hint_texts.import_it(name)
    if (home := _home(name, catalog)) is not None:
        return hint_texts.import_server(home, name)
    if (meant := catalog.meant(name)) is not None:
        return hint_texts.import_server(meant.namespace, meant.function)
    if name in _BESIDE:
        return hint_texts.BESIDE_SCRIPTS
    return hint_texts.HOW_TO_CALL if name in _OF_CLIENTS else ""


def _near_hint(name: str, script: str, catalog: Catalog) -> str:
    """Return which tool a script means where it first uses a name, if the tool's server is called much like it."""
    used = re.search(rf"\b{name}\.(\w+)", script)
    meant = catalog.of_near_server(name, used[1]) if used is not None else None
    return hint_texts.import_server(meant.namespace, meant.function) if meant is not None else ""


def _sent_wrong(raised: Raised, script: str, catalog: Catalog) -> str:
    """Return what is wrong with the form of a script that does not parse; in linear time, whatever it holds."""
    if _MARKDOWN.search(script):
        return hint_texts.WITHOUT_MARKDOWN
    if found := text_for(raised.traceback, _UNREAD):
        return found
    is_one_line = "\n" not in script.strip()
    if is_one_line and r"\n" in script:
        return hint_texts.REAL_LINE_ENDS
    imported = set(re.findall(r"\bimport ([\w.-]{1,100})", script))
    spelt = [(server, name) for server, name in catalog.namespaces.items() if server != name and server in imported]
    return hint_texts.import_as(*spelt[0]) if spelt else ""
