"""Which tools a script names, read from its syntax without running it.

Understood: `from tools import git` (with `as`), `from tools.git import git_log`, `import tools`, `import tools.git`
(with `as`), and attributes of those names. Of the names that need no import, those that the script binds nowhere: their
attributes, and themselves where they are called; `call_tool` names what it is given. Such a name counts also where it
is imported as a module, unless there is that module. Names reached in other ways (`getattr`, strings) are found when
the script runs.
"""

import ast
import bisect
import collections
import re
import sys

from . import blocks, packages, tool_errors

_OURS = frozenset({*blocks.FUNCTIONS, *tool_errors.TREE})
_STAR_IMPORT = re.compile(r"\bimport\s*\(?\s*\*")


def find(source: str, filename: str, unimported: list) -> list[dict]:
    """Return `{"namespace", "function" or None, "line"}` for each distinct reference, in order of appearance.

    Raises:
        SyntaxError: The script is not Python.
    """
    tree = ast.parse(source, filename)
    importable = [name for name in unimported if name not in sys.stdlib_module_names and name not in packages.names]
    modules, references = _imports(_nodes(tree, _lines_with(["tools", *importable], source)), importable)
    callable_names = frozenset()
    if unimported:
        bound = {name for node in _nodes(tree, _lines_with(unimported, source)) for name in _bound(node)}
        unbound = [name for name in unimported if name not in bound]
        modules |= {name: ["tools", name] for name in unbound}
        if not _STAR_IMPORT.search(source):  # which may bind any name
            callable_names = frozenset(unbound) - _OURS
    for node in _nodes(tree, _lines_with(modules, source)):
        if isinstance(node, ast.Attribute):
            path = _dotted(node)
            if path[0] in modules:
                path = [*modules[path[0]], *path[1:]]
                if len(path) > 1 and path[0] == "tools":
                    references.append((path[1], path[2] if len(path) > 2 else None, node.lineno))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in callable_names:
            references.append((*_called(node), node.lineno))
    return _distinct(references)


def _lines_with(names, source):
    """Return the lines on which one of these names may stand: a tree in Python takes longer to go through than to make.

    Not by a pattern, which takes longer to compile than a small script.
    """
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    if not source.isascii():
        return range(1, source.count("\n") + 2)  # other characters may stand for those of a name
    lines = set()
    for name in names:
        line, begin = 1, 0
        while (found := source.find(name, begin)) >= 0:
            line += source.count("\n", begin, found)
            lines.add(line)
            line, begin = line + 1, source.find("\n", found) + 1
            if begin == 0:
                break
    return sorted(lines)


def _nodes(tree, lines):
    """Every node but those of statements that stand on none of these lines, and those that only say how a name is used.

    `ast.iter_child_nodes` takes three times as long to find a node's children.
    """
    waiting = collections.deque([tree])
    while waiting:
        node = waiting.popleft()
        yield node
        for field in node._fields:
            if field == "ctx":
                continue
            value = getattr(node, field, None)
            for child in value if type(value) is list else (value,):
                if isinstance(child, ast.AST) and (not isinstance(child, ast.stmt) or _is_on(child, lines)):
                    waiting.append(child)


def _is_on(statement, lines):
    decorators = getattr(statement, "decorator_list", None)
    begin = decorators[0].lineno if decorators else statement.lineno
    place = bisect.bisect_left(lines, begin)
    return place < len(lines) and lines[place] <= statement.end_lineno


def _called(call):
    """Return what a call names that is of a tool in another program's spelling: its function, or its first argument."""
    match call:
        case ast.Call(func=ast.Name("call_tool"), args=[ast.Constant(str(name)), *_]):
            namespace, _, function = name.partition(".")
            return namespace, function or None
    return call.func.id, None


def _imports(nodes, importable):
    modules = {"tools": ["tools"]}
    references = []
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                path = _path(alias.name, importable)
                if path[0] != "tools":
                    continue
                first, *further = alias.name.split(".")
                modules[alias.asname or first] = path if alias.asname else path[: len(path) - len(further)]
                if len(path) > 1:
                    references.append((path[1], None, node.lineno))
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            path = _path(node.module, importable)
            if path[0] != "tools":
                continue
            for alias in node.names:
                whole = [*path, alias.name]
                modules[alias.asname or alias.name] = whole
                if len(whole) > 1 and alias.name != "*":
                    references.append((whole[1], whole[2] if len(whole) > 2 else None, node.lineno))
                elif len(path) > 1:
                    references.append((path[1], "*", node.lineno))
    return modules, references


def _path(module, importable):
    path = module.split(".")
    return ["tools", *path] if path[0] in importable else path


def _bound(node):
    """Return the names that a node gives a value, in whatever scope."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return (name,)
        case ast.alias(name=path, asname=name):
            return (name or path.partition(".")[0],)
        case ast.arg(arg=name) | ast.MatchMapping(rest=name):
            return (name,)
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return names
        case (
            ast.FunctionDef(name=name)
            | ast.AsyncFunctionDef(name=name)
            | ast.ClassDef(name=name)
            | ast.ExceptHandler(name=name)
            | ast.MatchAs(name=name)
            | ast.MatchStar(name=name)
            | ast.TypeVar(name=name)
            | ast.ParamSpec(name=name)
            | ast.TypeVarTuple(name=name)
        ):
            return (name,)
    return ()


def _dotted(node):
    """Return `a.b.c` as a list of names; the first one is empty where the base is no plain name."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [node.id if isinstance(node, ast.Name) else "", *reversed(names)]


def _distinct(references):
    """One entry a name, at the first line; a namespace alone is dropped where one of its functions is named."""
    lines = {}
    for namespace, function, line in references:
        key = (namespace, function)
        lines[key] = min(line, lines.get(key, line))
    with_functions = {namespace for namespace, function in lines if function is not None}
    kept = [
        {"namespace": namespace, "function": function, "line": line}
        for (namespace, function), line in lines.items()
        if function is not None or namespace not in with_functions
    ]
    return sorted(kept, key=lambda reference: reference["line"])
