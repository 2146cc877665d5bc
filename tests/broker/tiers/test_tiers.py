"""Pages of tiers: within their budgets, complete when followed, harmless to read."""

from __future__ import annotations

import hashlib
import inspect
import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.server import MCPServer

from broker import Broker
from broker.disclosure.tool_details import stub_text
from broker.errors import SearchError, UnknownToolError
from broker.tiers import CallStatistics, Tiers, TierScores, TokenCounter, token_counter
from broker.tiers.items import full_item, summary_line
from broker.tiers.pages import BUDGETS, Tier, TierPage, compact
from broker.tiers.tokens import ESTIMATE, estimate
from broker.tools.catalog import Catalog
from broker.tools.categories import Categories
from codegen import ToolAnnotations, ToolSpec


def spec(name: str, description: str = "Does it. And more. And all.", server: str = "srv", output=None, **properties):
    schema = {"type": "object", "properties": properties, "required": list(properties)[:1]}
    return ToolSpec(server, name, None, description, schema, output, ToolAnnotations())


@pytest.fixture
def catalog():
    catalog = Catalog(["srv"])
    returned = {"type": "object", "properties": {"commits": {"type": "array"}, "more": {"type": "boolean"}}}
    catalog.replace(
        "srv",
        [
            spec("log", path={"type": "string"}, count={"type": ["integer", "null"]}, output=returned),
            spec("status"),
        ],
    )
    return catalog


def followed(read):
    pages, cursor = [], None
    while True:
        pages.append(read(cursor))
        cursor = pages[-1].next_cursor
        if cursor is None:
            return pages


def test_each_tier_says_as_much_as_it_should(catalog, make_tiers):
    tiers = make_tiers(catalog)
    assert tiers.hot().items[0] == {
        "name": "srv.log",
        "about": "Does it. And more.",
        "parameters": ["path: string", "count?: integer|null"],
        "tier": "cold",
    }
    assert tiers.categories().items == (
        {"name": "srv", "about": "Tools of srv", "tools": 2, "servers": 1, "popular": ["log", "status"]},
    )
    assert tiers.summaries("srv").items[0] == {
        "name": "srv.log",
        "about": "Does it.",
        "required": ["path"],
        "optional": ["count"],
        "returns": "commits, more",
    }
    assert tiers.full([catalog.lookup("srv.log")]).items[0]["inputSchema"]["required"] == ["path"]


def test_parameters_that_are_not_known_yet_are_not_said_to_be_none(make_tiers):
    catalog = Catalog(["srv"])
    listed = [spec("line"), spec("listed", path={"type": "string"}), spec("none")]
    catalog.replace("srv", listed, incomplete=["line", "listed"])
    tiers = make_tiers(catalog)
    assert [item.get("parameters") for item in tiers.hot().items] == [None, ["path: string"], []]
    summaries = tiers.summaries("srv").items
    assert summaries[0] == {"name": "srv.line", "about": "Does it."}
    assert list(map(summary_line, summaries)) == [
        "srv.line(…): Does it.",
        "srv.listed(path): Does it.",
        "srv.none() -> text: Does it.",
    ]
    assert ["inputSchema" in item for item in tiers.full(catalog.tools).items] == [False, False, True]


def test_a_page_of_stubs_ends_with_its_budget_and_names_what_is_larger(make_tiers):
    catalog = Catalog(["srv"])
    sizes = {"a": 1, "b": 200, "c": 1, "d": 40, "e": 40}
    schemas = {name: {f"{name}{place}": {"type": "string"} for place in range(size)} for name, size in sizes.items()}
    catalog.replace("srv", [replace(spec(name), input_schema={"properties": one}) for name, one in schemas.items()])
    characters = TokenCounter("five a character", lambda text: 5 * len(text))
    tiers = make_tiers(catalog, characters)
    held = tiers.stubs(catalog.tools)
    assert (held.names, held.too_long) == (("srv.a", "srv.c", "srv.d"), ("srv.b",))
    assert tiers.stubs(catalog.tools[4:]).names == ("srv.e",)
    assert 5 * len(stub_text([catalog.lookup(name) for name in held.names])) <= BUDGETS[Tier.FULL]
    by_name = [catalog.lookup(f"srv.{name}") for name in "acdeb"]
    assert [tiers.first(by_name[start:]) for start in (0, 3, 4)] == [3, 1, 1]
    assert [tiers.first(by_name[start:], as_definitions=True) for start in (0, 2, 4)] == [3, 1, 1]


