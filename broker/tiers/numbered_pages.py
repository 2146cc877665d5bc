"""Where the numbered pages of summaries begin and end: each begins where the one before it ends, so that none is lost.

Above: tiers.py. Below: items.py and pages.py. A page ends with its number of tools or with its budget, whichever is
first; to know where one begins, those before it are measured. What a tool takes is measured once for each definition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.tiers.items import summary_item
from broker.tiers.pages import Tier, cost_of, room_of_items
from broker.tiers.statistics import ToolStatistics
from sandbox.pace import PACE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker.tiers.statistics import CallStatistics
    from broker.tiers.tokens import TokenCounter
    from broker.tools.catalog import CatalogEntry

_NO_CALLS = ToolStatistics()
_LONGEST = ToolStatistics(calls=1, successes=1, milliseconds=999_999_999.9)
"""What is taken for the calls of each tool that was called: a page that grew or shrank would move all that follow."""

_MAX_COSTS = 20_000


class NumberedPages:
    """The numbered pages of any tools. Finding the last of 5,000 takes up to a second the first time, then 20 ms."""

    def __init__(self, statistics: CallStatistics) -> None:
        """Start with nothing measured."""
        self._statistics = statistics
        self._costs: dict[tuple[str, str, bool, bool, str], int] = {}

    def places(self, entries: Sequence[CatalogEntry], page: int, page_size: int, counter: TokenCounter) -> range:
        """Return which of these tools are on a page, counted from 1; none where there are fewer pages."""
        places = range(0)
        for places in self._found_so_far(entries, page, page_size, counter):  # noqa: B007 - the last one is the page's
            pass
        return places

    async def places_in_turns(
        self, entries: Sequence[CatalogEntry], page: int, page_size: int, counter: TokenCounter
    ) -> range:
        """Return the same, and give others a turn of the event loop every millisecond."""
        places = range(0)
        for places in self._found_so_far(entries, page, page_size, counter):  # noqa: B007 - the last one is the page's
            await PACE.keep()
        return places

    def _found_so_far(
        self, entries: Sequence[CatalogEntry], page: int, page_size: int, counter: TokenCounter
    ) -> Iterator[range]:
        """Yield after each tool that is measured what the page would be if it ended there; at last the page."""
        room = room_of_items(Tier.SUMMARIES, len(entries), counter)
        start = end = 0
        for _ in range(page):
            start, left = end, room
            while end < min(start + page_size, len(entries)):
                left -= min(self._cost(entries[end], counter), room)  # what is larger than a page is shortened to it
                if left < 0:
                    break
                end += 1
                yield range(start, end)
            if start == end:
                break
        yield range(start, end)

    def _cost(self, entry: CatalogEntry, counter: TokenCounter) -> int:
        was_called = self._statistics.of(entry.spec.server, entry.spec.name).calls > 0
        key = (entry.qualified_name, entry.spec.digest, entry.is_complete, was_called, counter.name)
        if key not in self._costs:
            if len(self._costs) >= _MAX_COSTS:
                self._costs.clear()
            self._costs[key] = cost_of(summary_item(entry, _LONGEST if was_called else _NO_CALLS), counter)
        return self._costs[key]
