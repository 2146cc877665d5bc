"""Tool definitions for the tests: as `tools/list` gives them, and the attacks in files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codegen import ToolAnnotations, ToolSpec

HOSTILE = Path(__file__).parent / "hostile"
CORPUS = Path(__file__).parents[3] / "shared" / "corpora" / "tools.jsonl.gz"


def tool_spec(definition: dict[str, Any], *, server: str = "server") -> ToolSpec:
    """Return the specification of a tool as `tools/list` gives it."""
    hints = definition.get("annotations") or {}
    description = definition.get("description")
    return ToolSpec(
        server=server,
        name=definition["name"],
        title=definition.get("title"),
        description=description if isinstance(description, str) else "",
        input_schema=definition.get("inputSchema"),
        output_schema=definition.get("outputSchema"),
        annotations=ToolAnnotations(
            read_only=hints.get("readOnlyHint"),
            destructive=hints.get("destructiveHint"),
            idempotent=hints.get("idempotentHint"),
            open_world=hints.get("openWorldHint"),
        ),
    )


def hostile_definitions() -> list[Any]:
    """Return every tool of the attack files as a pytest parameter; what cannot be read as JSON is left out."""
    cases = []
    for path in sorted(HOSTILE.glob("*.json")):
        try:
            attack = json.loads(path.read_text(encoding="utf-8"))
        except RecursionError:
            continue
        for index, tool in enumerate(attack.get("tools") or [attack.get("tool") or {"name": "tool"}]):
            cases.append(pytest.param({"name": "tool", **tool}, id=f"{path.stem}-{index}"))
    return cases