@pytest.mark.parametrize("counter", [ESTIMATE, token_counter()], ids=["estimate", "tokenizer"])
def test_five_thousand_tools_fit_into_the_budgets_of_their_pages(corpus, make_tiers, counter):
    tiers = make_tiers(corpus, counter)
    largest = max(tiers._categories.members(), key=lambda name: len(tiers._categories.members()[name]))
    some = corpus.tools[:: len(corpus) // 200]
    of_tier = {
        Tier.HOT: [tiers.hot()],
        Tier.CATEGORIES: followed(tiers.categories),
        Tier.SUMMARIES: followed(lambda cursor: tiers.summaries(largest, page_size=500, cursor=cursor)),
        Tier.FULL: followed(lambda cursor: tiers.full(some, cursor)),
    }
    for tier, pages in of_tier.items():
        for page in pages:
            assert counter.count(compact(page.to_json())) <= BUDGETS[tier]
            assert page.tokens == counter.count(compact(page.to_json()))
            assert page.items
    assert 10 <= len(of_tier[Tier.HOT][0].items) <= 15
    names = [item["name"] for page in of_tier[Tier.CATEGORIES] for item in page.items]
    assert names == list(tiers._categories.members())
    fetched = [item["name"] for page in of_tier[Tier.FULL] for item in page.items]
    assert fetched == [entry.qualified_name for entry in some]
    assert sum(page.items != () for page in of_tier[Tier.FULL]) > 1


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string|null"),
        ({"anyOf": [{"type": ["string", "null"]}, {"type": "string"}]}, "string|null"),
        ({"anyOf": [{"type": "string"}, {"$ref": "#/$defs/other"}]}, "any"),
        ({"anyOf": [{"type": "string"}] * 500}, "any"),
        ({"anyOf": "string"}, "any"),
        ({"anyOf": []}, "any"),
    ],
)
def test_a_parameter_of_several_types_shows_them(make_tiers, schema, kind):
    catalog = Catalog(["srv"])
    catalog.replace("srv", [spec("log", since=schema)])
    assert make_tiers(catalog).hot().items[0]["parameters"] == [f"since: {kind}"]


def test_a_hot_tool_shows_the_parameters_that_a_call_needs_first(make_tiers):
    catalog = Catalog(["srv"])
    schema = {"type": "object", "properties": {key: {"type": "string"} for key in "abcdefg"}, "required": ["c", "g"]}
    catalog.replace("srv", [ToolSpec("srv", "t", None, "", schema, None, ToolAnnotations())])
    shown = ["c: string", "g: string", "a?: string", "b?: string", "d?: string", "e?: string"]
    assert make_tiers(catalog).hot().items[0]["parameters"] == shown


def test_definitions_fit_into_as_many_tokens_as_they_have(catalog, make_tiers):
    tiers = make_tiers(catalog, ESTIMATE)
    needed = sum(ESTIMATE.count(compact(full_item(entry))) for entry in catalog.tools)
    assert tiers.fit(catalog.tools, needed)
    assert not tiers.fit(catalog.tools, needed - 1)


def test_pages_of_a_category_are_numbered(make_tiers):
    catalog = Catalog(["srv"])
    catalog.replace("srv", [spec(f"t{n:02}") for n in range(25)])
    tiers = make_tiers(catalog)
    names = [item["name"] for page in (1, 2, 3) for item in tiers.summaries("srv", page=page, page_size=10).items]
    assert names == [f"srv.t{n:02}" for n in range(25)]
    assert tiers.summaries("srv", page=4, page_size=10).items == ()


ALL = {"srv": ["*"]}
"""One category of all tools, however many they are."""


def numbered(tiers, **asked):
    pages: list[TierPage] = []
    while not pages or pages[-1].items:
        pages.append(tiers.summaries("srv", page=len(pages) + 1, **asked))
    return pages[:-1]


