"""The sentences that stand in the code, as far as a model may come to read them.

A sentence is a literal of three words or more. Left out are docstrings, patterns, what is logged, and what is raised at
a program that embeds the broker, which are errors of its author.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PACKAGES = ("broker", "codegen", "sandbox/guest")

_LEAST_WORDS = 3
_WORD = re.compile(r"[A-Za-z]{2,}")
_SQL = re.compile(r"\s*(?:CREATE|DELETE|DROP|INSERT|PRAGMA|SELECT|UPDATE) ")
_NO_TEXT = frozenset({"compile", "fullmatch", "search", "RunVar", "cast", "TypeVar"})
_OF_AUTHORS = frozenset({"TypeError", "RuntimeError", "AssertionError"})


def modules() -> list[str]:
    """Return the paths of all modules, as `broker/texts/call_texts.py`."""
    found = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def sentences_of(module: str) -> list[ast.Constant | ast.JoinedStr]:
    """Return the sentences of a module in the order of its lines."""
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    return list(_sentences(tree, in_guest=module.startswith("sandbox")))


def shown(sentence: ast.Constant | ast.JoinedStr) -> str:
    """Return a sentence with `{name}` where a value is put in."""
    return "".join(part if isinstance(part, str) else f"{{{ast.unparse(part.value)}}}" for part in _parts(sentence))


def fixed_characters(sentence: ast.Constant | ast.JoinedStr) -> int:
    """Count the characters of a sentence that are always the same."""
    return sum(len(part) for part in _parts(sentence) if isinstance(part, str))


def pattern_of(sentence: ast.Constant | ast.JoinedStr) -> re.Pattern[str]:
    """Return what matches every text that is made from a sentence."""
    parts = [re.escape(part) if isinstance(part, str) else ".*" for part in _parts(sentence)]
    return re.compile("".join(parts), re.DOTALL)


def _parts(sentence: ast.Constant | ast.JoinedStr) -> list[str | ast.FormattedValue]:
    if isinstance(sentence, ast.Constant):
        return [str(sentence.value)]
    return [part if isinstance(part, ast.FormattedValue) else str(ast.literal_eval(part)) for part in sentence.values]


def _sentences(node: ast.AST, *, in_guest: bool) -> Iterator[ast.Constant | ast.JoinedStr]:
    if _is_no_text(node, in_guest=in_guest):
        return
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        fixed = " ".join(part for part in _parts(node) if isinstance(part, str))
        if len(_WORD.findall(fixed)) >= _LEAST_WORDS and " " in fixed.strip() and not _SQL.match(fixed):
            yield node
    inner = ast.iter_child_nodes(node)
    if isinstance(node, ast.JoinedStr):
        inner = (part for part in node.values if isinstance(part, ast.FormattedValue))
    for child in inner:
        yield from _sentences(child, in_guest=in_guest)


def _is_no_text(node: ast.AST, *, in_guest: bool) -> bool:
    match node:
        case ast.Expr(value=ast.Constant()):
            return True  # a docstring
        case ast.AnnAssign(annotation=ast.Name(id="TypeAlias")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="logger")) | ast.Name(id="_LOGGER"))):
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _NO_TEXT:
            return True
        case ast.Raise(exc=ast.Call(func=ast.Name(id=name))) if name in _OF_AUTHORS:
            return not in_guest
    return False
