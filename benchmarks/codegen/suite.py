"""JSON-Schema-Test-Suite: valid objects of object-shaped schemas are accepted by the generated types."""

from __future__ import annotations

import json
import sys
import tarfile
from collections import Counter
from typing import Any

from pydantic import ValidationError

from benchmarks.codegen.corpus import CORPORA
from benchmarks.codegen.loaded import adapters
from codegen import ToolAnnotations, ToolSpec
from codegen.stubs.generate import build_stub


def run(every: int) -> None:
    """Print the figures."""
    accepted = refused = 0
    by_keyword: Counter[str] = Counter()
    degraded: Counter[str] = Counter()
    for keyword, group in _groups()[::every]:
        valid = [test["data"] for test in group["tests"] if test["valid"] and isinstance(test["data"], dict)]
        if not valid or not _is_object_shaped(group["schema"]):
            continue
        spec = ToolSpec("suite", "t", None, "", {}, group["schema"], ToolAnnotations())
        stub = build_stub(spec, namespace="n", function="t")
        degraded.update(reason.split(": ", 1)[-1].split("'")[0] for reason in stub.degradations)
        _, result = adapters(stub)
        for instance in valid:
            value = instance["result"] if stub.unwraps_result else instance
            try:
                result.validate_python(value)
                accepted += 1
            except ValidationError:
                refused += 1
                by_keyword[f"{keyword}: {group['description']}"] += 1
    print(f"valid objects accepted {accepted}, refused {refused}; degraded {dict(degraded)}")
    for name, count in by_keyword.most_common(30):
        print("  ", count, name)


def _is_object_shaped(schema: Any) -> bool:
    """Tell whether a schema is plainly of an object, or says nothing about kinds of values."""
    if not isinstance(schema, dict):
        return True
    return "object" in schema.get("type", "object") and {"items", "prefixItems"}.isdisjoint(schema)


def _groups() -> list[tuple[str, dict[str, Any]]]:
    path = CORPORA / "json-schema-test-suite.tar.gz"
    if not path.exists():
        sys.exit(f"the test suite is not at {path.name} beside the repository")
    groups = []
    with tarfile.open(path) as archive:
        for member in sorted(archive.getmembers(), key=lambda one: one.name):
            opened = archive.extractfile(member) if member.name.endswith(".json") else None
            content = json.load(opened) if opened is not None else None
            if isinstance(content, list):
                groups += [(member.name.rsplit("/", 1)[-1], group) for group in content if "tests" in group]
    return groups