@pytest.mark.parametrize("counter", [ESTIMATE, token_counter()], ids=["estimate", "tokenizer"])
@pytest.mark.parametrize("asked", [{}, {"page_size": 1}, {"page_size": 500}], ids=str)
def test_a_numbered_page_begins_where_the_budget_ended_the_one_before(make_tiers, counter, asked):
    catalog = Catalog(["srv"])
    large: dict[str, Any] = {f"a_parameter_of_many_tokens_{number}_日本語": {"type": "string"} for number in range(40)}
    sizes: list[dict[str, Any]] = [large if number % 3 else {} for number in range(120)]
    catalog.replace("srv", [spec(f"t{number:03}", **size) for number, size in enumerate(sizes)])
    tiers = make_tiers(catalog, counter, patterns=ALL)
    pages = numbered(tiers, **asked)
    assert [item["name"] for page in pages for item in page.items] == [f"srv.t{number:03}" for number in range(120)]
    assert all(page.tokens <= page.budget for page in pages)
    assert [page.next_cursor is None for page in pages] == [False] * (len(pages) - 1) + [True]
    for page, after in pairwise(pages):
        assert tiers.summaries("srv", cursor=page.next_cursor, **asked).items[0] == after.items[0]


def test_numbered_pages_stay_where_they_are_while_calls_take_longer():
    catalog = Catalog(["srv"])
    large: dict[str, Any] = {f"parameter_{number}": {"type": "string"} for number in range(40)}
    catalog.replace("srv", [spec(f"t{number:03}", **large) for number in range(120)])
    statistics = CallStatistics()
    categories = Categories(catalog, patterns=ALL)
    tiers = Tiers(catalog, categories, statistics, TierScores(catalog, statistics), ESTIMATE)
    sizes = []
    for seconds in (0.001, 12_345.6):
        for entry in catalog.tools:
            statistics.note("srv", entry.spec.name, is_success=True, seconds=seconds)
        pages = numbered(tiers, page_size=500)
        assert all("average_ms" in item for page in pages for item in page.items)
        assert all(page.tokens <= page.budget for page in pages)
        sizes.append([len(page.items) for page in pages])
    assert sizes[0] == sizes[1]
    assert sum(sizes[0]) == len(catalog)


@pytest.mark.parametrize(
    "wrong",
    [{"page": 0}, {"page": True}, {"page_size": 0}, {"page_size": 501}, {"cursor": "x"}, {"cursor": ""}],
)
def test_what_is_not_a_page_is_a_clear_error(catalog, make_tiers, wrong):
    with pytest.raises(SearchError, match="cannot be"):
        make_tiers(catalog).summaries("srv", **wrong)


def test_a_cursor_of_one_tier_is_of_no_other(corpus, make_tiers):
    tiers = make_tiers(corpus)
    with pytest.raises(SearchError, match="belongs to another search"):
        tiers.hot(tiers.categories().next_cursor)


def test_an_unknown_category_is_said_with_the_nearest(catalog, make_tiers):
    with pytest.raises(SearchError, match="There is no category 'svr'"):
        make_tiers(catalog).summaries("svr")


def test_a_definition_larger_than_a_page_is_named_and_the_rest_is_there(make_tiers):
    catalog = Catalog(["srv"])
    catalog.replace("srv", [spec("huge", "x y " * 40_000), spec("small")])
    page = make_tiers(catalog).full(catalog.tools)
    assert "inputSchema" not in page.items[0]
    assert "get_tool_details fetches it" in page.items[0]["note"]
    assert page.items[1]["name"] == "srv.small"
    assert page.tokens <= page.budget


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)


@given(
    st.lists(st.tuples(st.text(min_size=1, max_size=30), st.text(max_size=300), json_values, json_values), max_size=8)
)
def test_definitions_of_any_shape_have_pages(tools):
    catalog = Catalog(["srv"])
    specs = {
        name: ToolSpec("srv", name, None, description, schema, output, ToolAnnotations())
        for name, description, schema, output in tools
    }
    catalog.replace("srv", specs.values())
    statistics = CallStatistics()
    tiers = Tiers(catalog, Categories(catalog), statistics, TierScores(catalog, statistics), ESTIMATE)
    pages = [tiers.hot(), tiers.categories(), tiers.full(catalog.tools)]
    pages += [tiers.summaries("srv")] if specs else []
    for page in pages:
        assert ESTIMATE.count(json.dumps(page.to_json(), ensure_ascii=False, separators=(",", ":"))) <= page.budget


