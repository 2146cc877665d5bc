"""The check of generated text: what it parses to is a stub and nothing else.

Above: stub generation, which throws away what does not pass, and the tests. It knows nothing of how the
text was made. Allowed are `from typing import`, classes over `TypedDict` with annotated fields, functional
`TypedDict`s, type aliases and `async def` with keyword parameters, a docstring and `...`.
"""

from __future__ import annotations

import ast

from codegen.errors import UnexpectedSourceError

_TYPING_NAMES = frozenset({"Any", "Literal", "NotRequired", "Required", "TypeAlias", "TypedDict"})
_SUBSCRIPTED = frozenset({"list", "dict", "Literal", "NotRequired", "Required"})


def check_stub_source(source: str) -> None:
    """Raise `UnexpectedSourceError` unless `source` holds only the statements of a stub."""
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnexpectedSourceError("a generated stub does not parse") from error
    for index, statement in enumerate(module.body):
        if not (index == 0 and _is_text(statement)):
            _statement(statement)


def _statement(node: ast.stmt) -> None:
    match node:
        case ast.ImportFrom(module="typing", level=0, names=names):
            if not all(name.asname is None and name.name in _TYPING_NAMES for name in names):
                raise _unexpected(node)
        case ast.ClassDef(bases=[ast.Name(id="TypedDict")], keywords=keywords, decorator_list=[], body=body):
            _class(keywords, body)
        case ast.AnnAssign(
            target=ast.Name(),
            annotation=ast.Name(id="TypeAlias"),
            value=ast.Constant(value=str(alias)),
            simple=1,
        ):
            _quoted_type(alias, node)
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.Call(
                func=ast.Name(id="TypedDict"),
                args=[ast.Constant(value=str(own_name)), ast.Dict(keys=keys, values=values)],
                keywords=keywords,
            ),
        ) if name == own_name:
            _only_total(keywords)
            if not all(isinstance(key, ast.Constant) and isinstance(key.value, str) for key in keys):
                raise _unexpected(node)
            for value in values:
                _type(value)
        case ast.AsyncFunctionDef():
            _function(node)
        case _:
            raise _unexpected(node)


def _only_total(keywords: list[ast.keyword]) -> None:
    for keyword in keywords:
        match keyword:
            case ast.keyword(arg="total", value=ast.Constant(value=False)):
                pass
            case _:
                raise _unexpected(keyword)


def _class(keywords: list[ast.keyword], body: list[ast.stmt]) -> None:
    _only_total(keywords)
    for statement in body:
        _class_statement(statement)


def _class_statement(node: ast.stmt) -> None:
    match node:
        case ast.AnnAssign(target=ast.Name(), annotation=annotation, value=None, simple=1):
            _type(annotation)
        case ast.Pass():
            pass
        case _ if _is_text(node):
            pass
        case _:
            raise _unexpected(node)


def _function(node: ast.AsyncFunctionDef) -> None:
    arguments = node.args
    if node.decorator_list or arguments.posonlyargs or arguments.args or arguments.vararg or node.returns is None:
        raise _unexpected(node)
    match arguments.kwarg:
        case None:
            pass
        case ast.arg(annotation=ast.expr() as annotation):
            _type(annotation)
        case _:
            raise _unexpected(node)
    names = [one.arg for one in (*arguments.kwonlyargs, arguments.kwarg) if one is not None]
    if len(set(names)) < len(names):
        raise _unexpected(node)
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if argument.annotation is None:
            raise _unexpected(node)
        _type(argument.annotation)
        if default is not None:
            _value(default)
    _type(node.returns)
    match node.body:
        case [ast.Expr(value=ast.Constant(value=last))] if last is ...:
            pass
        case [first, ast.Expr(value=ast.Constant(value=last))] if last is ... and _is_text(first):
            pass
        case _:
            raise _unexpected(node)


def _type(node: ast.expr) -> None:
    match node:
        case ast.Name() | ast.Constant(value=None):
            pass
        case ast.Constant(value=str(text)):
            _quoted_type(text, node)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            _type(left)
            _type(right)
        case ast.Subscript(value=ast.Name(id="Literal"), slice=choices):
            for choice in choices.elts if isinstance(choices, ast.Tuple) else [choices]:
                _value(choice)
        case ast.Subscript(value=ast.Name(id=name), slice=inner) if name in _SUBSCRIPTED:
            for one in inner.elts if isinstance(inner, ast.Tuple) else [inner]:
                _type(one)
        case _:
            raise _unexpected(node)


def _quoted_type(text: str, node: ast.AST) -> None:
    try:
        expression = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _unexpected(node) from error
    if isinstance(expression, ast.Constant) and isinstance(expression.value, str):
        raise _unexpected(node)
    _type(expression)


def _value(node: ast.expr) -> None:
    """Accept literals: constants, negative numbers, lists of them."""
    match node:
        case ast.Constant(value=value) if not isinstance(value, bytes | complex):
            pass
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float())):
            pass
        case ast.List(elts=elements):
            for element in elements:
                _value(element)
        case _:
            raise _unexpected(node)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _unexpected(node: ast.AST) -> UnexpectedSourceError:
    line = getattr(node, "lineno", 0)
    return UnexpectedSourceError(f"a generated stub holds an unexpected {type(node).__name__} on line {line}")
