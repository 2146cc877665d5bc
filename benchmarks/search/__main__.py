"""How well and how fast tools are found: `uv run python -m benchmarks.search [--hybrid] [--json FILE]`.

`--hybrid` adds the columns of a small embedding model and of both together (`uv run --group benchmark …`); it embeds
8,000 tools first, which takes some minutes once: `--vectors FILE` keeps them. Weights were found on the half of the
queries called tuned; the other half is what counts. The corpora are not part of the project: see `corpus.py`.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from rich.console import Console
from rich.table import Table

from benchmarks.search.corpus import CORPORA, many_tools, suites
from benchmarks.search.minilm import MiniLM
from broker.search import Filters, KeywordIndex, Mode, SearchRequest, ToolSearch, VectorStore
from broker.store import Store

if TYPE_CHECKING:
    from benchmarks.search.corpus import Suite, Task
    from codegen import ToolSpec

DEPTH = 10
WANTED = {
    "Azure closed": "R@1 0.85, nDCG 0.93",
    "Azure open": "R@5 0.96",
    "StableToolBench": "R@5 0.75",
    "MetaTool": "R@5 0.75",
}
SIZES = {10_000: "3 s, p95 5 ms", 100_000: "p95 25 ms"}


@dataclass(frozen=True)
class Quality:
    """One suite, one half, one mode; recall is the share of a query's tools that was found, averaged."""

    suite: str
    half: str
    mode: str
    queries: int
    first: float
    recall_5: float
    ndcg_10: float


@dataclass(frozen=True)
class Speed:
    """One size of catalog, keyword search, in time of the processor: other programs do not count."""

    tools: int
    index_seconds: float
    p50_ms: float
    p95_ms: float
    slowest_ms: float


def loaded(tools: list[ToolSpec], search: ToolSearch) -> ToolSearch:
    """Fill a search, server by server."""
    of_server = defaultdict(list)
    for tool in tools:
        of_server[tool.server].append(tool)
    for server, specs in of_server.items():
        search.replace(server, specs)
    return search


async def qualities(suite: Suite, modes: list[Mode], vectors: VectorStore) -> list[Quality]:
    """Run every query of a suite."""
    embedder = MiniLM() if Mode.HYBRID in modes else None
    search = loaded(list(suite.tools.values()), ToolSearch(embedder=embedder, vectors=vectors))
    ids = {spec.digest: name for name, spec in reversed(suite.tools.items())}
    found = []
    for mode in modes:
        measured = defaultdict(list)
        for task in suite.tasks:
            filters = Filters(servers=None if task.server is None else [task.server])
            page = await search.search(SearchRequest(query=task.query, mode=mode, filters=filters, limit=DEPTH))
            half = "tuned" if task.is_tuned else "reported"
            measured[half].append(measures(task, [ids[spec.digest] for spec in page.tools]))
        for half, values in measured.items():
            means = [round(statistics.mean(column), 4) for column in zip(*values, strict=True)]
            found.append(Quality(suite.name, half, mode, len(values), *means))
    return found


def measures(task: Task, ranked: list[str]) -> tuple[float, float, float]:
    """Return whether the first is right, recall among five, and nDCG among ten."""
    gains = [1 / math.log2(place + 2) for place, name in enumerate(ranked) if name in task.relevant]
    ideal = sum(1 / math.log2(place + 2) for place in range(min(DEPTH, len(task.relevant))))
    return (
        float(ranked[:1] != [] and ranked[0] in task.relevant),
        len(task.relevant.intersection(ranked[:5])) / len(task.relevant),
        sum(gains) / ideal,
    )


def speed(count: int, queries: list[str]) -> Speed:
    """Time the index over so many tools."""
    of_server = defaultdict(list)
    for tool in many_tools(count):
        of_server[tool.server].append(tool)
        _ = tool.digest  # the catalog has computed it before
    start = time.process_time()
    index = KeywordIndex()
    for server, specs in of_server.items():
        index.replace(server, specs)
    index_seconds = time.process_time() - start
    index.rank("warm*")
    times = sorted(_milliseconds(index, query) for query in queries)
    centiles = statistics.quantiles(times, n=100)
    return Speed(count, round(index_seconds, 2), round(centiles[49], 2), round(centiles[94], 2), round(times[-1], 2))


def _milliseconds(index: KeywordIndex, query: str) -> float:
    start = time.process_time()
    index.rank(query, count=20)
    return (time.process_time() - start) * 1_000


def main() -> int:
    """Measure and print."""
    options = _options()
    if not CORPORA.is_dir():
        print("The corpora are not here: they belong beside the repository.", file=sys.stderr)
        return 1
    modes = [Mode.KEYWORD, *([Mode.EMBEDDING, Mode.HYBRID] if options.hybrid else [])]
    vectors = VectorStore(Store(options.vectors))
    every = [suite for suite in suites() if not options.suite or suite.name in options.suite]
    console = Console(width=120)
    table = Table(title="Quality")
    for column in ("suite", "half", "mode", "queries", "R@1", "R@5", "nDCG@10", "keyword wanted"):
        table.add_column(column, no_wrap=True)
    found = [quality for suite in every for quality in anyio.run(qualities, suite, modes, vectors)]
    for q in sorted(found, key=lambda quality: quality.half):
        figures = (f"{q.first:.3f}", f"{q.recall_5:.3f}", f"{q.ndcg_10:.3f}")
        wanted = WANTED.get(q.suite, "") if q.mode == Mode.KEYWORD else ""
        table.add_row(q.suite, q.half, q.mode, str(q.queries), *figures, wanted)
    console.print(table)
    queries = [task.query for suite in every for task in suite.tasks[::4]]
    table = Table(title=f"Speed of keyword search, {len(queries)} queries")
    for column in ("tools", "index s", "p50 ms", "p95 ms", "slowest ms", "wanted"):
        table.add_column(column)
    speeds = [speed(count, queries) for count in SIZES if not options.suite]
    for s in speeds:
        table.add_row(*map(str, asdict(s).values()), SIZES[s.tools])
    if speeds:
        console.print(table)
    if options.json:
        document = {"quality": [asdict(q) for q in found], "speed": [asdict(s) for s in speeds]}
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search")
    parser.add_argument("--hybrid", action="store_true", help="measure an embedding model and both together too")
    parser.add_argument("--suite", action="append", help="only this suite, by its name in the table; may be repeated")
    parser.add_argument("--vectors", type=Path, help="an SQLite file to keep vectors in")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
