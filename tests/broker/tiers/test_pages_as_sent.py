"""What leaves the broker at 5,000 real tools: replies of search_tools and HTTP, counted whole by o200k_base."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import httpx2
import pytest
from mcp.server.lowlevel import Server
from mcp.types import ListToolsResult, Tool

from broker import Broker
from broker.disclosure.tool_details import definition
from broker.server import BrokerServer, ServeSettings
from broker.server.http import Address, http_app
from broker.surface.dispatch import Surface
from broker.tiers import token_counter
from broker.tiers.tokens import ESTIMATE
from codegen import ToolAnnotations, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.anyio

FILLED_BY = pytest.mark.parametrize("counter", [token_counter(), ESTIMATE], ids=["tokenizer", "estimate"])
NAME = re.compile(r"^(s\d+\.[^(\n]+)\(", re.MULTILINE)


@pytest.fixture(scope="module")
def anyio_backend():
    """Serving HTTP needs asyncio."""
    return "asyncio"


def serving(specs: list[ToolSpec]) -> Server:
    # A few real schemas have no type, without which this SDK lists nothing.
    typed = [replace(spec, input_schema={"type": "object", **spec.input_schema}) for spec in specs]
    tools = [Tool.model_validate(definition(spec, spec.name)) for spec in typed]

    async def list_tools(_context, _params) -> ListToolsResult:
        return ListToolsResult(tools=tools)

    return Server("corpus", on_list_tools=list_tools)


@asynccontextmanager
async def connected(groups, counter, prefix="s"):
    """Run a broker with a server in this process for each group of tools, which counts as told."""
    servers = {f"{prefix}{number}": serving(specs) for number, specs in enumerate(groups)}
    async with Broker(servers=servers, opens_sandbox=False, startup_seconds=60) as broker:
        broker.tiers._given_counter = counter
        yield broker


@pytest.fixture(scope="module")
async def broker(corpus):
    """One for all tests of the corpus."""
    groups = [[entry.spec for entry in corpus.of_server(server)] for server in corpus.namespaces]
    async with connected(groups, token_counter()) as broker:
        assert len(broker.catalog) == len(corpus)
        yield broker


@pytest.fixture(params=[token_counter(), ESTIMATE], ids=["tokenizer", "estimate"])
def filled(request, broker):
    """The broker, whose pages are filled by the tokenizer or the estimate."""
    broker.tiers._given_counter = request.param
    return broker


def names_of(broker, categories) -> list[str]:
    members = broker.categories.members()
    return [entry.qualified_name for category in categories for entry in members[category]]


async def searched(surface, most=1_000, **arguments) -> list[str]:
    """Return the replies to a search and to those that follow its cursors."""
    texts = [(await surface.dispatch("search_tools", arguments)).text]
    while len(texts) < most and (cursor := re.search(r'repeat the search with cursor="([^"]+)"', texts[-1])):
        texts.append((await surface.dispatch("search_tools", {**arguments, "cursor": cursor[1]})).text)
    return texts


@pytest.mark.usefixtures("deadline")
async def test_replies_of_search_tools_keep_within_the_budgets_of_their_tiers(filled, tokens):
    surface = filled.session().surface
    hot = await searched(surface, most=3)
    assert all(tokens(text) <= 2_000 for text in hot)
    assert [len(NAME.findall(text)) for text in hot] == [15, 15, 15]
    categories = await searched(surface, category="*")
    assert len(categories) > 1
    assert all(tokens(text) <= 4_000 for text in categories)
    members = filled.categories.members()
    for category in sorted(members, key=lambda name: -len(members[name]))[:5]:
        summaries = await searched(surface, category=category, limit=50)
        assert all(tokens(text) <= 8_000 for text in summaries)
        named = [name for text in summaries for name in NAME.findall(text)]
        assert sorted(named) == names_of(filled, [category])
    for has_scripts in (True, False):
        full = await searched(Surface(session=filled.session(), has_scripts=has_scripts), 6, detail="full", limit=50)
        assert len(full) == 6
        assert all(tokens(text) <= 12_000 for text in full)


@pytest.mark.usefixtures("deadline")
async def test_pages_over_http_keep_within_the_budgets_of_their_tiers(filled, tokens):
    app = http_app(BrokerServer(filled, ServeSettings()), Address("127.0.0.1", 8000))
    base = "http://127.0.0.1:8000/api/v1/tools"
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=base) as client:

        async def read(path: str, budget: int, most: int = 1_000) -> list[str]:
            """Follow the cursors of a path, and return the names on its pages, at most so many pages."""
            names: list[str] = []
            cursor = None
            for _ in range(most):
                answer = await client.get(path, params={} if cursor is None else {"cursor": cursor})
                told = answer.headers
                said = " ".join(f"{name}: {told[name]}" for name in ("Tokens", "Token-Budget", "Token-Counter"))
                assert tokens(f"{said} {answer.text}") <= budget == int(told["Token-Budget"])
                assert told["Token-Counter"] == filled.tiers.counter.name
                assert int(told["Tokens"]) == filled.tiers.counter.count(answer.text)
                page = answer.json()
                names += [item["name"] for item in page.get("tools", page.get("categories"))]
                cursor = page["next_cursor"]
                if cursor is None:
                    assert len(names) == page["total"]
                    break
            return names

        assert len(set(await read("/hot", 2_000, most=5))) == 75
        categories = await read("/categories", 4_000)
        assert categories == list(filled.categories.members())
        some = categories[::5]
        named = [name for category in some for name in await read(f"/category/{category}", 8_000)]
        assert sorted(named) == sorted(names_of(filled, some))


def moving(about: str, parameters: Mapping[str, object]) -> list[list[ToolSpec]]:
    """Return 180 tools of 60 servers that move parcels."""
    schema = {"type": "object", "properties": dict(parameters)}
    named = [f"move_{place}" for place in range(3)]
    return [[ToolSpec("", name, None, about, schema, None, ToolAnnotations()) for name in named]] * 60


@FILLED_BY
@pytest.mark.parametrize("length", [4, 7])
@pytest.mark.usefixtures("deadline")
async def test_the_hot_list_leaves_room_for_the_categories_below_it(tokens, counter, length):
    parameters = {f"parameter{place}" + "_of_it" * length: {"type": "string"} for place in range(6)}
    groups = moving("将客户的包裹移至另一家商店并告知所有人" * 20, parameters)
    async with connected(groups, counter, "The-warehouse-of-the-quay-") as broker:
        texts = await searched(broker.session().surface, 3)
        assert "Categories, with category=" in texts[0]
        lines = re.compile(r"^The-warehouse-of-the-quay-\d+\.move_\d\(", re.MULTILINE)
        assert min(len(lines.findall(text)) for text in texts) >= 10
        assert max(map(tokens, texts)) <= 2_000


@FILLED_BY
@pytest.mark.parametrize("count", [11, 12, 16, 60])
@pytest.mark.usefixtures("deadline")
async def test_definitions_leave_room_for_the_categories_below_them(tokens, counter, count):
    about = "Moves the parcels of a customer to another store."
    parameters = {f"parameter_{place}": {"type": "string", "description": about} for place in range(count)}
    async with connected(moving(about, parameters), counter, "The-warehouse-of-the-quay-") as broker:
        surface = Surface(session=broker.session(), has_scripts=False)
        texts = await searched(surface, 3, detail="full", limit=50)
        assert "Categories, with category=" in texts[0]
        assert max(map(tokens, texts)) <= 12_000
