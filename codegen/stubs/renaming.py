"""Classes of a stub under other names, in its text: keys, parameters, literals and comments stay.

Above: stub_module.py. The text is edited at the places that its syntax tree shows, because notes are comments, which
stand in no tree.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def with_names(text: str, names: Mapping[str, str]) -> str:
    """Return stub text in which each class or alias has the name given for it."""
    tree = ast.parse(text)
    lines = text.encode().split(b"\n")
    edits: list[tuple[int, int, int, str]] = []
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef) and statement.name in names:
            start = len("class ")
            edits.append((statement.lineno, start, start + len(statement.name.encode()), names[statement.name]))
        for node in _types(statement):
            new = _new_text(node, names)
            if new is not None:
                edits.append((node.lineno, node.col_offset, node.end_col_offset or 0, new))
    for line, start, end, new in sorted(edits, reverse=True):
        lines[line - 1] = lines[line - 1][:start] + new.encode() + lines[line - 1][end:]
    return b"\n".join(lines).decode()


def _new_text(node: ast.expr, names: Mapping[str, str]) -> str | None:
    """Return what stands in place of a name or of a quoted type."""
    match node:
        case ast.Name(id=name):
            return names.get(name)
        case ast.Constant(value=str(quoted)):
            return repr(with_names(quoted, names))
        case _:
            return None


def _types(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yield the names and quoted types in the types that a statement writes or defines."""
    roots: list[ast.expr | None] = []
    match statement:
        case ast.ClassDef(body=body):
            roots = [field.annotation for field in body if isinstance(field, ast.AnnAssign)]
        case ast.Assign(targets=[target], value=ast.Call(args=[own_name, ast.Dict(values=types)])):
            roots = [target, own_name, *types]
        case ast.AnnAssign(target=target, value=type_):
            roots = [target, type_]
        case ast.AsyncFunctionDef(args=arguments, returns=returns):
            extra = arguments.kwarg.annotation if arguments.kwarg is not None else None
            roots = [*(one.annotation for one in arguments.kwonlyargs), extra, returns]
        case ast.Expr(value=type_):
            roots = [type_]
    for root in roots:
        yield from _inside(root)


def _inside(node: ast.expr | None) -> Iterator[ast.expr]:
    match node:
        case ast.Name() | ast.Constant(value=str()):
            yield node
        case ast.Subscript(value=ast.Name(id="Literal")):
            pass
        case ast.Subscript(slice=inner):
            for one in inner.elts if isinstance(inner, ast.Tuple) else [inner]:
                yield from _inside(one)
        case ast.BinOp(left=left, right=right):
            yield from _inside(left)
            yield from _inside(right)
