"""`search_tools` over servers that are ready, asleep, slow or down."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from inspect import Parameter, Signature
from itertools import pairwise, product

import pytest
from mcp import types as t
from mcp.server import MCPServer

from broker import Broker, Config, Grant, ServerConfig
from broker.disclosure.settings import CategorySettings, DisclosureSettings
from broker.errors import ConfigError, SearchError
from broker.search import Detail, Filters, Mode, SearchRequest
from broker.tiers import Tier, token_counter
from broker.tiers.pages import BUDGETS
from broker.tools.catalog import Catalog
from broker.tools.categories import Categories
from codegen import ToolAnnotations, ToolSpec

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("deadline")]

TOOL = ToolSpec("desk", "t", None, "Does it.", {}, None, ToolAnnotations())


@pytest.fixture
def counter():
    return token_counter()


@pytest.fixture
def desk():
    server = MCPServer("desk")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Adds two numbers."""
        return a + b

    @server.tool()
    def note(text: str) -> str:
        """Keeps a note."""
        return text

    return server


async def test_a_search_at_detail_full_asks_for_the_fetch_and_makes_none(desk):
    async with Broker(servers={"desk": desk}) as broker:
        session = broker.session()
        page = await session.search(SearchRequest(query="numbers", detail=Detail.FULL))
        assert page.to_describe == ("desk.add",)
        assert not session.is_described(broker.catalog.lookup("desk.add"))
        details = await session.get_tool_details(page.to_describe)
        assert "async def add(*, a: int, b: int)" in details.source
        assert session.is_described(broker.catalog.lookup("desk.add"))


@pytest.mark.parametrize("detail", [Detail.BRIEF, Detail.FULL])
async def test_a_tool_that_is_withdrawn_while_it_is_searched_is_not_on_the_page(desk, detail):
    async def withdraw(_query, candidates):
        broker.catalog.replace("desk", [spec for spec in candidates if spec.name == "add"])
        return [spec.qualified_name for spec in candidates]

    async with Broker(servers={"desk": desk}, ranker=withdraw) as broker:
        reply = await broker.session().dispatch("search_tools", {"query": "adds note numbers", "detail": detail})
    assert (reply.is_error, {*re.findall(r"(?:desk\.|def )(\w+)", reply.text)}) == (False, {"add"})


async def test_a_server_that_is_down_is_said_to_be_and_the_others_are_searched(desk, faulty):
    async with Broker(Config(servers={"gone": faulty("exits")}), servers={"desk": desk}) as broker:
        page = await broker.session().search(SearchRequest(query="note"))
        assert await broker.session().search("note") == page
        assert [spec.qualified_name for spec in page.tools] == ["desk.note"]
        assert page.notes == (
            (
                'gone is not available: it exited with code 3; its last words: "missing the setting PROJECT"; its '
                'tools are not among these; others were searched. Search with server="gone" to see whether it is back.'
            ),
        )


async def test_a_search_of_one_server_that_is_down_does_not_say_that_others_were_searched(desk, faulty):
    async with Broker(Config(servers={"gone": faulty("exits")}), servers={"desk": desk}) as broker:
        page = await broker.session().search(SearchRequest(query="note", filters=Filters(servers=("gone",))))
        assert page.tools == ()
        (said,) = page.notes
        assert said.endswith(
            "; its tools are not known, and no others were searched. Search again to see whether it is back."
        )


async def test_of_many_servers_that_are_down_all_are_named_and_a_search_of_one_says_why(faulty):
    async with Broker(Config(servers={f"gone{number}": faulty("exits") for number in range(7)})) as broker:
        session = broker.session()
        *told, more = (await session.search(SearchRequest(query="note"))).notes
        assert [note.partition(" ")[0] for note in told] == [f"gone{number}" for number in range(5)]
        said = (
            '2 more servers are not available: gone5, gone6. A search with one as its server, as server="gone5", says'
        )
        assert more == f"{said} why."
        (why,) = (await session.search(SearchRequest(query="note", filters=Filters(servers=("gone5",))))).notes
        assert why.startswith("gone5 is not available: it exited with code 3")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("search_tools", {"query": [[]] * 500_000}),
        ("search_tools", {"query": "note", "annotations": dict.fromkeys(map(str, range(500_000)))}),
        ("get_tool_details", {"tools": [[]] * 500_000}),
        ("execute_code", {"code": dict.fromkeys(map(str, range(500_000)))}),
    ],
)
async def test_arguments_beyond_what_is_checked_are_refused(desk, name, arguments):
    async with Broker(Config(), servers={"desk": desk}) as broker:
        reply = await broker.session().dispatch(name, arguments)
        fault = "the value is too large or nested too deep to be checked"
        assert (reply.is_error, reply.text.partition(".")[0]) == (True, f"{name} was not called: {fault}")


