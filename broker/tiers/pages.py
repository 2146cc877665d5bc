"""A page of a tier: as many items as its budget of tokens holds, and a cursor to the rest.

Above: tiers.py. Below: shortening.py, tokens.py, and the cursors of searches.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from broker.tiers.shortening import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.tiers.tokens import TokenCounter


class Tier(StrEnum):
    """The four tiers, from the least detail to the most."""

    HOT = "hot"
    CATEGORIES = "categories"
    SUMMARIES = "summaries"
    FULL = "full"


BUDGETS = {Tier.HOT: 2_000, Tier.CATEGORIES: 4_000, Tier.SUMMARIES: 8_000, Tier.FULL: 12_000}
"""The tokens that a page may have, as JSON without spaces."""

AROUND = {Tier.HOT: 200, Tier.FULL: 1_000}
"""How many of them are left to what a reply says below the items, where these are hardly shorter as lines."""

LEAST_ITEMS = {Tier.HOT: 10}
"""How many items a page has room for, however long; one, for the other tiers. A longer one loses text."""

_CURSOR_TOKENS = 30


@dataclass(frozen=True, slots=True)
class TierPage:
    """A page of one tier.

    Attributes:
        tier: Which.
        items: Its tools or categories, as JSON objects.
        total: How many items all pages have.
        tokens: How many tokens the page has as JSON.
        budget: How many it may have.
        counted_by: The tokenizer, or the estimate.
        next_cursor: Where the next page begins; None when this is the last.
    """

    tier: Tier
    items: tuple[dict[str, Any], ...]
    total: int
    tokens: int
    budget: int
    counted_by: str
    next_cursor: str | None

    def to_json(self) -> dict[str, Any]:
        """Return the page as a JSON object; what is counted against the budget."""
        return _document(self.tier, self.items, self.total, self.next_cursor)


def room_of(tier: Tier) -> int:
    """Return how many tokens the items of a page may have, with what is around them as JSON."""
    return BUDGETS[tier] - AROUND.get(tier, 0)


def room_of_items(tier: Tier, total: int, counter: TokenCounter) -> int:
    """Return how many tokens the items of a page may have, without what is around them."""
    return room_of(tier) - counter.count(compact(_document(tier, (), total, None))) - _CURSOR_TOKENS


def cost_of(item: dict[str, Any], counter: TokenCounter) -> int:
    """Return how many tokens an item takes from a page."""
    return counter.count(compact(item)) + 1


def page_of(
    tier: Tier,
    items: Callable[[int], dict[str, Any]],
    places: range,
    total: int,
    *,
    counter: TokenCounter,
    cursor_at: Callable[[int], str],
) -> TierPage:
    """Fill a page with the items at these places, in order, until they are used up or the room ends.

    Args:
        tier: Whose budget.
        items: Makes the item at a place. One that is larger than its share of a page is shortened; a definition is not,
            so that one larger than the room is the caller's to replace.
        places: Which items are wanted.
        total: How many items there are.
        counter: Counts tokens.
        cursor_at: Makes the cursor of a page that begins at a place.
    """
    room = room_of_items(tier, total, counter)
    held: list[dict[str, Any]] = []
    share = room // LEAST_ITEMS.get(tier, 1)
    end = places.start
    for place in places:
        item = items(place)
        cost = cost_of(item, counter)
        if cost > share:
            item = shortened(item, lambda one: cost_of(one, counter) <= share)
            cost = cost_of(item, counter)
        if cost > room:
            break
        held.append(item)
        room -= cost
        end = place + 1
    following = cursor_at(end) if held and end < total else None
    counted = counter.count(compact(_document(tier, held, total, following)))
    return TierPage(tier, tuple(held), total, counted, BUDGETS[tier], counter.name, following)


def compact(value: Any) -> str:
    """Return JSON without spaces: what is counted is what is sent."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _document(tier: Tier, items: Sequence[dict[str, Any]], total: int, cursor: str | None) -> dict[str, Any]:
    name = "categories" if tier is Tier.CATEGORIES else "tools"
    return {"tier": tier.value, "total": total, name: list(items), "next_cursor": cursor}
