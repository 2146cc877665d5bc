"""Which tools are hot: a score from the calls they got, recomputed in the background.

Above: tiers.py. Below: statistics.py. A score has four parts: popularity (calls, capped) 0.40, success rate 0.30,
latency 0.20, recency 0.10. A tool that was never called has the score 0 and is cold.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.tiers.statistics import CallStatistics, ToolStatistics
    from broker.tools.catalog import Catalog, CatalogEntry

POPULAR_CALLS = 100
"""So many calls are the most that counts."""

FAST_MILLISECONDS = 100.0
SLOW_MILLISECONDS = 5_000.0
HALF_LIFE_SECONDS = 7 * 86_400.0

_TIERS = ((0.80, "hot"), (0.60, "warm"), (0.30, "standard"))
_COLD = "cold"


@dataclass(frozen=True, slots=True)
class ToolScore:
    """The score of a tool, between 0 and 1, and its tier: hot, warm, standard or cold."""

    score: float

    @property
    def tier(self) -> str:
        """The tier by the score."""
        return next((name for least, name in _TIERS if self.score >= least), _COLD)


def score(calls: ToolStatistics, now: float) -> ToolScore:
    """Return the score of a tool with these calls at a time in seconds since 1970."""
    milliseconds = calls.average_milliseconds
    if milliseconds is None:
        return ToolScore(0.0)
    popularity = min(calls.calls, POPULAR_CALLS) / POPULAR_CALLS
    slowness = (milliseconds - FAST_MILLISECONDS) / (SLOW_MILLISECONDS - FAST_MILLISECONDS)
    latency = 1.0 - min(max(slowness, 0.0), 1.0)
    recency = 0.5 ** (max(now - calls.last_at, 0.0) / HALF_LIFE_SECONDS)
    total = 0.40 * popularity + 0.30 * calls.success_rate + 0.20 * latency + 0.10 * recency
    return ToolScore(round(total, 6))


class TierScores:
    """The scores of a catalog's tools as they were computed last."""

    def __init__(self, catalog: Catalog, statistics: CallStatistics, *, clock: Callable[[], float] = time.time) -> None:
        """Compute nothing before it is asked for."""
        self._catalog = catalog
        self._statistics = statistics
        self._clock = clock
        self._revision = -1
        self._scores: dict[str, ToolScore] = {}
        self._called: list[CatalogEntry] = []
        self._never_called: tuple[CatalogEntry, ...] = ()
        self._ranked: tuple[CatalogEntry, ...] = ()

    def recompute(self) -> None:
        """Compute all scores anew: some milliseconds for a thousand tools."""
        entries = self._catalog.tools
        self._scores = self._scores_of(entries)
        self._called = [entry for entry in entries if self._scores[entry.qualified_name].score > 0]
        self._never_called = tuple(_in_turn(e for e in entries if self._scores[e.qualified_name].score == 0))
        self._rank()
        self._revision = self._catalog.revision

    def age(self) -> None:
        """Compute anew what time alone has changed, the scores of tools that were called: cheap while those are few."""
        self._scores |= self._scores_of(self._called)
        self._rank()

    def _scores_of(self, entries: Iterable[CatalogEntry]) -> dict[str, ToolScore]:
        now = self._clock()
        return {
            entry.qualified_name: score(self._statistics.of(entry.spec.server, entry.spec.name), now)
            for entry in entries
        }

    def _rank(self) -> None:
        self._called.sort(key=lambda entry: (-self._scores[entry.qualified_name].score, entry.qualified_name))
        self._ranked = (*self._called, *self._never_called)

    def of(self, entry: CatalogEntry) -> ToolScore:
        """Return the score of a tool."""
        return self.of_name(entry.qualified_name)

    def of_name(self, name: str) -> ToolScore:
        """Return the score of the tool of a qualified name."""
        self._refresh()
        return self._scores.get(name, ToolScore(0.0))

    def ranked(self) -> tuple[CatalogEntry, ...]:
        """Return all tools, the hottest first; of those never called, one of each server in turn."""
        self._refresh()
        return self._ranked

    def _refresh(self) -> None:
        if self._revision != self._catalog.revision:
            self.recompute()


def _in_turn(entries: Iterable[CatalogEntry]) -> list[CatalogEntry]:
    of_server: dict[str, list[CatalogEntry]] = {}
    for entry in entries:
        of_server.setdefault(entry.spec.server, []).append(entry)
    return [entry for row in zip_longest(*of_server.values()) for entry in row if entry is not None]
