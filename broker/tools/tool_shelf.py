"""The tools of a broker and everything to find them with: catalog, categories, statistics, tiers, search.

Above: broker.py makes one, feeds it the servers' listings and calls, and passes it to sessions. Below: the modules of
each part.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import anyio

from broker.disclosure.fetch_rate import FetchRates
from broker.disclosure.from_the_start import FromTheStart
from broker.disclosure.settings import load_embedder
from broker.logging import logger
from broker.redaction import redacted_definition
from broker.search import Mode, ToolSearch, VectorStore
from broker.tiers import CallStatistics, Tiers, TierScores
from broker.tools.catalog import Catalog
from broker.tools.categories import Categories
from broker.tools.finder import Finder
from broker.tools.inferred_results import InferredResults
from codegen.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from broker.config.config import Config
    from broker.redaction import Redactor
    from broker.search import Embedder, Ranker
    from broker.store import Store
    from broker.upstreams.listing import Listing
    from broker.upstreams.upstream import Upstream

SCORES_SECONDS = 30.0
"""How often the statistics of calls are written and read, and tools ranked anew."""


class ToolShelf:
    """The tools of one broker.

    Attributes:
        catalog: All that are known now.
        categories: What they are grouped by.
        statistics: How often each was called, and how that went.
        tiers: Hot list, categories, summaries and whole definitions.
        finder: `search_tools`.
        fetches_per_minute: How often a session may fetch descriptions.
        fetch_rates: How often callers of a server may, in all their sessions together.
        from_the_start: Describes all tools to each session while they fit; None unless the config says `auto`.
    """

    def __init__(
        self,
        config: Config,
        servers: Iterable[str],
        upstreams: Mapping[str, Upstream],
        *,
        disabled: Collection[str] = (),
        redact: Redactor,
        store: Store | None,
        embedder: Embedder | None,
        ranker: Ranker | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Start with no tool; the arguments are those of the broker. `redact` takes secrets out of definitions.

        Of the `servers`, those that are `disabled` will have none.

        `clock` tells when a call ended, and how long ago that is: in seconds since 1970.

        Raises:
            ConfigError: The embedder of the config cannot be had.
        """
        self._redact = redact
        settings = config.disclosure
        embedder = embedder or load_embedder(settings)
        search = ToolSearch(
            embedder=embedder,
            vectors=VectorStore(store) if embedder is not None else None,
            ranker=ranker,
            # Both are made from the catalog below.
            categories=lambda spec: self.categories.of(spec),  # noqa: PLW0108
            listed=lambda: (entry.spec for entry in self._scores.ranked()),
        )
        self.catalog = Catalog(servers, disabled=disabled, tool_search=search)
        if store is not None:
            inferred = InferredResults(store)
            self.catalog.inferred_of = lambda spec: inferred.find(spec.server, spec.name, spec.digest)
        groups = {name: server.group for name, server in config.servers.items() if server.group is not None}
        self.categories = Categories(
            self.catalog,
            patterns={name: category.tools for name, category in settings.categories.items()},
            groups=groups,
            descriptions={name: said for name, one in settings.categories.items() if (said := one.description)},
            about_servers={name: server.about for name, server in config.servers.items() if server.about},
            never_seen=lambda: _never_seen(upstreams),
        )
        self.statistics = CallStatistics(store, clock=clock)
        self._scores = TierScores(self.catalog, self.statistics, clock=clock)
        self.tiers = Tiers(self.catalog, self.categories, self.statistics, self._scores)
        self.fetches_per_minute = settings.fetches_per_minute
        self.fetch_rates = FetchRates(settings.fetches_per_minute)
        room = int(settings.context_share * settings.context_tokens)
        is_auto = settings.describe == "auto"
        self.from_the_start = FromTheStart(self.catalog, partial(self.tiers.fit, tokens=room)) if is_auto else None
        self.finder = Finder(self.catalog, upstreams, self.categories, mode=Mode(settings.search))

    def take_listing(self, server: str, listing: Listing) -> None:
        """Put a server's new listing in the place of the one before."""
        tools = [redacted_definition(spec, self._redact) for spec in listing.tools]
        for change in self.catalog.replace(server, tools, incomplete=listing.incomplete):
            logger().warning("tool changed", tool=one_line(change.before.qualified_name, 200), change=change.text)

    def note_call(self, server: str, tool: str, is_success: bool, seconds: float) -> None:  # noqa: FBT001
        """Count a call that was sent to a server."""
        self.statistics.note(server, tool, is_success=is_success, seconds=seconds)

    async def keep_scores(self) -> None:
        """Exchange statistics with the store and rank the tools anew, now and then; write the last when cancelled.

        Ranks also where no call was added: what was used long ago counts for less.
        """
        try:
            while True:
                await anyio.sleep(SCORES_SECONDS)
                if self.statistics.flush():
                    self._scores.recompute()
                else:
                    self._scores.age()
        finally:
            self.statistics.flush()


def _never_seen(upstreams: Mapping[str, Upstream]) -> list[str]:
    return [name for name, upstream in upstreams.items() if upstream.status.is_unseen]
