"""The four tiers over a catalog: hot list, categories, summaries, full definitions.

Above: sessions and the HTTP API. Below: items.py, pages.py, scores.py. A tier is read without waiting for any server.
`full` returns definitions and describes nothing: whoever delivers it to a session marks it there.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from broker.disclosure.tool_details import described_text, stub_text
from broker.errors import SearchError
from broker.search.cursors import cursor_at, fingerprint_of, offset_of
from broker.tiers.items import category_item, full_item, hot_item, listed_item, summary_item, too_long_item
from broker.tiers.numbered_pages import NumberedPages
from broker.tiers.pages import BUDGETS, Tier, TierPage, compact, page_of, room_of
from broker.tiers.tokens import token_counter
from codegen.plain_text import few, one_line
from sandbox.pace import PACE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.tiers.scores import TierScores
    from broker.tiers.statistics import CallStatistics
    from broker.tiers.tokens import TokenCounter
    from broker.tools.catalog import Catalog, CatalogEntry
    from broker.tools.categories import Categories

HOT_TOOLS = 15
POPULAR_TOOLS = 3
PAGE_SIZE = 50
_MAX = {"page": 1_000_000, "page_size": 500}
_NUMBER_CHARACTERS = 40
_NAME_CHARACTERS = 64
_ENVELOPE_TOKENS = 100
_AROUND_STUBS_TOKENS = 1_500


@dataclass(frozen=True, slots=True)
class HeldStubs:
    """The first of some tools by qualified name: those whose stubs fit on a page, and those larger than a page."""

    names: tuple[str, ...]
    too_long: tuple[str, ...]


class Tiers:
    """The tiers of one broker's catalog."""

    def __init__(
        self,
        catalog: Catalog,
        categories: Categories,
        statistics: CallStatistics,
        scores: TierScores,
        counter: TokenCounter | None = None,
    ) -> None:
        """Count tokens with `counter`; if None, with the installed tokenizer, or an estimate."""
        self._catalog = catalog
        self._categories = categories
        self._statistics = statistics
        self._scores = scores
        self._given_counter = counter
        self._numbered = NumberedPages(statistics)

    @property
    def counter(self) -> TokenCounter:
        """Counts tokens."""
        return self._given_counter or token_counter()

    def hot(self, cursor: str | None = None) -> TierPage:
        """Return the tools with the best scores: at most fifteen a page, in 2,000 tokens.

        Raises:
            SearchError: The cursor cannot be used.
        """
        return self.hot_of(self._scores.ranked(), cursor)

    def hot_of(self, entries: Sequence[CatalogEntry], cursor: str | None = None) -> TierPage:
        """Return any tools as `hot` does.

        Raises:
            SearchError: The cursor cannot be used.
        """

        def item(place: int) -> dict[str, Any]:
            return hot_item(entries[place], self._scores.of(entries[place]))

        return self._page(Tier.HOT, item, len(entries), HOT_TOOLS, cursor)

    def categories(self, cursor: str | None = None) -> TierPage:
        """Return the categories, by name, in 4,000 tokens a page; also those of servers that are asleep.

        Raises:
            SearchError: The cursor cannot be used.
        """
        members, asleep = self._categories.members(), self._categories.asleep()
        names = sorted({*members, *asleep})

        def item(place: int) -> dict[str, Any]:
            entries = members.get(name := names[place], ())
            popular = heapq.nlargest(POPULAR_TOOLS, entries, key=lambda entry: self._scores.of(entry).score)
            unseen = asleep.get(name, ())
            servers = sorted({*(entry.spec.server for entry in entries), *unseen})
            about, telling = self._categories.about(name, servers), self._categories.words(name)
            return category_item(name, entries, popular, unseen, about=about, telling=telling)

        return self._page(Tier.CATEGORIES, item, len(names), len(names), cursor)

    def summaries(
        self, category: str, *, page: int = 1, page_size: int = PAGE_SIZE, cursor: str | None = None
    ) -> TierPage:
        """Return the tools of a category, the hottest first, in 8,000 tokens a page.

        Args:
            category: Its name.
            page: Which page, from 1. It begins where the one before it ends.
            page_size: Tools on a page; fewer where the budget ends before.
            cursor: Where to go on, instead of `page`.

        Raises:
            SearchError: There is no such category, page or cursor.
        """
        entries = self._hottest(self._members(category))
        return self.summaries_of(entries, of=_of(category), page=page, page_size=page_size, cursor=cursor)

    async def read_summaries(
        self, category: str, *, page: int = 1, page_size: int = PAGE_SIZE, cursor: str | None = None
    ) -> TierPage:
        """Return the same as `summaries`; others have turns of the event loop while the pages before are measured.

        Raises:
            SearchError: There is no such category, page or cursor.
        """
        members = self._members(category)
        _check_numbers(page, page_size)
        await PACE.keep()  # to group the tools, and to rank them, takes long after a change of theirs
        self._scores.ranked()
        await PACE.keep()
        entries = self._hottest(members)
        places = None
        if cursor is None:
            places = await self._numbered.places_in_turns(entries, page, page_size, self.counter)
        return self._summaries(entries, places, of=_of(category), page_size=page_size, cursor=cursor)

    def summaries_of(
        self,
        entries: Sequence[CatalogEntry],
        *,
        of: str = "",
        page: int = 1,
        page_size: int = PAGE_SIZE,
        cursor: str | None = None,
    ) -> TierPage:
        """Return the summaries of any tools, as `summaries` does; `of` identifies them in cursors.

        Raises:
            SearchError: There is no such page or cursor.
        """
        _check_numbers(page, page_size)
        places = self._numbered.places(entries, page, page_size, self.counter) if cursor is None else None
        return self._summaries(entries, places, of=of, page_size=page_size, cursor=cursor)

    def _summaries(
        self, entries: Sequence[CatalogEntry], places: range | None, *, of: str, page_size: int, cursor: str | None
    ) -> TierPage:
        def item(place: int) -> dict[str, Any]:
            spec = entries[place].spec
            return summary_item(entries[place], self._statistics.of(spec.server, spec.name))

        return self._page(Tier.SUMMARIES, item, len(entries), page_size, cursor, places=places, of=of)

    def full(self, entries: Sequence[CatalogEntry], cursor: str | None = None) -> TierPage:
        """Return whole definitions, in 12,000 tokens a page; one that is larger or not known yet is named instead.

        Raises:
            SearchError: The cursor cannot be used.
        """
        room = room_of(Tier.FULL) - _ENVELOPE_TOKENS

        def item(place: int) -> dict[str, Any]:
            if not entries[place].is_complete:
                return listed_item(entries[place])
            whole = full_item(entries[place])
            tokens = self.counter.count(compact(whole))
            return whole if tokens <= room else too_long_item(entries[place], tokens)

        names = [entry.qualified_name for entry in entries]
        return self._page(Tier.FULL, item, len(entries), len(entries), cursor, of=compact(names))

    def stubs(self, entries: Sequence[CatalogEntry]) -> HeldStubs:
        """Return which of these tools fit on a page of stubs: 12,000 tokens, with the text around them.

        Stubs that were never made before take up to a tenth of a second each.
        """
        room = BUDGETS[Tier.FULL] - _AROUND_STUBS_TOKENS
        left = room
        names: list[str] = []
        too_long: list[str] = []
        for entry in entries:
            tokens = self.counter.count(stub_text([entry]))
            if tokens > room:
                too_long.append(entry.qualified_name)
                continue
            left -= tokens
            if left < 0:
                break
            names.append(entry.qualified_name)
        return HeldStubs(tuple(names), tuple(too_long))

    def first(self, entries: Sequence[CatalogEntry], *, as_definitions: bool = False) -> int:
        """Return how many of the first tools fit on a page as stubs, or as definitions; the first one always does.

        Stubs that were never made before take up to a tenth of a second each.
        """
        left = BUDGETS[Tier.FULL] - _AROUND_STUBS_TOKENS
        for place, entry in enumerate(entries):
            text = described_text(entry) if as_definitions else stub_text([entry])
            left -= self.counter.count(text)
            if left < 0:
                return max(place, 1)
        return len(entries)

    def fit(self, entries: Sequence[CatalogEntry], tokens: int) -> bool:
        """Tell whether the whole definitions of these tools have at most so many tokens."""
        for entry in entries:
            tokens -= self.counter.count(compact(full_item(entry)))
            if tokens < 0:
                return False
        return True

    def _page(
        self,
        tier: Tier,
        item: Callable[[int], dict[str, Any]],
        total: int,
        most: int,
        cursor: str | None,
        *,
        places: range | None = None,
        of: str = "",
    ) -> TierPage:
        fingerprint = fingerprint_of([tier, of])
        if places is None:
            start = 0 if cursor is None else offset_of(cursor, fingerprint)
            places = range(start, min(start + most, total))
        return page_of(
            tier, item, places, total, counter=self.counter, cursor_at=lambda place: cursor_at(place, fingerprint)
        )

    def _members(self, category: str) -> Sequence[CatalogEntry]:
        members = self._categories.members()
        if category not in members:
            if servers := self._categories.asleep().get(category):
                named = few([one_line(server, _NAME_CHARACTERS) for server in servers], POPULAR_TOOLS)
                raise SearchError(
                    f"No tool of the category {one_line(category, _NAME_CHARACTERS)} is known yet: a search with it "
                    f"connects {named}, asleep now."
                )
            raise SearchError(self._categories.unknown(category))
        return members[category]

    def _hottest(self, entries: Sequence[CatalogEntry]) -> list[CatalogEntry]:
        return sorted(entries, key=lambda entry: -self._scores.of(entry).score)


def _of(category: str) -> str:
    return f"category {category}"


def _check_numbers(page: int, page_size: int) -> None:
    for what, number in (("page", page), ("page_size", page_size)):
        if type(number) is not int or not 1 <= number <= _MAX[what]:
            raise no_number(what, number)


def no_number(what: str, given: object) -> SearchError:
    """Return that something is no `page` or `page_size`, and what one is."""
    shown = one_line(repr(given), _NUMBER_CHARACTERS)
    return SearchError(f"The {what} {shown} cannot be used. Give a whole number from 1 to {_MAX[what]}.")
