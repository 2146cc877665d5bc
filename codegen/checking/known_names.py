"""What the stubs of a check define, read from their own text: keys, alternatives, parameters, functions.

Above: judge.py, which tells a model what there is instead of what it wrote. Below: stubs.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codegen.checking.type_text import split_outside_brackets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from codegen.stubs.stub import Stub


@dataclass(frozen=True, slots=True)
class Known:
    """What the stubs define: keys by class, parameters by function and namespace, which of those are `optional`.

    `partners` are, for each class, those that may stand in its place, where a tool has unions of objects.
    `unimported` are the namespaces that a script may use without an import.
    `results_altered` says that the script stores other types in results, so that their types say nothing.
    """

    keys: Mapping[str, tuple[str, ...]]
    parameters: Mapping[str, Mapping[str, tuple[str, ...]]]
    choices: Mapping[tuple[str, str], frozenset[str]]
    partners: Mapping[str, frozenset[str]]
    has_unions: bool
    functions: Mapping[str, tuple[str, ...]]
    optional: frozenset[tuple[str, str]]
    unimported: frozenset[str] = frozenset()
    results_altered: bool = False

    @property
    def objects(self) -> frozenset[str]:
        """Return the names of typed dictionaries."""
        return frozenset(self.keys)


def functions_by_namespace(stubs: Iterable[Stub], listed: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Return the names of all functions, described or only listed, in order."""
    functions: dict[str, set[str]] = {name: set(names) for name, names in listed.items()}
    for stub in stubs:
        functions.setdefault(stub.namespace, set()).add(stub.function)
    return {name: tuple(sorted(names)) for name, names in functions.items()}


def known_from(stubs: Iterable[Stub], functions: Mapping[str, tuple[str, ...]]) -> Known:
    """Read what the stubs define from their own text; `functions` are all that there are, also of other servers."""
    keys: dict[str, tuple[str, ...]] = {}
    parameters: dict[str, dict[str, tuple[str, ...]]] = {}
    choices: dict[tuple[str, str], frozenset[str]] = {}
    partners: dict[str, frozenset[str]] = {}
    has_unions = False
    described = list(stubs)
    for stub in described:
        names = tuple(one.name for one in stub.parameters)
        parameters.setdefault(stub.function, {})[stub.namespace] = names
        module = ast.parse(stub.checked_source)
        if _has_unions(module, stub.types):
            has_unions = True
            partners |= dict.fromkeys(stub.types, frozenset(stub.types))
        for node in module.body:
            keys.update(_keys(node))
            if isinstance(node, ast.AsyncFunctionDef):
                choices.update(_choices(node))
    optional = {(stub.function, one.name) for stub in described for one in stub.parameters if not one.required}
    return Known(keys, parameters, choices, partners, has_unions, functions, frozenset(optional))


def _keys(node: ast.stmt) -> dict[str, tuple[str, ...]]:
    match node:
        case ast.ClassDef(name=name, body=body):
            targets = [one.target for one in body if isinstance(one, ast.AnnAssign)]
            return {name: tuple(target.id for target in targets if isinstance(target, ast.Name))}
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(args=[_, ast.Dict(keys=keys)])):
            return {name: tuple(str(key.value) for key in keys if isinstance(key, ast.Constant))}
        case _:
            return {}


def _has_unions(module: ast.Module, types: tuple[str, ...]) -> bool:
    """Tell whether a type is a union of an object and something else: then nothing inside is certain."""
    for node in ast.walk(module):
        if isinstance(node, ast.BinOp) or (isinstance(node, ast.Constant) and "|" in str(node.value)):
            text = str(node.value) if isinstance(node, ast.Constant) else ast.unparse(node)
            members = {member.strip().partition("[")[0] for member in split_outside_brackets(text, "|")} - {"None"}
            if len(members) > 1 and not members.isdisjoint({*types, "dict"}):
                return True
    return False


def _choices(node: ast.AsyncFunctionDef) -> dict[tuple[str, str], frozenset[str]]:
    choices = {}
    for argument in node.args.kwonlyargs:
        match argument.annotation:
            case (
                ast.Subscript(value=ast.Name(id="Literal"), slice=ast.Tuple(elts=elements))
                | ast.BinOp(
                    left=ast.Subscript(value=ast.Name(id="Literal"), slice=ast.Tuple(elts=elements)),
                    right=ast.Constant(value=None),
                )
            ):
                values = [one.value for one in elements if isinstance(one, ast.Constant)]
                if all(isinstance(value, str) for value in values):
                    choices[node.name, argument.arg] = frozenset(map(str, values))
            case _:
                pass
    return choices
