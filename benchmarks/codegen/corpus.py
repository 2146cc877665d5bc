"""The real tools to measure on, and stubs for them."""

from __future__ import annotations

import gzip
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from codegen import Stub, ToolAnnotations, ToolSpec, assign_identifiers
from codegen.stubs.generate import build_stub

CORPORA = Path(__file__).parents[3] / "shared" / "corpora"


def definitions(every: int = 1) -> list[dict[str, Any]]:
    """Return one tool definition in `every`."""
    path = CORPORA / "tools.jsonl.gz"
    if not path.exists():
        sys.exit(f"the corpus of real tools is not at {path.name} beside the repository")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines][::every]


def spec_of(definition: dict[str, Any]) -> ToolSpec:
    """Return the specification of a tool as it was received."""
    hints = definition.get("annotations") or {}
    return ToolSpec(
        server=definition["server"],
        name=definition["name"],
        title=definition.get("title"),
        description=definition.get("description") or "",
        input_schema=definition.get("inputSchema"),
        output_schema=definition.get("outputSchema"),
        annotations=ToolAnnotations(
            hints.get("readOnlyHint"),
            hints.get("destructiveHint"),
            hints.get("idempotentHint"),
            hints.get("openWorldHint"),
        ),
    )


def stubs_by_namespace(every: int = 1) -> dict[str, list[Stub]]:
    """Return the stubs of all tools, named as a broker with all these servers would name them."""
    by_server: defaultdict[str, dict[str, ToolSpec]] = defaultdict(dict)
    for definition in definitions(every):
        by_server[definition["server"]][definition["name"]] = spec_of(definition)
    namespaces = assign_identifiers(by_server)
    stubs: dict[str, list[Stub]] = {}
    for server, specs in by_server.items():
        functions = assign_identifiers(specs)
        stubs[namespaces[server]] = [
            build_stub(spec, namespace=namespaces[server], function=functions[name]) for name, spec in specs.items()
        ]
    return stubs


def percentile(values: list[float], share: float) -> float:
    """Return the value below which `share` of the values lie."""
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]
