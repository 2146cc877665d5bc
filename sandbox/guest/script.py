"""One script: compiled with top-level `await` and `return`, run as a coroutine, its failure told in its own lines."""

import __future__

import ast
import inspect
import linecache
import traceback
import types

VALUE = "__script_value__"
MAX_TRACEBACK = 8_000
"""Characters of a traceback; the middle of a longer one is left out."""

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class Script:
    """A compiled script and the namespace it runs in."""

    def __init__(self, source: str, filename: str):
        self.filename = filename
        self.namespace = {"__name__": "__main__", "__builtins__": __builtins__, "__doc__": None}
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        tree = _AwaitAsyncioRun().visit(ast.parse(source, filename))
        compiled = _as_function(tree, filename) if _has_return(tree) else _as_module(tree, filename)
        self._function = types.FunctionType(compiled, self.namespace, "<module>")

    async def run(self) -> object:
        """Runs the script; returns its `return` value or that of its last expression."""
        result = self._function()
        if self._function.__code__.co_flags & inspect.CO_COROUTINE:
            result = await result
        return self.namespace.pop(VALUE, result)


def describe(error: BaseException, filename: str) -> dict:
    """Turns an exception into type, message and a traceback of the script's own lines."""
    told = traceback.TracebackException.from_exception(error, compact=True)
    _keep_own_frames(told, filename)
    text = "".join(told.format())
    if len(text) > MAX_TRACEBACK:
        half = MAX_TRACEBACK // 2
        text = f"{text[:half]}\n[{len(text) - MAX_TRACEBACK} characters left out]\n{text[-half:]}"
    return {"type": _qualified(type(error)), "message": _message(told), "traceback": text}


def _keep_own_frames(told, filename):
    seen = set()
    waiting = [told]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        one.stack[:] = [frame for frame in one.stack if frame.filename == filename]
        waiting += [one.__cause__, one.__context__, *(one.exceptions or ())]


def _qualified(cls):
    module = cls.__module__
    return cls.__qualname__ if module in ("builtins", "__main__", "tools") else f"{module}.{cls.__qualname__}"


def _message(told):
    """The exception's own line without its type, so that Python's suggestions ("Did you mean") stay in it."""
    notes = told.__notes__ if isinstance(told.__notes__, list) else ()
    lines = list(told.format_exception_only())[: -len(notes) or None]
    _, separator, message = lines[-1].rstrip("\n").partition(": ")
    return "\n".join([message if separator else "", *map(str, notes)]).strip("\n")


def _has_return(tree):
    return any(isinstance(node, ast.Return) for node in _top_level(tree))


def _top_level(tree):
    """Every node that runs in the script's own scope."""
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _SCOPES):
            waiting.extend(ast.iter_child_nodes(node))


def _as_module(tree, filename):
    """Python's own top-level await; the value of a last expression is kept in the namespace."""
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = tree.body[-1]
        target = ast.copy_location(ast.Name(VALUE, ast.Store()), last)
        tree.body[-1] = ast.copy_location(ast.Assign([target], last.value), last)
    return compile(tree, filename, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def _as_function(tree, filename):
    """Python has no top-level `return`: the script becomes the body of a coroutine function.

    Every name it binds is declared global, so that functions, `globals()` and `global` see what they would see
    in a module.
    """
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        tree.body[-1] = ast.copy_location(ast.Return(tree.body[-1].value), tree.body[-1])
    tree, flags = _without_future_imports(_PlainAssignments().visit(tree))
    body = ast.AsyncFunctionDef(
        "<module>", ast.arguments([], [], None, [], [], None, []), tree.body, [], lineno=1, col_offset=0
    )
    wrapped = ast.fix_missing_locations(ast.Module([body], type_ignores=[]))
    first = _function_code(wrapped, filename, flags)
    if bound := [*first.co_varnames, *first.co_cellvars]:
        body.body.insert(0, ast.Global(bound, lineno=1, col_offset=0, end_lineno=1, end_col_offset=0))
    return _function_code(wrapped, filename, flags)


def _function_code(wrapped, filename, flags):
    module = compile(wrapped, filename, "exec", flags=flags, dont_inherit=True)
    return next(constant for constant in module.co_consts if isinstance(constant, types.CodeType))


def _without_future_imports(tree):
    """`from __future__` has to open a module; in a function its flags are passed to the compiler instead."""
    flags = 0
    kept = []
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            features = [getattr(__future__, alias.name, None) for alias in statement.names]
            flags |= sum(feature.compiler_flag for feature in features if feature is not None)
        else:
            kept.append(statement)
    tree.body = kept or [ast.Pass()]
    return tree, flags


class _OwnScope(ast.NodeTransformer):
    """Visits what runs in the script's own scope, and no function, class or generator in it."""

    def _skip(self, node):
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = visit_GeneratorExp = _skip


class _PlainAssignments(_OwnScope):
    """`x: int = 1` becomes `x = 1`, because a global name can't be annotated inside a function."""

    def visit_AnnAssign(self, node):
        if not isinstance(node.target, ast.Name):
            return node
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)


class _AwaitAsyncioRun(_OwnScope):
    """`asyncio.run(main())` becomes `await (main())`: the script already runs inside an event loop."""

    def visit_Call(self, node):
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Attribute(ast.Name("asyncio"), "run"), [coroutine, *_]):
                return ast.copy_location(ast.Await(coroutine), node)
            case ast.Call(ast.Attribute(_, "run_until_complete"), [coroutine], []):
                return ast.copy_location(ast.Await(coroutine), node)
        return node
