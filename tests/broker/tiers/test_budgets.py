"""The budgets of the four tiers, as the numbers that were promised and not as those of the code."""

from __future__ import annotations

import pytest

from broker.disclosure.tool_details import stub_text
from broker.tiers import TokenCounter
from broker.tiers.pages import compact
from broker.tools.catalog import Catalog
from codegen import ToolAnnotations, ToolSpec

CHARACTERS = TokenCounter("one a character", len)


@pytest.fixture
def catalog():
    """As many tools, each of a server and category of its own, as fit on no page when characters are counted."""
    servers = [f"server{number:03}" for number in range(100)]
    catalog = Catalog(servers)
    about = "Moves the parcels of a customer to another store. Tells everybody about it."
    properties = {f"parameter_{place}": {"type": "string", "description": about} for place in range(8)}
    schema = {"type": "object", "properties": properties, "required": ["parameter_0"]}
    for server in servers:
        catalog.replace(server, [ToolSpec(server, "move", None, about, schema, None, ToolAnnotations())])
    return catalog


@pytest.mark.parametrize(
    ("tier", "budget", "around"),
    [("hot", 2_000, 200), ("categories", 4_000, 0), ("summaries", 8_000, 0), ("full", 12_000, 1_000)],
)
def test_a_page_holds_what_fits_into_the_tokens_promised_for_its_tier(catalog, make_tiers, tier, budget, around):
    tiers = make_tiers(catalog, CHARACTERS)
    page = {
        "hot": tiers.hot,
        "categories": tiers.categories,
        "summaries": lambda: tiers.summaries_of(catalog.tools, page_size=500),
        "full": lambda: tiers.full(catalog.tools),
    }[tier]()
    size = len(compact(page.to_json()))
    assert size <= budget - around
    assert size + len(compact(page.items[-1])) > budget - around - 200
    assert (page.budget, page.next_cursor is not None) == (budget, True)


def test_a_page_of_stubs_keeps_within_the_tokens_of_definitions(catalog, make_tiers):
    held = make_tiers(catalog, CHARACTERS).stubs(catalog.tools)
    assert 0 < len(held.names) < len(catalog)
    assert len(stub_text([catalog.lookup(name) for name in held.names])) <= 12_000