async def test_many_arguments_that_can_be_checked_are_taken(desk):
    async with Broker(Config(), servers={"desk": desk}) as broker:
        many = ["desk.note", *(f"desk.{number}" for number in range(10_000))]
        reply = await broker.session().dispatch("get_tool_details", {"tools": many})
        assert (reply.is_error, "async def note" in reply.text) == (False, True)


async def test_where_a_server_lies_on_the_host_is_said_to_no_model(desk):
    config = Config(servers={"gone": ServerConfig(command="/home/someone/bin/gone")})
    async with Broker(config, servers={"desk": desk}) as broker:
        session = broker.session()
        replies = [
            await session.dispatch("search_tools", {"query": "note"}),
            await session.dispatch("get_tool_details", {"tools": ["gone.x"]}),
        ]
        for reply in replies:
            assert "the command '<path>/gone' was not found" in reply.text
            assert "someone" not in reply.text


async def test_servers_that_are_being_started_are_searched_too_and_one_that_stays_silent_is_named(desk, faulty):
    config = Config(servers={"silent": faulty("silent", connect_timeout_seconds=600), "parrot": faulty("plain")})
    async with Broker(config, servers={"desk": desk}, startup_seconds=0) as broker:
        page = await broker.session().search(SearchRequest(query="echo"))
        assert "parrot.echo" in [spec.qualified_name for spec in page.tools]
        assert page.notes == ("Still connecting: silent. Search again to see their tools.",)


@pytest.mark.parametrize(
    ("request_", "state"),
    [
        (SearchRequest(query="numbers"), "asleep"),
        (SearchRequest(query="echo something"), "ready"),
        (SearchRequest(query="say", filters=Filters(servers=["parrot"])), "ready"),
        (SearchRequest(query="say", filters=Filters(servers=["desk"])), "asleep"),
    ],
)
async def test_a_lazy_server_is_connected_when_a_search_looks_into_it(desk, faulty, request_, state):
    servers = {"parrot": faulty("plain", lazy=True, about="echoes what it hears")}
    async with Broker(Config(servers=servers), servers={"desk": desk}) as broker:
        page = await broker.session().search(request_)
        assert broker.server_statuses()[0].state == state
        found = [spec.qualified_name for spec in page.tools]
        assert ("parrot.echo" in found) == (state == "ready")
        if state == "asleep" and request_.filters.servers is None:
            assert page.notes == (
                (
                    'Not connected yet; a search with one as its server, as server="parrot", looks into it: parrot '
                    "(echoes what it hears)."
                ),
            )


async def test_names_that_are_wrong_in_a_filter_are_said_with_the_nearest(desk):
    async with Broker(servers={"my-desk": desk}) as broker:
        session = broker.session()
        page = await session.search(SearchRequest(query="note", filters=Filters(servers=["my_desk"])))
        assert (len(page.tools), page.notes) == (1, ())
        page = await session.search(SearchRequest(query="note", filters=Filters(servers=["my-dsk"])))
        assert (page.tools, page.notes) == ((), ("There is no server 'my-dsk'. Did you mean my-desk?",))
        page = await session.search(SearchRequest(query="note", filters=Filters(category="my-dask")))
        assert page.notes == ("There is no category 'my-dask'. Did you mean my-desk?",)


@pytest.mark.parametrize(
    "wrong",
    [
        SearchRequest(query="x", limit=0),
        SearchRequest(query="x", limit=True),
        SearchRequest(query="x", cursor="???"),
        SearchRequest(query="(", mode=Mode.REGEX),
        SearchRequest(query="x", mode=Mode.HYBRID),
    ],
)
async def test_what_cannot_be_searched_for_is_a_clear_error(desk, wrong):
    async with Broker(servers={"desk": desk}) as broker:
        with pytest.raises(SearchError):
            await broker.session().search(wrong)