@given(st.text())
def test_an_estimate_is_never_less_than_a_quarter_of_the_characters(text):
    assert estimate(text) >= len(text) / 4


@given(st.text())
def test_a_text_of_any_characters_has_tokens_unless_it_is_empty(text):
    assert bool(token_counter().count(text)) == bool(text)


@pytest.mark.parametrize("text", ["word " * 250_000, "\U00012000" * 60_000], ids=["characters", "tokens"])
def test_a_definition_of_which_the_tokenizer_takes_no_more_at_once_is_counted_all_the_same(text, make_tiers):
    catalog = Catalog(["srv"])
    catalog.replace("srv", [spec("big", text), spec("small")])
    tiers = make_tiers(catalog)
    assert tiers.counter.name == "o200k_base"
    assert [item["name"] for item in tiers.full(catalog.tools).items] == ["srv.big", "srv.small"]
    assert not tiers.fit(catalog.tools, 6_000)
    assert tiers.counter.count(text) == pytest.approx(8 * tiers.counter.count(text[: len(text) // 8]), rel=0.001)


ROWS = [
    {"id": place, "price": place * 7.25, "name": f"item {place}", "is_open": place % 3 == 0} for place in range(300)
]
KINDS: dict[str, str] = {
    "JSON": json.dumps(ROWS),
    "JSON with indentation": json.dumps(ROWS, indent=2),
    "JSON without spaces": json.dumps(ROWS, separators=(",", ":")),
    "numbers": "\n".join(str(place * 7_919) for place in range(2_000)),
    "a log": "".join(
        f"2026-11-27T10:15:{place % 60:02}.125Z INFO GET /api/v1/users/{place} 200\n" for place in range(200)
    ),
    "hexadecimal": "".join(hashlib.sha256(bytes([place])).hexdigest() for place in range(200)),
    "Japanese": "日本語の文章はこう書く。東京では雨が降っています。" * 200,
    "Chinese": "根据最新的统计数据中国的经济增长速度已经放缓。" * 200,
    "Korean": "한국어 문장은 이렇게 씁니다. 오늘은 비가 많이 옵니다." * 200,
    "emoji": "😀🎉🚀🔥" * 500,
    "Amharic": "ሰላም ለዓለም። የሰው ልጅ ሁሉ ሲወለድ ነጻ ነው። " * 100,
    "Tibetan": "འགྲོ་བ་མིའི་རིགས་རྒྱུད་ཡོངས་" * 100,
    "Syriac": "ܟܠ ܒܪܢܫܐ " * 200,
    "cuneiform": "".join(map(chr, range(0x12000, 0x12200))),
    "prose": (inspect.getdoc(TokenCounter) or "") * 20,
    "code": inspect.getsource(TokenCounter) * 20,
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_estimate_is_hardly_less_than_a_tokenizer_counts(kind):
    counted = token_counter()
    assert counted.name == "o200k_base"
    assert 0.9 <= estimate(KINDS[kind]) / counted.count(KINDS[kind]) <= 2


@pytest.mark.anyio
async def test_calls_of_scripts_are_counted_and_reading_in_full_describes():
    server = MCPServer("desk")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Adds two numbers."""
        return a + b

    with anyio.fail_after(60):
        async with Broker(servers={"desk": server}) as broker:
            session = broker.session()
            page = await session.read_in_full(["desk.add"])
            assert page.items[0]["inputSchema"]["required"] == ["a", "b"]
            assert session.is_described(broker.catalog.lookup("desk.add"))
            await broker._upstreams.by_name["desk"].call_tool("add", {"a": 1, "b": 2})
            await broker._upstreams.by_name["desk"].call_tool("add", {"a": "no", "b": 2})
            counted = broker.statistics.of("desk", "add")
            assert (counted.calls, counted.successes) == (2, 1)
            assert broker.tiers.summaries("desk").items[0]["average_ms"] > 0
            with pytest.raises(UnknownToolError):
                await session.read_in_full(["desk.ad"])
