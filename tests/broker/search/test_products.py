"""Who says what they need finds the product that is one; who names a product gets no other."""

from __future__ import annotations

import pytest

from broker.search.products import products_for
from broker.search.words import stems
from tests.broker.search.tools import first_of, tool


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("an in-memory cache", {"redi", "memcach", "valkey"}),
        ("key value stores", {"redi", "memcach", "valkey"}),
        ("a cache in memory", set()),
        ("an in-memory cache on Redis", set()),
        ("function as a service", {"lambda", "azur function", "function app", "cloud run"}),
        ("Entra ID", {"azur ad", "activ directori"}),
        ("Entra ID, once Azure AD", set()),
        ("", set()),
    ],
)
def test_a_kind_is_known_with_its_products(text: str, known: set[str]) -> None:
    assert {" ".join(product) for _, products in products_for(stems(text)) for product in products} == known


TOOLS = [
    tool("cloud", "redis_create", "Create a Redis resource."),
    tool("cloud", "memory_create", "Create a memory of an agent."),
    tool("cloud", "storage_create", "Create a cache of files on disk."),
    tool("cloud", "cosmos_list", "List Cosmos DB accounts, databases, or containers."),
    tool("cloud", "sql_database_list", "List SQL databases."),
    tool("cloud", "mongodb_list", "List MongoDB clusters."),
    tool("desk", "forum_post", "Post to a thread of a forum."),
    tool("desk", "slack_post", "Post to a channel of Slack."),
]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("Set up an in-memory cache", "redis_create"),
        ("Set up a memory for the agent", "memory_create"),
        ("Which document stores do we have? I mean Cosmos", "cosmos_list"),
        ("Which document databases in MongoDB do we have?", "mongodb_list"),
        ("Post hello to the team chat", "slack_post"),
    ],
)
def test_a_product_is_found_by_what_it_is(query: str, first: str) -> None:
    assert first_of(TOOLS, query) == first
