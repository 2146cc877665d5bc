"""Stubs of one namespace to one module text, for the model and the type checker.

Above: the package's public functions. Below: the oracle. Text of one tool cannot change what another's
means: class names begin with their function's name, and where two tools still share one, the later tool's
is renamed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codegen.plain_text import one_line
from codegen.stubs.renaming import with_names

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    return with_names(text, names)
