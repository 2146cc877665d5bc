"""Correct calls of every real tool, and reads of what its results hold, through the check: it may find nothing."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from benchmarks.codegen.corpus import stubs_by_namespace
from benchmarks.codegen.guest import by_name, drawn
from benchmarks.codegen.instances import Instances
from codegen import Diagnostic, check
from codegen.checking.check import LONGEST_SCRIPT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codegen import Stub

_INSTANCES = 2
_DEEPEST = 4


def run(every: int) -> None:
    """Print the figures."""
    warnings.simplefilter("ignore")
    lines = found = 0
    for namespace, stubs in stubs_by_namespace(every).items():
        for script in _scripts(namespace, stubs):
            lines += script.count("\n")
            diagnostics = check(script, stubs)
            found += len(diagnostics)
            _show(namespace, script, diagnostics)
    print(f"{lines} lines of correct calls and reads, {found} findings")


def _scripts(namespace: str, stubs: list[Stub]) -> Iterator[str]:
    head = f"import json\nfrom tools import {namespace} as server\n"
    script = head
    for stub in stubs:
        lines = "".join(f"{line}\n" for line in _lines(stub))
        if len(script) + len(lines) > LONGEST_SCRIPT // 4:
            yield script
            script = head
        script += lines
    yield script


def _lines(stub: Stub) -> Iterator[str]:
    for instance in drawn(stub)[:_INSTANCES]:
        if None not in instance.values():
            arguments = ", ".join(f"{name}={value!r}" for name, value in by_name(stub, instance).items())
            yield f"result = await server.{stub.function}({arguments})"
    if stub.spec.output_schema is None:
        return
    try:
        results = Instances(stub.spec.output_schema, seed=1).draw(_INSTANCES)
    except Exception:  # noqa: BLE001  # a schema may be broken in any way
        return
    yield f"result = await server.{stub.function}(**json.loads('{{}}'))"
    for result in results:
        value = result["result"] if stub.unwraps_result else result
        yield from (f"print(result{path})" for path in _paths(value, _DEEPEST))


def _paths(value: Any, depth: int) -> Iterator[str]:
    """Yield how a script reaches what a value holds."""
    inside = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, inner in inside:
        yield f"[{key!r}]"
        if depth:
            yield from (f"[{key!r}]{path}" for path in _paths(inner, depth - 1))


def _show(namespace: str, script: str, diagnostics: list[Diagnostic]) -> None:
    lines = script.split("\n")
    for one in diagnostics[:3]:
        print("  ", namespace, str(one)[:200], "<-", lines[one.line - 1][:200])