async def test_categories_come_from_the_config_then_groups_then_names(desk, faulty):
    config = Config(
        servers={"parrot": faulty("plain", group="birds"), "other": faulty("plain")},
        disclosure=DisclosureSettings(
            categories={
                "sums": CategorySettings(tools=("desk.a*",)),
                "words": CategorySettings(tools=("desk.note", "*.echo2")),
            }
        ),
    )
    async with Broker(config, servers={"desk": desk}) as broker:
        members = {name: [e.qualified_name for e in found] for name, found in broker.categories.members().items()}
        assert members == {
            "birds": ["parrot.echo"],
            "other": ["other.echo"],
            "sums": ["desk.add"],
            "words": ["desk.note"],
        }
        page = await broker.session().search(SearchRequest(query="", filters=Filters(category="sums")))
        assert [spec.name for spec in page.tools] == ["add"]


@pytest.mark.parametrize(
    ("group", "patterns", "category"),
    [
        ("birds", {}, "birds"),
        (None, {}, "parrot"),
        (None, {"ops": ("parrot.e*",)}, "ops"),
        ("birds", {"ops": ("pa*o",)}, "ops"),
        ("birds", {"ops": ("desk.*", "*.echo")}, "ops"),
    ],
)
async def test_a_category_of_a_server_that_is_asleep_is_listed_and_a_search_in_it_connects_the_server(
    desk, faulty, group, patterns, category
):
    servers = {"parrot": faulty("plain", lazy=True, about="says it", group=group)}
    settings = DisclosureSettings(categories=patterns)
    config = Config(servers=servers | {"other": faulty("plain", lazy=True)}, disclosure=settings)
    async with Broker(config, servers={"desk": desk}) as broker:
        session = broker.session()
        listed = (await session.dispatch("search_tools", {"category": "*"})).text
        assert re.search(f"(?im)^{category} .*a search with this category (also )?connects .*parrot", listed)
        assert f"{category} (" in (await session.dispatch("search_tools", {})).text.splitlines()[-1]
        states = {status.name: status.state for status in broker.server_statuses()}
        assert (states["parrot"], states["other"]) == ("asleep", "asleep")
        found = await session.dispatch("search_tools", {"category": category, "query": "echo", "detail": "name"})
        assert "parrot.echo" in found.text
        assert "no category" not in found.text


async def test_a_category_says_in_the_words_of_the_operator_what_it_is_for(desk, faulty):
    config = Config.of_data(
        {
            "mcpServers": {},
            "disclosure": {
                "categories": {
                    "sums": {"description": "Adds up.\nAnd\x1b[31m more", "tools": ["desk.add"]},
                    "rest": ["desk.note"],
                }
            },
        }
    )
    servers = {
        "bird": faulty("plain", lazy=True, about="says it"),
        "one": faulty("plain", lazy=True, about="issues", group="pair"),
        "two": faulty("plain", lazy=True, group="pair"),
        "mute": faulty("plain", lazy=True),
    }
    async with Broker(config.model_copy(update={"servers": servers}), servers={"desk": desk}) as broker:
        session = broker.session()
        listed = (await session.dispatch("search_tools", {"category": "*"})).text
        assert listed.splitlines() == [
            "bird (asleep): says it. A search with this category connects bird.",
            "mute (asleep): a search with this category connects mute.",
            "pair (asleep): one: issues; two. A search with this category connects one, two.",
            "rest (1 tool, 1 server): Tools of desk. Popular: note.",
            "sums (1 tool, 1 server): Adds up. And more. Popular: add.",
        ]
        await session.dispatch("search_tools", {"category": "bird", "query": "echo"})
        about = {item["name"]: item["about"] for item in session.tiers.categories().items}
        assert (about["bird"], about["rest"]) == ("says it", "Tools of desk")


async def test_a_category_of_which_nobody_says_what_it_is_for_has_words_of_its_tools(desk):
    async with Broker(servers={"desk": desk}) as broker:
        names = [f"desk_{verb}_{thing}" for thing in ("page", "post", "file") for verb in ("list", "move", "edit")]
        broker.catalog.replace("desk", [replace(TOOL, name=name) for name in names])
        [category] = broker.tiers.categories().items
        assert category["popular"] == ["desk_edit_file", "desk_edit_page", "desk_edit_post"]
        assert category["about"] == "Tools of desk: list, move"
        broker.catalog.replace("desk", [replace(TOOL, name=name) for name in names[:4]])
        assert broker.tiers.categories().items[0]["about"] == "Tools of desk: move"


