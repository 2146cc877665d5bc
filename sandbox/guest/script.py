"""One script: compiled with top-level `await` and `return`, run as a coroutine."""

import __future__

import ast
import inspect
import sys
import types
import warnings

from . import directly, failures, unused

VALUE = "__script_value__"

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def new_namespace() -> dict:
    """Return the names that a script finds: those of `__main__`, where Python looks for what its classes name."""
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    module.__builtins__ = __builtins__
    return vars(module)


class Script:
    """A compiled script and the namespace it runs in."""

    def __init__(self, source: str, filename: str, namespace: dict):
        self.filename = filename
        self.namespace = namespace
        self._names_before = len(namespace)
        failures.keep_source(filename, source)
        compiled = directly.compiled(source, filename) or [_through_its_tree(source, filename)]
        self._functions = [types.FunctionType(code, self.namespace, "<module>") for code in compiled]

    async def run(self) -> object:
        """Run the script; return its `return` value or that of its last expression."""
        result = None
        for function in self._functions:
            result = function()
            if function.__code__.co_flags & inspect.CO_COROUTINE:
                result = await result
        return self.namespace.pop(VALUE, result)

    def never_used(self) -> list[str]:
        """Return what the script defines and leaves unused, if it is what the script was for."""
        if len(self.namespace) == self._names_before:
            return []
        return unused.notes([function.__code__ for function in self._functions], self.namespace, self.filename)

    def line_of(self, coroutine) -> int | None:
        """Return the script's line at which a suspended coroutine waits, as deep as its own code goes."""
        line = None
        while (frame := getattr(coroutine, "cr_frame", None)) is not None:
            if frame.f_code.co_filename == self.filename:
                line = frame.f_lineno
            coroutine = coroutine.cr_await
        return line


def _through_its_tree(source, filename):
    """Compile any script; going through the tree takes as long again as making it."""
    with warnings.catch_warnings(record=True) as caught:
        tree = ast.parse(source, filename)
        if "run" in source:
            tree = _AwaitAsyncioRun(tree).visit(tree)
        is_function = "return" in source and _has_return(tree)
        code = _as_function(tree, filename) if is_function else _as_module(tree, filename)
    # Parsing and compiling may each warn of the same.
    told = dict.fromkeys((one.lineno, str(one.message), one.category) for one in caught)
    for line, message, category in sorted(told, key=lambda one: one[0]):
        warnings.warn_explicit(message, category, filename, line)
    return code


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
    """Compile for Python's own top-level await; the value of a last expression is kept in the namespace."""
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
    tree, flags = _without_future_imports(_AsInModule().visit(tree))
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
    """Take out `from __future__`, which has to open a module; in a function the compiler gets its flags instead."""
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

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _skip

    def visit_GeneratorExp(self, node):
        """Visit what it runs over, which is evaluated outside of it."""
        node.generators[0].iter = self.visit(node.generators[0].iter)
        return node


class _AsInModule(_OwnScope):
    """What Python takes in another way, or not at all, in a function, as it is in a module."""

    def visit_AnnAssign(self, node):
        """`x: int = 1` becomes `x = 1`, because a global name cannot be annotated inside a function."""
        if not isinstance(node.target, ast.Name):
            return node
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def visit_ImportFrom(self, node):
        """`from x import *` is done by `exec`."""
        if node.names[0].name != "*":
            return node
        return ast.copy_location(ast.Expr(_call("exec", ast.Constant(ast.unparse(node)), _call("globals"))), node)

    def visit_Call(self, node):
        """Let `locals()` and the like mean the module: the names of the scope are its own."""
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Name("locals" | "vars"), [], []):
                return ast.copy_location(_call("globals"), node)
            case ast.Call(ast.Name("dir"), [], []):
                return ast.copy_location(_call("sorted", _call("globals")), node)
            case ast.Call(ast.Name("exec" | "eval" as name), [source], []):
                return ast.copy_location(_call(name, source, _call("globals")), node)
        return node


def _call(name, *arguments):
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


class _AwaitAsyncioRun(_OwnScope):
    """`asyncio.run(main())` becomes `await (main())`: the script already runs inside an event loop."""

    def __init__(self, tree):
        self._modules, self._functions = {"asyncio"}, set()
        for node in ast.walk(tree):
            match node:
                case ast.Import(names):
                    self._modules |= {alias.asname for alias in names if alias.name == "asyncio" and alias.asname}
                case ast.ImportFrom("asyncio", names, 0):
                    self._functions |= {alias.asname or alias.name for alias in names if alias.name == "run"}

    def visit_Call(self, node):
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Attribute(ast.Name(module), "run"), [coroutine, *_]) if module in self._modules:
                return ast.copy_location(ast.Await(coroutine), node)
            case ast.Call(ast.Name(function), [coroutine, *_]) if function in self._functions:
                return ast.copy_location(ast.Await(coroutine), node)
            case ast.Call(ast.Attribute(_, "run_until_complete"), [coroutine], []):
                return ast.copy_location(ast.Await(coroutine), node)
        return node
