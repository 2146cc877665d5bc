"""Latency and tokens of the four tiers: `uv run --group benchmark python -m benchmarks.disclosure [--tools N]`.

Over real tools of the corpora, which are not part of the project (see `benchmarks.search.corpus`). Each page is made
anew, as for a request; the first request after a change of the catalog, which ranks all tools, is timed by itself.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections import defaultdict
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from benchmarks.search.corpus import CORPORA, many_tools
from broker.disclosure.tool_descriptions import minimal
from broker.tiers import CallStatistics, Tiers, TierScores, token_counter
from broker.tiers.items import full_item
from broker.tiers.pages import BUDGETS, Tier, compact
from broker.tools.catalog import Catalog
from broker.tools.categories import Categories

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.tiers import TierPage

REQUESTS = 200
FULL_TOOLS = 10
WANTED_MS = {Tier.HOT: 20, Tier.CATEGORIES: 30, Tier.SUMMARIES: 50, Tier.FULL: 100}


def filled(count: int) -> tuple[Catalog, Tiers]:
    """Return a catalog of so many tools, of which a tenth was called."""
    of_server = defaultdict(list)
    for spec in many_tools(count):
        of_server[spec.server].append(spec)
    catalog = Catalog(of_server)
    for server, specs in of_server.items():
        catalog.replace(server, specs)
    statistics_of_calls = CallStatistics()
    chance = random.Random(1)  # noqa: S311  # the same calls each time
    for entry in catalog.tools[::10]:
        for _ in range(chance.randrange(1, 150)):
            seconds = chance.random()
            statistics_of_calls.note(entry.spec.server, entry.spec.name, is_success=seconds < 0.9, seconds=seconds)  # noqa: PLR2004
    scores = TierScores(catalog, statistics_of_calls)
    return catalog, Tiers(catalog, Categories(catalog), statistics_of_calls, scores)


def timed(read: Callable[[int], TierPage]) -> tuple[list[float], TierPage]:
    """Return the milliseconds of many requests, sorted, and a page."""
    times = []
    page = read(0)
    for number in range(REQUESTS):
        start = time.perf_counter()
        page = read(number)
        times.append((time.perf_counter() - start) * 1_000)
    return sorted(times), page


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.disclosure")
    parser.add_argument("--tools", type=int, default=5_000)
    options = parser.parse_args()
    if not CORPORA.is_dir():
        print("The corpora are not here: they belong beside the repository.", file=sys.stderr)
        return 1
    catalog, tiers = filled(options.tools)
    counter = token_counter()
    start = time.perf_counter()
    tiers.hot()
    first = (time.perf_counter() - start) * 1_000
    members = tiers._categories.members()  # noqa: SLF001  # which to ask for
    largest = max(members, key=lambda name: len(members[name]))
    entries = catalog.tools
    reads: dict[Tier, Callable[[int], TierPage]] = {
        Tier.HOT: lambda _: tiers.hot(),
        Tier.CATEGORIES: lambda _: tiers.categories(),
        Tier.SUMMARIES: lambda _: tiers.summaries(largest),
        Tier.FULL: lambda n: tiers.full(entries[n * 7 : n * 7 + FULL_TOOLS]),
    }
    console = Console(width=110)
    table = Table(
        title=f"Tiers at {len(catalog)} tools of {len(catalog.namespaces)} servers, counted by {counter.name}"
    )
    for column in ("tier", "p50 ms", "p95 ms", "wanted", "items", "tokens", "budget"):
        table.add_column(column)
    for tier, read in reads.items():
        times, page = timed(read)
        centiles = statistics.quantiles(times, n=100)
        figures = (f"{centiles[49]:.2f}", f"{centiles[94]:.2f}", f"{WANTED_MS[tier]} ms")
        table.add_row(tier, *figures, str(len(page.items)), str(page.tokens), str(BUDGETS[tier]))
    console.print(table)
    everything = sum(counter.count(compact(full_item(entry))) for entry in entries)
    lines = sum(counter.count(compact(minimal(entry.spec, entry.qualified_name))) for entry in entries)
    hot = tiers.hot().tokens
    print(f"ranking after a change of the catalog: {first:.0f} ms")
    print(f"all definitions: {everything} tokens; a line and an open schema each: {lines} ({lines / everything:.1%})")
    print(f"hot list: {hot} ({hot / everything:.2%})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