async def test_a_search_in_a_category_connects_no_server_that_has_nothing_in_it(desk, faulty):
    servers = {"parrot": faulty("plain", lazy=True, group="birds"), "other": faulty("plain", lazy=True)}
    settings = DisclosureSettings.model_validate({"categories": {"ops": ["parrot.*"], "sums": ["desk.*"]}})
    config = Config(servers=servers, disclosure=settings)
    async with Broker(config, servers={"desk": desk}) as broker:
        session = broker.session()
        reply = await session.dispatch("search_tools", {"category": "brds", "query": "parrot other"})
        assert "There is no category 'brds'. There are: ops, other, sums." in reply.text
        await session.dispatch("search_tools", {"category": "sums", "query": "parrot other"})
        assert {status.state for status in broker.server_statuses() if status.is_lazy} == {"asleep"}
        with pytest.raises(
            SearchError, match="No tool of the category ops is known yet: a search with it connects par"
        ):
            session.tiers.summaries("ops")


async def test_the_category_of_a_server_that_is_down_is_known(desk, faulty):
    config = Config(servers={"gone": faulty("exits", lazy=True, group="birds")})
    async with Broker(config, servers={"desk": desk}) as broker:
        reply = await broker.session().dispatch("search_tools", {"category": "birds"})
        assert "gone is not available: it exited with code 3" in reply.text
        assert "no category" not in reply.text


class Letters:
    """Vectors of how often each letter occurs."""

    model = "letters"

    async def embed(self, texts):
        return [[text.lower().count(letter) + 0.01 for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]


async def test_the_config_may_name_an_embedder(desk):
    config = Config(disclosure=DisclosureSettings(embedder=f"{__name__}:Letters", search="hybrid"))
    async with Broker(config, servers={"desk": desk}) as broker:
        page = await broker.session().search(SearchRequest(query="numerals"))
        assert {spec.name for spec in page.tools} == {"add", "note"}
    keyword = Config(disclosure=DisclosureSettings(embedder="no.such:Thing", search="keyword"))
    async with Broker(keyword, servers={"desk": desk}) as broker:
        assert not (await broker.session().search(SearchRequest(query="qqq"))).tools


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"embedder": "no_such_module:Thing"}, "disclosure.embedder: no_such_module:Thing cannot be used: ModuleNot"),
        ({"search": "hybrid"}, "disclosure.search: is 'hybrid', which needs 'embedder'"),
    ],
)
async def test_an_embedder_that_cannot_be_had_is_an_error_of_the_config(settings, said):
    with pytest.raises(ConfigError) as caught:
        Broker(Config(disclosure=DisclosureSettings(**settings)))
    assert str(caught.value).startswith(said)


async def test_a_ranker_of_the_host_decides_the_order(desk):
    async def backwards(_query, candidates):
        return [spec.qualified_name for spec in reversed(candidates)]

    async with Broker(servers={"desk": desk}, ranker=backwards) as broker:
        page = await broker.session().search(SearchRequest(query="note numbers"))
    async with Broker(servers={"desk": desk}) as broker:
        plain = await broker.session().search(SearchRequest(query="note numbers"))
    assert len(page.tools) > 1
    assert page.tools == plain.tools[::-1]


async def test_a_large_server_is_divided_by_what_tells_its_tools_apart():
    names = [f"az_{area}_{n}" for area in ("storage", "sql") for n in range(20)] + ["az_odd_one", "az"]
    catalog = Catalog(["azure"])
    catalog.replace("azure", [ToolSpec("azure", n, None, "", {}, None, ToolAnnotations()) for n in names])
    members = Categories(catalog).members()
    assert {name: len(found) for name, found in members.items()} == {
        "azure/other": 2,
        "azure/sql": 20,
        "azure/storage": 20,
    }


async def test_an_empty_query_lists_the_tools_that_are_used_first_and_names_the_categories(desk, faulty):
    async with Broker(Config(servers={"parrot": faulty("plain")}), servers={"desk": desk}) as broker:
        session = broker.session()
        page = await session.search(SearchRequest(query=""))
        assert [spec.qualified_name for spec in page.tools] == ["desk.add", "parrot.echo", "desk.note"]
        assert page.notes == ("Categories, with category=…: desk (2), parrot (1).",)
        broker.statistics.note("parrot", "echo", is_success=True, seconds=0.01)
        broker._shelf._scores.recompute()
        page = await session.search(SearchRequest(query="", limit=1))
        assert [spec.name for spec in page.tools] == ["echo"]
        following = await session.search(SearchRequest(query="", limit=1, cursor=page.next_cursor))
        assert ([spec.name for spec in following.tools], following.notes) == (["add"], ())


