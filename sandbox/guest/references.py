"""Which tools a script names, read from its syntax without running it.

Understood: `from tools import git` (with `as`), `from tools.git import git_log`, `import tools`, `import tools.git`
(with `as`), and attributes of those names, also under another name that is only ever assigned what one of them means
(`g = git`). After `from tools.git import *` each name counts that the script uses and binds nowhere; the host says
which are tools. Of the names that need no import, those that the script binds nowhere: their attributes, and themselves
where they are called; `call_tool` names what it is given. Such a name counts also where it is imported as a module,
unless there is that module. Names reached in other ways (`getattr`, strings, a server as an argument or in an
attribute) are found when the script runs.
"""

import ast
import bisect
import collections
import re
import sys

from . import blocks, packages, tool_errors

_OURS = frozenset({*blocks.FUNCTIONS, *tool_errors.TREE})
_STAR_IMPORT = re.compile(r"\bimport\s*\(?\s*\*")
_MAX_STARS = 10
_MAX_BARE_NAMES = 1_000


def find(source: str, filename: str, unimported: list) -> list[dict]:
    """Return `{"namespace", "function" or None, "line"}` for each distinct reference, in order of appearance.

    At the end come those with `"is_bare"`, of the last import with `*` first: at most 1,000, of 10 imports.

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
    nodes = list(_nodes(tree, _lines_with(modules, source)))
    is_starred = any(function == "*" for _, function, _ in references)
    if not is_starred and not any(_is_alias(node, modules) for node in nodes):
        return _distinct(references + _used(nodes, modules, callable_names))
    names = _Names(tree, source, importable)
    aliases = names.aliases(modules, unimported)
    nodes = _nodes(tree, _lines_with([*modules, *aliases], source))
    return [*_distinct(references + _used(nodes, modules | aliases, callable_names)), *names.bare()]


class _Names:
    """What a script does with its names, in whatever scope."""

    def __init__(self, tree, source, importable):
        self._bindings = collections.Counter()
        self._imports = collections.Counter()
        self._assigned = collections.defaultdict(collections.Counter)
        self._loads = []
        self._stars = []
        for node in _nodes(tree, range(1, source.count("\n") + source.count("\r") + 2)):
            self._bindings.update(_bound(node))
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self._loads.append(node)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                self._take_import(node, importable)
            else:
                for name, path in _assigned(node):
                    self._assigned[name][path] += 1

    def _take_import(self, node, importable):
        imported = _imported(node, importable)
        self._imports.update((name, tuple(meant)) for name, meant, _ in imported)
        if node.names[0].name == "*":
            meant = imported[0][1] if imported else ()
            self._stars.append((node.lineno, meant[1] if len(meant) == 3 else None))

    def aliases(self, modules, unimported):
        """Return what further names mean that are bound in no other way than by assigning them just that."""
        known = {
            name: meant for name, meant in modules.items() if self._bindings[name] == self._imports[name, tuple(meant)]
        }
        assigned_from = collections.defaultdict(list)
        for name, paths in self._assigned.items():
            if len(paths) == 1 and paths.total() == self._bindings[name] and name not in unimported:
                [path] = paths
                assigned_from[path[0]].append((name, path[1:]))
        aliases = {}
        waiting = collections.deque(known)
        while waiting:
            base = waiting.popleft()
            for name, further in assigned_from.pop(base, ()):
                meant = [*known[base], *further]
                if name not in known and len(meant) <= 2:
                    aliases[name] = known[name] = meant
                    waiting.append(name)
        return aliases

    def bare(self):
        """Return the unbound names that are used below an import of a server's names, for each such import.

        What another module's `*` may have bound since is left out.
        """
        stars = sorted(self._stars, key=lambda star: star[0])
        others = max((line for line, namespace in stars if namespace is None), default=0)
        loads = {}
        for node in sorted(self._loads, key=lambda node: node.lineno):
            if node.id not in self._bindings:
                loads.setdefault(node.id, []).append(node.lineno)
        found = []
        for begin, namespace in reversed([star for star in stars if star[0] > others][-_MAX_STARS:]):
            for name, lines in loads.items():
                if len(found) == _MAX_BARE_NAMES:
                    return found
                place = bisect.bisect_left(lines, begin)
                if place < len(lines):
                    found.append({"namespace": namespace, "function": name, "line": lines[place], "is_bare": True})
        return found


def _assigned(node):
    """Return `(name, dotted path)` for each plain name that a node gives the meaning of other names."""
    match node:
        case ast.Assign(targets=targets, value=value):
            pass
        case ast.AnnAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
            targets = [target]
        case _:
            return ()
    path = _dotted(value)
    return [(target.id, tuple(path)) for target in targets if isinstance(target, ast.Name)] if path[0] else ()


def _is_alias(node, modules):
    return any(path[0] in modules and len(modules[path[0]]) + len(path) <= 3 for _, path in _assigned(node))


def _used(nodes, modules, callable_names):
    references = []
    for node in nodes:
        if isinstance(node, ast.Attribute):
            path = _dotted(node)
            if path[0] in modules:
                path = [*modules[path[0]], *path[1:]]
                if len(path) > 1 and path[0] == "tools":
                    references.append((path[1], path[2] if len(path) > 2 else None, node.lineno))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in callable_names:
            references.append((*_called(node), node.lineno))
    return references


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
        for name, meant, named in _imported(node, importable):
            modules[name] = meant
            if len(named) > 1 and named[1] != "*":
                references.append((named[1], named[2] if len(named) > 2 else None, node.lineno))
    return modules, references


def _imported(node, importable):
    """Return `(name, the path that it is bound to, the path that is imported)` for each name of an import of tools."""
    if isinstance(node, ast.Import):
        imported = []
        for alias in node.names:
            path = _path(alias.name, importable)
            first, *further = alias.name.split(".")
            bound = path if alias.asname else path[: len(path) - len(further)]
            imported.append((alias.asname or first, bound, path[:2]))
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        path = _path(node.module, importable)
        imported = [(alias.asname or alias.name, [*path, alias.name], [*path, alias.name]) for alias in node.names]
    else:
        return []
    return [one for one in imported if one[2][0] == "tools"]


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
        node = node.value.value if isinstance(node.value, ast.NamedExpr) else node.value
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
