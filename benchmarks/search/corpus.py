"""Tools and queries of the corpora beside the repository, as catalogs to search in."""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codegen import ToolAnnotations, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

OWN_QUERIES = {
    True: Path(__file__).with_name("own_queries.txt"),
    False: Path(__file__).with_name("own_queries_kept.txt"),
}
"""Queries for tuning, and those kept aside: on each line a tool's id, and what we wrote from its description."""

CORPORA = Path(__file__).parents[3] / "shared" / "corpora"


@dataclass(frozen=True)
class Task:
    """One query with the tools that answer it."""

    query: str
    relevant: frozenset[str]
    is_tuned: bool
    server: str | None = None
    """Where alone the search may look."""


@dataclass(frozen=True)
class Suite:
    """Queries over one catalog, whose tools have the ids that tasks name."""

    name: str
    tools: dict[str, ToolSpec]
    tasks: list[Task]


def suites() -> list[Suite]:
    """Read every suite that a figure is stated for."""
    tools, other, queries = (_lines(f"{name}.jsonl.gz") for name in ("tools", "tools_other", "queries"))
    alias = {name: tool["id"] for tool in tools for name in tool.get("aliases", ())}
    azure = "npm:@azure/mcp#all::"
    closed = [t for t in tools if any(name.startswith(azure) for name in (t["id"], *t.get("aliases", ())))]
    catalogs = {
        "Azure closed": ("azure-mcp-prompts", closed),
        "Azure open": ("azure-mcp-prompts", tools),
        "StableToolBench": ("stabletoolbench", [t for t in other if t["catalog"] == "rapidapi"]),
        "MetaTool": ("metatool", [t for t in other if t["catalog"] == "metatool"]),
        "BFCL": ("bfcl", [t for t in other if t["catalog"] == "bfcl"]),
    }
    own = {tool["id"]: spec(tool) for tool in tools}
    return [
        *(
            Suite(name, {t["id"]: spec(t) for t in catalog}, [_task(q, alias) for q in queries if q["source"] == s])
            for name, (s, catalog) in catalogs.items()
        ),
        Suite("Own, in a server", own, list(_own_tasks(own))),
        Suite("Own, open", own, [replace(task, server=None) for task in _own_tasks(own)]),
    ]


def many_tools(count: int) -> list[ToolSpec]:
    """Return so many tools: the corpora, then the corpora again under other servers' names."""
    base = [*_lines("tools.jsonl.gz"), *_lines("distractors.jsonl.gz"), *_lines("tools_other.jsonl.gz")]
    return [spec(base[number % len(base)], copy=number // len(base)) for number in range(count)]


def spec(tool: dict[str, Any], *, copy: int = 0) -> ToolSpec:
    """Read a line of a corpus as the listing of a server is read."""
    hints = tool.get("annotations") or {}
    title = tool.get("title") or hints.get("title")
    listed: dict[str, Any] = {"properties": {parameter["name"]: {} for parameter in tool.get("parameters", ())}}
    server = tool.get("server") or tool["id"].partition("::")[0]
    return ToolSpec(
        server if not copy else f"{server} {copy}",
        tool["name"],
        title if isinstance(title, str) else None,
        tool.get("description") or "",
        tool.get("inputSchema") or listed,
        None,
        ToolAnnotations(),
    )


def _task(query: dict[str, Any], alias: dict[str, str]) -> Task:
    # Split by tool, so that two wordings of one wish are never in both halves.
    is_tuned = hashlib.sha256(query["relevant"][0].encode()).digest()[0] % 2 == 0
    return Task(query["query"], frozenset(alias.get(tool, tool) for tool in query["relevant"]), is_tuned)


def _own_tasks(tools: dict[str, ToolSpec]) -> Iterator[Task]:
    for is_tuned, path in OWN_QUERIES.items():
        for line in path.read_text(encoding="utf-8").splitlines():
            tool, *queries = line.split("|")
            for query in queries:
                yield Task(query, frozenset({tool}), is_tuned, server=tools[tool].server)


def _lines(name: str) -> list[dict[str, Any]]:
    with gzip.open(CORPORA / name, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]