async def test_searching_a_category_for_nothing_gives_summaries_with_parameters_and_describes_nothing(desk):
    async with Broker(servers={"desk": desk}) as broker:
        session = broker.session(grants=[Grant("*")])
        first = await session.dispatch("search_tools", {"query": "", "category": "desk", "limit": 1})
        line, more = first.text.splitlines()
        assert line == "desk.add(a, b) -> result: Adds two numbers."
        assert not session.is_described(broker.catalog.lookup("desk.add"))
        cursor = more.partition('cursor="')[2].partition('"')[0]
        arguments = {"query": "", "category": "desk", "limit": 1, "cursor": cursor}
        assert (await session.dispatch("search_tools", arguments)).text == "desk.note(text) -> result: Keeps a note."
        by_words = await session.dispatch("search_tools", {"query": "numbers", "category": "desk"})
        assert by_words.text == "desk.add: Adds two numbers."


async def test_an_empty_query_gives_the_hot_list_and_with_a_limit_the_summaries(desk):
    async with Broker(servers={"desk": desk}) as broker:
        session = broker.session()
        for _ in range(100):
            broker.statistics.note("desk", "note", is_success=True, seconds=0.01)
        broker._shelf._scores.recompute()
        hot = await session.dispatch("search_tools", {})
        assert hot.text.splitlines() == [
            "desk.note(text: string): Keeps a note.",
            "desk.add(a: integer, b: integer): Adds two numbers.",
        ]
        summaries = await session.dispatch("search_tools", {"query": "", "limit": 20})
        assert summaries.text.splitlines() == [
            "desk.note(text) -> result: Keeps a note. (10 ms)",
            "desk.add(a, b) -> result: Adds two numbers.",
        ]
        assert not any(map(session.is_described, broker.catalog.tools))


async def test_the_hot_list_of_a_search_is_that_of_the_tiers_page_by_page_within_its_budget(counter):
    async with Broker(servers={f"wide{number}": [wide(place) for place in range(20)] for number in range(2)}) as broker:
        session = broker.session()
        seen: list[list[str]] = []
        of_tiers: list[list[str]] = []
        cursor: str | None = None
        while cursor is not None or not seen:
            text = (await session.dispatch("search_tools", {"cursor": cursor} if cursor else {})).text
            assert counter.count(text) <= BUDGETS[Tier.HOT]
            seen.append(re.findall(r"^(\S+)\(parameter", text, re.MULTILINE))
            cursor = cursor_in(text)
        page = session.tiers.hot()
        of_tiers.append([item["name"] for item in page.items])
        while page.next_cursor is not None:
            page = session.tiers.hot(page.next_cursor)
            of_tiers.append([item["name"] for item in page.items])
    assert seen == of_tiers
    assert len(seen[0]) >= 10
    assert len({name for names in seen for name in names}) == sum(map(len, seen)) == 40


async def test_all_categories_are_listed_page_by_page_within_their_budget(desk):
    async with Broker(servers={"desk": desk}) as broker:
        session = broker.session()
        reply = await session.dispatch("search_tools", {"category": "*"})
        assert reply.text == "desk (2 tools, 1 server): Tools of desk. Popular: add, note."
        areas = [f"{''.join(letters)}{'x' * 40}" for letters in product("abcde", repeat=3)]
        broker.catalog.replace("desk", [replace(TOOL, name=f"az_{area}_{n}") for area in areas for n in range(20)])
        *_, overview, _ = (await session.dispatch("search_tools", {})).text.splitlines()
        assert overview.endswith('and 115 more; category="*" tells of all.')
        seen, cursor, pages = [], None, 0
        while cursor is not None or not pages:
            arguments = {"category": "*"} | ({"cursor": cursor} if cursor else {})
            text = (await session.dispatch("search_tools", arguments)).text
            assert broker.tiers.counter.count(text) <= BUDGETS[Tier.CATEGORIES]
            seen += [line.partition(" (")[0] for line in text.splitlines() if " tools, " in line]
            cursor = text.partition('cursor="')[2].partition('"')[0] or None
            pages += 1
        assert seen == [f"desk/{area}" for area in areas]
        assert pages > 1
        wrong = await session.dispatch("search_tools", {"category": "*", "cursor": "x"})
        assert wrong.is_error
        assert "cursor" in wrong.text


