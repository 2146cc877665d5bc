"""Every stub loaded in the guest and called there with drawn arguments; what arrives must equal what was drawn."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import anyio

from benchmarks.codegen.corpus import stubs_by_namespace
from benchmarks.codegen.instances import Instances
from sandbox import Call, Completed, Limits, Returned, Sandbox

if TYPE_CHECKING:
    from codegen import Stub

_CALLS_IN_A_RUN = 400
_INSTANCES = 3
_SCRIPT = """
import importlib, json
from tools import {namespace} as server
for name, arguments in json.loads({calls!r}):
    await getattr(server, name)(**arguments)
"""


def run(every: int) -> None:
    """Print the figures."""
    anyio.run(_run, every)


async def _run(every: int) -> None:
    counts: Counter[str] = Counter()
    limits = Limits(wall_seconds=120.0, calls=_CALLS_IN_A_RUN + 1)
    async with Sandbox() as sandbox:
        for namespace, stubs in stubs_by_namespace(every).items():
            calls = [(stub, instance) for stub in stubs for instance in drawn(stub)]
            for start in range(0, len(calls), _CALLS_IN_A_RUN):
                await _called(sandbox, limits, namespace, calls[start : start + _CALLS_IN_A_RUN], counts)
    print(", ".join(f"{name} {count}" for name, count in sorted(counts.items())))


async def _called(
    sandbox: Sandbox, limits: Limits, namespace: str, calls: list[tuple[Stub, dict[str, Any]]], counts: Counter[str]
) -> None:
    manifest: defaultdict[str, dict[str, Any]] = defaultdict(lambda: {"doc": "", "functions": {}})
    for stub, _ in calls:
        manifest[namespace]["functions"][stub.function] = stub.manifest_entry()
    arrived: list[dict[str, Any]] = []

    async def answer(call: Call) -> Returned:
        arrived.append(call.arguments)
        return Returned(None)

    written = [[stub.function, by_name(stub, instance)] for stub, instance in calls]
    script = _SCRIPT.format(namespace=namespace, calls=json.dumps(written))
    result = await sandbox.run(script, answer=answer, manifest=dict(manifest), limits=limits)
    counts["calls"] += len(calls)
    counts["tools"] += len({stub.function for stub, _ in calls})
    if not isinstance(result.outcome, Completed):
        counts["runs that failed"] += 1
        print("  ", namespace, str(result.outcome)[:300])
    counts["arrived unlike"] += sum(got != sent for got, (_, sent) in zip(arrived, calls, strict=False))
    counts["not arrived"] += len(calls) - len(arrived)


def drawn(stub: Stub) -> list[dict[str, Any]]:
    """Return arguments that a tool takes, or only what it needs where none can be drawn."""
    try:
        drawn = Instances(stub.spec.input_schema, seed=1).draw(_INSTANCES)
    except Exception:  # noqa: BLE001  # a schema may be broken in any way
        drawn = []
    required = {one.key for one in stub.parameters if one.required}
    known = {one.key for one in stub.parameters}
    fitting = [one for one in drawn if isinstance(one, dict) and required <= one.keys() and one.keys() <= known]
    return fitting or [dict.fromkeys(required)]


def by_name(stub: Stub, instance: dict[str, Any]) -> dict[str, Any]:
    """Return arguments by the names of a stub's parameters instead of their JSON keys."""
    names = {one.key: one.name for one in stub.parameters}
    return {names[key]: value for key, value in instance.items()}
