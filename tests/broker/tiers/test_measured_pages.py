"""What pages of tiers really cost: counted by o200k_base itself, whatever filled them, tokenizer or estimate."""

from __future__ import annotations

import base64
import hashlib
import importlib
import json

import pytest

from broker.tiers import TierPage, token_counter
from broker.tiers.pages import compact
from broker.tiers.tokens import ESTIMATE
from broker.tools.catalog import Catalog
from codegen import ToolAnnotations, ToolSpec

BUDGETS = {"hot": 2_000, "categories": 4_000, "summaries": 8_000, "full": 12_000}
LEFT_FOR_NOTES = {"hot": 200, "full": 1_000}
TOOLS_PER_PAGE = {"hot": 15, "summaries": 500}
FILLED_BY = pytest.mark.parametrize("counter", [token_counter(), ESTIMATE], ids=["tokenizer", "estimate"])


def followed(read):
    pages: list[TierPage] = []
    cursor = None
    while not pages or cursor is not None:
        pages.append(read(cursor))
        cursor = pages[-1].next_cursor
    return pages


def read_whole(tiers, entries) -> dict[str, list[TierPage]]:
    """Return all pages of each tier; of full definitions, those of `entries`."""
    return {
        "hot": followed(tiers.hot),
        "categories": followed(tiers.categories),
        "summaries": followed(lambda cursor: tiers.summaries_of(entries, page_size=500, cursor=cursor)),
        "full": followed(lambda cursor: tiers.full(entries, cursor)),
    }


def named(pages) -> list[str]:
    return [item["name"] for page in pages for item in page.items]


def all_names(entries) -> list[str]:
    return sorted(entry.qualified_name for entry in entries)


def check_cost(pages, tier, tokens, counter, *, most=1.0) -> None:
    """Each page is within its budget, and ends because no other item fits, or it has as many as it may."""
    for page, following in zip(pages, [*pages[1:], None], strict=True):
        assert tokens(compact(page.to_json())) <= BUDGETS[tier] * most
        if following is not None and len(page.items) < TOOLS_PER_PAGE.get(tier, len(page.items) + 1):
            assert page.tokens + counter.count(compact(following.items[0])) > 0.95 * (
                BUDGETS[tier] - LEFT_FOR_NOTES.get(tier, 0)
            )


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("antidisestablishmentarianism", [493, 129901, 376, 160388, 21203, 2367]),
        ("2 + 2 = 4", [17, 659, 220, 17, 314, 220, 19]),
        ("お誕生日おめでとう", [8930, 9697, 243, 128225, 8930, 17693, 4344, 48669]),
    ],
)
def test_the_tokenizer_has_the_vocabulary_of_openai(text, ids):
    """The numbers are those of OpenAI's cookbook."""
    encoding = importlib.import_module("bpe_openai").get_encoding("o200k_base")
    assert list(encoding.encode_ordinary(text)) == ids
    assert token_counter().count(text) == len(ids)


@FILLED_BY
def test_every_page_of_five_thousand_tools_is_within_its_budget(corpus, make_tiers, tokens, counter):
    tiers = make_tiers(corpus, counter)
    some = corpus.tools[::4]
    of_tier = read_whole(tiers, some)
    for tier, pages in of_tier.items():
        check_cost(pages, tier, tokens, counter)
    assert {len(page.items) for page in of_tier["hot"][:-1]} == {15}
    assert sorted(named(of_tier["hot"])) == all_names(corpus.tools)
    assert named(of_tier["categories"]) == list(tiers._categories.members())
    assert named(of_tier["summaries"]) == named(of_tier["full"]) == [entry.qualified_name for entry in some]


@FILLED_BY
def test_the_pages_of_all_categories_are_within_their_budget_and_have_every_tool_once(
    corpus, make_tiers, tokens, counter
):
    tiers = make_tiers(corpus, counter)
    names = []
    for category in tiers._categories.members():
        pages = followed(lambda cursor, of=category: tiers.summaries(of, page_size=500, cursor=cursor))
        check_cost(pages, "summaries", tokens, counter)
        names += named(pages)
    assert sorted(names) == all_names(corpus.tools)


def _base64(seed: int, length: int) -> str:
    hashes = (hashlib.sha256(f"{seed} {place}".encode()).digest() for place in range(length // 32 + 1))
    return base64.b64encode(b"".join(hashes)).decode()[:length]


def _json(seed: int, length: int) -> str:
    rows = [{"id": seed * place, "price": place * 7.25, "is_open": True, "of": None} for place in range(length)]
    return json.dumps(rows)[:length]


def _turned(alphabet: str):
    def text(seed: int, length: int) -> str:
        turn = seed * 7 % len(alphabet)
        return ((alphabet[turn:] + alphabet[:turn]) * (length // len(alphabet) + 1))[:length]

    return text


KINDS = {
    "Chinese": _turned("根据最新的统计数据中国的经济增长速度已经放缓"),
    "emoji": _turned("😀🎉🚀🔥👩🏽🌍"),
    "base64": _base64,
    "JSON": _json,
    "cuneiform": _turned("".join(map(chr, range(0x12000, 0x12040)))),
}
RANDOM_LETTERS = 1.15
"""How far random letters, of which the estimate counts too few, may be above the budget."""


def catalog_of(kind: str, *, name: int, parameter: int) -> Catalog:
    """Return 60 tools of 12 servers, all texts of one kind, and names of so many characters."""
    text = KINDS[kind]

    def spec(server: str, seed: int) -> ToolSpec:
        of = {
            text(seed * 100 + place, parameter) + str(place): {
                "type": ["string", "integer"],
                "description": text(seed, 80),
            }
            for place in range(parameter // 2)
        }
        schema = {"type": "object", "properties": of, "required": list(of)[: len(of) // 2]}
        output = {"type": "object", "properties": {text(seed + place, parameter): {} for place in range(10)}}
        return ToolSpec(server, text(seed, name) + str(seed), None, text(seed, 400), schema, output, ToolAnnotations())

    servers = [f"{text(number, name)}{number}" for number in range(12)]
    catalog = Catalog(servers)
    for number, server in enumerate(servers):
        catalog.replace(server, [spec(server, number * 5 + place) for place in range(5)])
    return catalog


@FILLED_BY
@pytest.mark.parametrize("kind", KINDS)
def test_the_hot_list_has_ten_tools_in_any_language(make_tiers, tokens, counter, kind):
    catalog = catalog_of(kind, name=12, parameter=12)
    pages = followed(make_tiers(catalog, counter).hot)
    check_cost(pages, "hot", tokens, counter, most=RANDOM_LETTERS if kind == "base64" else 1)
    assert sorted(named(pages)) == all_names(catalog.tools)
    if kind != "cuneiform":  # of four tokens a character
        assert all(10 <= len(page.items) <= 15 for page in pages[:-1])


@FILLED_BY
@pytest.mark.parametrize("kind", KINDS)
def test_tools_of_the_longest_names_and_texts_have_pages_with_each_of_them_once(make_tiers, tokens, counter, kind):
    catalog = catalog_of(kind, name=64, parameter=60)
    tiers = make_tiers(catalog, counter)
    for tier, pages in read_whole(tiers, catalog.tools).items():
        check_cost(pages, tier, tokens, counter, most=RANDOM_LETTERS if kind == "base64" else 1)
        wanted = list(tiers._categories.members()) if tier == "categories" else all_names(catalog.tools)
        assert sorted(named(pages)) == sorted(wanted)