async def test_a_server_that_was_connected_for_nothing_is_named(desk, faulty):
    async with Broker(
        Config(servers={"zoo": faulty("plain", lazy=True, about="zebras")}), servers={"desk": desk}
    ) as broker:
        session = broker.session()
        reply = await session.dispatch("search_tools", {"query": "zebras"})
        assert reply.text.splitlines() == [
            'No tool matches "zebras". Try other words, or search_tools({"query": ""}) for all.',
            'zoo was connected for this search; none of its 1 tools is among these. server="zoo" lists them.',
        ]
        again = await session.dispatch("search_tools", {"query": "zebras"})
        assert again.text.startswith("No tool matches")
        assert "zoo" not in again.text


async def test_summaries_stay_within_their_budget_and_go_on_where_it_ended(desk):
    async with Broker(servers={"desk": desk}) as broker:
        long: dict[str, object] = {f"parameter_{number}_{'x' * 40}": {} for number in range(20)}
        specs = [replace(TOOL, name=f"t{n:03}", input_schema={"properties": long}) for n in range(100)]
        broker.catalog.replace("desk", specs)
        session, seen, cursor, pages = broker.session(), [], None, 0
        while cursor is not None or not pages:
            arguments = {"query": "", "category": "desk/other", "limit": 200} | ({"cursor": cursor} if cursor else {})
            text = (await session.dispatch("search_tools", arguments)).text
            assert broker.tiers.counter.count(text) <= BUDGETS[Tier.SUMMARIES]
            seen += [line.partition("(")[0] for line in text.splitlines() if line.startswith("desk.")]
            cursor = text.partition('cursor="')[2].partition('"')[0] or None
            pages += 1
        assert seen == [f"desk.{spec.name}" for spec in specs]
        assert pages > 1


@pytest.mark.parametrize(
    "query",
    [
        "numbers " + " ".join(f"w{number:x}" for number in range(100_000)),
        "numbers " + "a" * 1_000_000,
        'numbers NEAR(add, 5) OR "x" AND -y* ^z {col: a}',
        "numbers \0 \ud800 🧮 e" + "\u0301" * 1_000,
        "numbers " + "<" * 100_000,
    ],
)
async def test_no_character_of_a_query_is_special(desk, query):
    async with Broker(servers={"desk": desk}) as broker:
        reply = await broker.session().dispatch("search_tools", {"query": query})
        assert (reply.text, reply.is_error) == ("desk.add: Adds two numbers.", False)


async def test_only_the_beginning_of_a_query_is_read(desk, faulty):
    async with Broker(
        Config(servers={"zoo": faulty("plain", lazy=True, about="zebras")}), servers={"desk": desk}
    ) as broker:
        far = "numbers " + "x " * 1_000
        for query, state in ((f"{far} zebras", "asleep"), (f"zebras {far}", "ready")):
            await broker.session().search(SearchRequest(query=query))
            assert {status.name: status.state for status in broker.server_statuses()}["zoo"] == state


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"query": "^desk.n", "mode": "regex"}, "desk.note: Keeps a note."),
        ({"query": "", "annotations": {"readOnlyHint": True}}, "desk.peek() -> result: Looks."),
        ({"query": "", "annotations": {"readOnlyHint": True, "destructiveHint": True}}, "There is no tool with"),
        ({"query": "(", "mode": "regex"}, "search_tools was not called: The regular expression cannot be used"),
        ({"query": "x", "mode": "hybrid"}, "search_tools was not called: There is no embedder"),
        ({"query": "x", "mode": "fuzzy"}, "search_tools was not called: mode: 'fuzzy' is not one of"),
        ({"query": "x", "annotations": {"read_only": True}}, "search_tools was not called: The annotation 'read_only'"),
        ('{"query"', "search_tools was not called: its arguments are not a JSON object"),
        ({"query": "x", "annotations": {"readOnlyHint": 1}}, "search_tools was not called: The annotation 'readOnly"),
    ],
)
async def test_a_model_may_search_by_expression_and_annotation(desk, arguments, said):
    @desk.tool(annotations=t.ToolAnnotations(read_only_hint=True))
    def peek() -> str:
        """Looks."""
        return ""

    async with Broker(servers={"desk": desk}) as broker:
        reply = await broker.session().dispatch("search_tools", arguments)
        assert reply.text.startswith(said)
        assert "\n" not in reply.text


