"""Stubs of one namespace to one module text, for the model and the type checker.

Above: the package's public functions, and checker_input.py. Below: stubs. Text of one tool cannot change what another's
means: class names begin with their function's name, and where two tools still share one, the later tool's
is renamed.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from codegen.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from codegen.stubs.stub import Stub

# What the broker makes of a result that no schema describes, for whoever calls such a tool.
_UNDECLARED = "-> Any: structured content if sent, else the text as str, not parsed (a list if several blocks)."


def render_module(namespace: str, stubs: Iterable[Stub]) -> str:
    """Return one importable stub module with the functions of a namespace, in the order of their names."""
    in_order = list(stubs)
    imports = sorted({name for stub in in_order for name in stub.imports})
    texts = distinct_texts((stub, stub.source) for stub in in_order)
    rule = f"\n\n{_UNDECLARED}\n" if any(stub.spec.output_schema is None for stub in in_order) else ""
    head = f'"""Tools of {one_line(namespace, 64)}.{rule}"""\n'
    if imports:
        head += f"\nfrom typing import {', '.join(imports)}\n"
    return "\n".join([head, *texts])


def distinct_texts(texts: Iterable[tuple[Stub, str]]) -> list[str]:
    """Return the texts in the order of their functions, with classes renamed that an earlier one has too."""
    in_order = sorted(texts, key=lambda pair: pair[0].function)
    taken = {stub.function for stub, _ in in_order}
    distinct = []
    for stub, text in in_order:
        shared = taken.intersection(stub.types)
        distinct.append(_renamed(stub, text, shared, taken) if shared else text)
        taken.update(stub.types)
    return distinct


def _renamed(stub: Stub, text: str, shared: set[str], taken: set[str]) -> str:
    names = {}
    for name in sorted(shared):
        number = 2
        while f"{name}{number}" in taken or f"{name}{number}" in stub.types:
            number += 1
        names[name] = f"{name}{number}"
    taken.update(names.values())
    return _with_names(text, names)


def _with_names(text: str, names: Mapping[str, str]) -> str:
    """Return stub text in which each class or alias has the name given for it.

    Keys, parameters, literals and comments stay. The text is edited at the places that its syntax tree shows, because
    notes are comments, which stand in no tree.
    """
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
            return repr(_with_names(quoted, names))
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
