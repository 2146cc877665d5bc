"""Compiles a script as it is, where nothing in its syntax tree has to change: a tree in Python costs ten times as much.

What the tree would be needed for is a `return` at the top level, `asyncio.run(...)`, and the value of a last
expression. The first two are left to `script`. The last statement is compiled by itself: where the lines before it are
a whole module and its own lines a whole one or an expression, the script is the one after the other. So are whole
modules of a long script: compiled one by one they take less memory, and the time that grows with the square of a
script's length is gone.
"""

import ast
import re
import warnings

MAX_ATTEMPTS = 20
"""Lines at the end of a script that are looked at for the beginning of its last statement."""

PART = 8_192
"""Characters of a long script that are compiled at a time, at least."""

MAX_PARTS = 16
"""Each costs as many empty lines as stand before it, a hundredth of what a line of code does."""

_RUN = re.compile(r"\.\s*run|\bimport\b.*\brun\b")
_NEED_TREE = ("__future__", "\r", "\f", "\0")
_NEVER_FIRST = " \t\n#)]}"
_NO_EXPRESSION = re.compile(r"(?:async|class|def|for|if|try|while|with)\b|@|[^\W\d]\w*+\s*+(?:[-+*/|&]|//)?+=(?!=)")
"""How a statement begins that has no value, on a line of which one begins."""
_GOES_ON = re.compile(r"(?:elif|else|except|finally)\b")
_LONG_TEXTS = ("'''", '"""', "\\\n")
"""What a text has that goes on over several lines."""
_NEED_WHOLE = ("global", "annotat")
"""What Python looks at all of a module for: names declared global too late, and its annotations."""
_NEW_STATEMENT = re.compile(r"(?<=\n)(?!(?:elif|else|except|finally)\b)(?:@|[^\W\d]\w*+(?![\"']))")
"""Where a statement may begin that neither goes on with one before nor, as the first of a module, documents it."""
_ALL_ARE_ERRORS = [("error", None, Warning, None, 0)]
"""Filters of warnings: what is warned of is warned of once, by whoever takes the tree. `catch_warnings` takes half
as long as compiling a small script."""


def compiled(source: str, filename: str) -> list | None:
    """Return code objects to run in turn, the last one giving the script's value; None for what needs its tree."""
    if _needs_tree(source):
        return None
    filters, warnings.filters = warnings.filters, _ALL_ARE_ERRORS
    try:
        return _pieces(source, filename)
    except (SyntaxError, ValueError, Warning):
        return None
    finally:
        warnings.filters = filters


def _needs_tree(source):
    """Tell whether the tree is needed. Few scripts get to the pattern, which takes a tenth of what compiling does."""
    return any(map(source.__contains__, _NEED_TREE)) or ("run" in source and _RUN.search(source) is not None)


def _pieces(source, filename):
    begin, last = _last_statement(source, filename)
    if last is None:
        return _modules(source, len(source), filename)
    return [*_modules(source, begin, filename), last] if begin else [last]


def _modules(source, whole, filename):
    """Compile modules that are the source up to `whole`, one after the other."""
    size = whole if any(map(source.__contains__, _NEED_WHOLE)) else max(PART, whole // MAX_PARTS)
    modules, begin, part = [], 0, size
    while begin < whole:
        new_statement = _NEW_STATEMENT.search(source, begin + part, whole)
        end = whole if new_statement is None else new_statement.start()
        try:
            modules.append(_compile(_placed(source, begin, end), filename, "exec"))
        except SyntaxError:
            if end == whole:
                raise
            part *= 2  # that was inside of a text or of brackets
        else:
            begin, part = end, size
    return modules


def _last_statement(source, filename):
    """Return where the last statement begins and its code; None where it has no value and is not compiled by itself."""
    begin = len(source)
    for _ in range(MAX_ATTEMPTS):
        begin = _line_before(source, begin)
        if begin is None:
            return 0, None
        try:
            mode = "exec" if _has_no_value(source, begin) else "eval"
            return begin, _compile(_placed(source, begin, len(source)), filename, mode)
        except SyntaxError:
            last = _parsed(source[begin:])
        if last is not None:
            _check_has_no_value(last, source[:begin], filename)
            return 0, None
    raise SyntaxError("the last statement is too long")


def _has_no_value(source, begin):
    """Tell whether a statement that begins there has no value, if one does, and needs nothing of those before it."""
    if _NO_EXPRESSION.match(source, begin) is None or source.find(";", begin) >= 0 or _is_decorated(source, begin):
        return False
    return not any(map(source.__contains__, _NEED_WHOLE))


def _check_has_no_value(last, before, filename):
    if type(last) is ast.Expr:
        raise SyntaxError("an expression that does not begin its line")
    if any(map(before.__contains__, _LONG_TEXTS)):
        _compile(before, filename, "exec")  # unless the line is one of a text


def _line_before(source, end):
    """Return where the last line before `end` begins that may be the first one of a statement."""
    while end > 0:
        end = source.rfind("\n", 0, end - 1) + 1
        first = source[end]
        if first not in _NEVER_FIRST and (first not in "ef" or _GOES_ON.match(source, end) is None):
            return end
    return None


def _is_decorated(source, begin):
    return begin > 0 and source[source.rfind("\n", 0, begin - 1) + 1] == "@"


def _parsed(source):
    """Return the last statement of what may be the end of a script; None if it is none."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return None
    return body[-1] if body else None


def _placed(source, begin, end):
    """Return a part of the source, on its own lines."""
    return "\n" * source.count("\n", 0, begin) + source[begin:end]


def _compile(source, filename, mode):
    return compile(source, filename, mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
