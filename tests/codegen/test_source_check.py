"""The check of generated text, statement by statement: what it lets pass and what it refuses."""

from __future__ import annotations

import pytest

from codegen.errors import UnexpectedSourceError
from codegen.stubs.source_check import check_stub_source

ALLOWED = {
    "docstring": '"""What the module is."""',
    "import": "from typing import Any, Literal, NotRequired, Required, TypeAlias, TypedDict",
    "class": "class Point(TypedDict, total=False):\n    '''A point.'''\n    x: int\n    y: NotRequired[list[float]]",
    "empty class": "class Nothing(TypedDict):\n    pass",
    "functional": "Odd = TypedDict('Odd', {'a-b': int, 'in': \"list['Odd']\"}, total=False)",
    "alias": 'Tree: TypeAlias = "dict[str, Tree] | None"',
    "function": "async def f(*, a: int = -1, b: list[str] = ['x'], **more: Any) -> None:\n    '''Do it.'''\n    ...",
    "literal": "async def f(*, a: Literal['x', 1, -2, None, True] = 'x') -> dict[str, Any]: ...",
}

REFUSED = {
    "no Python": "async def f(",
    "import of another module": "from os import Any",
    "relative import": "from .typing import Any",
    "import under another name": "from typing import Any as str",
    "import of another name": "from typing import cast",
    "import of all names": "from typing import *",
    "plain import": "import typing",
    "second text": "'''One.'''\n'''Two.'''",
    "expression first": "print()",
    "formatted text": "f'{x}'",
    "branch": "if True:\n    pass",
    "value": "x = 1",
    "class over another base": "class A(Exception):\n    x: int",
    "class over two bases": "class A(TypedDict, Exception):\n    x: int",
    "class with a metaclass": "class A(TypedDict, metaclass=type):\n    x: int",
    "class that is total": "class A(TypedDict, total=True):\n    x: int",
    "decorated class": "@print\nclass A(TypedDict):\n    x: int",
    "field with a value": "class A(TypedDict):\n    x: int = 1",
    "field of something else": "class A(TypedDict):\n    a.x: int",
    "field in parentheses": "class A(TypedDict):\n    (x): int",
    "call in a class": "class A(TypedDict):\n    print()",
    "method": "class A(TypedDict):\n    def f(self): ...",
    "functional under another name": "A = TypedDict('B', {'x': int})",
    "functional by another call": "A = print('A', {'x': int})",
    "functional with a key that is no text": "A = TypedDict('A', {1: int})",
    "functional with a key that is computed": "A = TypedDict('A', {print(): int})",
    "functional that unpacks": "A = TypedDict('A', {**print()})",
    "functional with a call for a type": "A = TypedDict('A', {'x': print()})",
    "functional with another keyword": "A = TypedDict('A', {'x': int}, closed=print())",
    "functional for two names": "A = B = TypedDict('A', {'x': int})",
    "alias without quotes": "A: TypeAlias = int",
    "alias in parentheses": "(A): TypeAlias = 'int'",
    "alias of another kind": "A: Any = 'int'",
    "alias of a call": "A: TypeAlias = 'print()'",
    "alias of a quoted text": "A: TypeAlias = \"'int'\"",
    "alias that does not parse": "A: TypeAlias = 'list['",
    "plain function": "def f() -> None: ...",
    "decorated function": "@print\nasync def f() -> None: ...",
    "function without a result": "async def f(): ...",
    "positional parameter": "async def f(a: int) -> None: ...",
    "positional-only parameter": "async def f(a: int, /) -> None: ...",
    "parameters in a row": "async def f(*a: int) -> None: ...",
    "parameter without a type": "async def f(*, a) -> None: ...",
    "further parameters without a type": "async def f(**more) -> None: ...",
    "further parameters of a call": "async def f(**more: print()) -> None: ...",
    "parameter twice": "async def f(*, a: int, a: int) -> None: ...",
    "further parameters named like one": "async def f(*, a: int, **a: Any) -> None: ...",
    "parameter of a call": "async def f(*, a: print()) -> None: ...",
    "call for a default": "async def f(*, a: int = print()) -> None: ...",
    "call in a default": "async def f(*, a: list[int] = [print()]) -> None: ...",
    "function for a default": "async def f(*, a: int = lambda: 1) -> None: ...",
    "bytes for a default": "async def f(*, a: int = b'') -> None: ...",
    "complex default": "async def f(*, a: int = 1j) -> None: ...",
    "negated name for a default": "async def f(*, a: int = -x) -> None: ...",
    "inverted default": "async def f(*, a: int = ~1) -> None: ...",
    "result of a call": "async def f() -> print(): ...",
    "quoted result of a call": "async def f() -> 'print()': ...",
    "body that does something": "async def f() -> None:\n    print()",
    "body after the docstring": "async def f() -> None:\n    '''Do it.'''\n    print()\n    ...",
    "body twice": "async def f() -> None:\n    ...\n    ...",
    "docstring alone": "async def f() -> None:\n    '''Do it.'''",
    "number for a docstring": "async def f() -> None:\n    1\n    ...",
    "sum of types": "async def f() -> int + str: ...",
    "part that is no type": "async def f() -> int | print(): ...",
    "first part that is no type": "async def f() -> print() | int: ...",
    "other generic": "async def f() -> set[int]: ...",
    "call in a generic": "async def f() -> dict[str, print()]: ...",
    "annotated": "async def f() -> Annotated[int, print()]: ...",
    "call in a literal": "async def f() -> Literal['a', print()]: ...",
    "attribute for a type": "async def f() -> os.system: ...",
    "number for a type": "async def f() -> 1: ...",
}


@pytest.mark.parametrize("source", ALLOWED.values(), ids=ALLOWED)
def test_every_statement_of_a_stub_passes(source: str) -> None:
    check_stub_source(source)


@pytest.mark.parametrize("source", REFUSED.values(), ids=REFUSED)
def test_what_is_no_statement_of_a_stub_is_refused(source: str) -> None:
    with pytest.raises(UnexpectedSourceError):
        check_stub_source(source)


def test_the_line_of_what_is_refused_is_named() -> None:
    with pytest.raises(UnexpectedSourceError, match="an unexpected Import on line 3"):
        check_stub_source("'''Text.'''\nfrom typing import Any\nimport os\n")