async def test_detail_detailed_is_full(desk):
    async with Broker(servers={"desk": desk}) as broker:
        session = broker.session()
        replies = [
            await session.dispatch("search_tools", {"query": "numbers", "detail": detail})
            for detail in ("full", "detailed")
        ]
        assert replies[0] == replies[1]
        assert "async def add(" in replies[1].text


def wide(number: int):
    def tool(**_: str) -> None:
        """Takes much."""

    names = [f"parameter_number_{number}_{place}" for place in range(60)]
    tool.__name__ = f"tool_{number}"
    signature = Signature([Parameter(one, Parameter.KEYWORD_ONLY, annotation=str) for one in names])
    tool.__signature__ = signature  # type: ignore[attr-defined]  # what `inspect.signature` looks for
    return tool


def cursor_in(text: str) -> str | None:
    following = re.search(r'with cursor="(\S+)"\.$', text)
    return following[1] if following else None


async def test_a_search_at_detail_full_describes_as_many_tools_as_a_page_holds_and_goes_on(counter):
    async with Broker(servers={"wide": [wide(number) for number in range(40)]}) as broker:
        session = broker.session()
        pages: list[str] = []
        seen: list[int] = []
        cursor: str | None = None
        while cursor is not None or not pages:
            sent = {"query": "", "detail": "full", "limit": 40} | ({"cursor": cursor} if cursor else {})
            pages.append((await session.dispatch("search_tools", sent)).text)
            seen.append(len([entry for entry in broker.catalog.tools if session.is_described(entry)]))
            cursor = cursor_in(pages[-1])
    assert [text.count("async def ") for text in pages] == [seen[0], *(b - a for a, b in pairwise(seen))]
    assert seen[-1] == 40
    assert len(pages) > 1
    assert all(counter.count(text) <= BUDGETS[Tier.FULL] for text in pages)


async def test_a_search_at_detail_full_says_what_went_otherwise(desk):
    async with Broker(servers={"desk": desk}) as broker:
        sent = {"query": "add numbers", "detail": "full", "category": "none"}
        wrong = await broker.session().dispatch("search_tools", sent)
        first = await broker.session().dispatch("search_tools", {"query": "", "detail": "full", "limit": 1})
    assert "There is no category 'none'." in wrong.text
    assert "async def add(" in first.text
    assert "More tools: repeat the search with cursor=" in first.text


async def test_a_fetch_of_no_tool_and_of_ten_thousand_says_what_to_change(desk):
    async with Broker(servers={"desk": desk}) as broker:
        session = broker.session()
        none = await session.dispatch("get_tool_details", {"tools": []})
        assert none.is_error
        assert none.text.startswith("get_tool_details was not called: tools: name at least one")
        names = ["desk.add", "desk.add", *(f"desk.t{number}" for number in range(10_000))]
        many = await session.dispatch("get_tool_details", {"tools": names})
        assert not many.is_error
        assert many.text.endswith(", then the other 9863.")
        assert (
            'Not fetched, as this reply is full: 9901 tools. Next: get_tool_details({"tools": ["desk.t99",' in many.text
        )
        assert "async def add" in many.text


async def test_a_fetch_describes_as_many_tools_as_a_page_holds_and_names_the_next_fetch(counter):
    async with Broker(servers={"wide": [wide(number) for number in range(40)]}) as broker:
        session = broker.session()
        wanted = [f"wide.tool_{number}" for number in reversed(range(40))]
        names = wanted
        fetched: list[str] = []
        texts: list[str] = []
        while names:
            reply = await session.dispatch("get_tool_details", {"tools": names})
            texts.append(reply.text)
            now = [name for name in wanted if session.is_described(broker.catalog.lookup(name))]
            assert now == wanted[: len(now)]
            assert len(now) > len(fetched)
            fetched = now
            asked = re.search(r"get_tool_details\((.*?)\)", reply.text)
            names = wanted[len(now) :]
            assert (asked is None) == (not names)
            if asked:
                named = json.loads(asked[1])["tools"]
                assert named == names[: len(named)]
    assert len(texts) > 1
    assert all(counter.count(text) <= BUDGETS[Tier.FULL] for text in texts)
    assert counter.count(texts[0]) > BUDGETS[Tier.FULL] * 0.7
