"""What counts as described, what ends it, and what is said then."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client

from broker import Broker, BrokerServer, Config, Grant, ServerConfig, ServeSettings
from broker.disclosure.disclosure import Disclosure
from broker.disclosure.fetch_rate import MAX_CALLERS, FetchRate, FetchRates
from broker.disclosure.from_the_start import FromTheStart
from broker.disclosure.tool_details import definition
from broker.errors import UnavailableError
from broker.redaction import Redactor
from broker.tools.catalog import Catalog
from codegen import ToolAnnotations, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.sessions import Session

pytestmark = pytest.mark.anyio


def spec(server: str, name: str, description: str = "Does it", **properties: object) -> ToolSpec:
    schema = {"type": "object", "properties": properties}
    return ToolSpec(server, name, None, description, schema, None, ToolAnnotations(read_only=True))


CALLS: dict[str, dict[str, Any]] = {"add": {"a": 1}, "fail": {"reason": "closed"}, "wait": {}}
SEARCHES: dict[str, dict[str, Any]] = {
    "words": {"query": "add numbers"},
    "words, brief": {"query": "add numbers", "detail": "brief"},
    "words, names": {"query": "add numbers", "detail": "name"},
    "regex": {"query": "^ad+$|desk", "mode": "regex"},
    "regex, names": {"query": "^ad+$|desk", "mode": "regex", "detail": "name"},
    "category": {"query": "", "category": "desk"},
    "category, names": {"query": "", "category": "desk", "detail": "name"},
    "words in a category": {"query": "numbers", "category": "desk"},
    "server": {"query": "", "server": "desk", "detail": "name"},
    "all": {"query": ""},
}
"""Searches of every kind that stop short of definitions; each finds `desk.add`."""

LOG = spec("git", "git_log", "Shows the history", count={"type": "integer"})


@pytest.fixture
def catalog():
    catalog = Catalog(["git", "hub"])
    catalog.replace("git", [LOG, spec("git", "git_status"), spec("git", "search")])
    catalog.replace("hub", [spec("hub", "search")])
    return catalog


@pytest.fixture
def disclosure(catalog):
    return Disclosure(catalog, {}, fetches_per_minute=120, redact=Redactor(()))


@pytest.fixture
def from_the_start(catalog):
    """Begins a session that is described what fits."""

    def begin(start: FromTheStart, on_described: Callable[[ToolSpec], None] | None = None) -> Disclosure:
        return Disclosure(catalog, {}, on_described, fetches_per_minute=120, from_the_start=start, redact=Redactor(()))

    return begin


def script(*tools: str) -> str:
    called = [f"await desk.{tool}(**{CALLS[tool]})" for tool in tools]
    return "\n".join(["from tools import desk", *called])


def described(broker: Broker, session: Session) -> list[str]:
    return [entry.qualified_name for entry in broker.catalog if session.is_described(entry)]


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
async def test_a_search_short_of_definitions_describes_nothing(desk_server, calls, search):
    with anyio.fail_after(60):
        async with Broker(servers={"desk": desk_server}) as broker:
            session = broker.session(grants=[Grant("*")])
            found = await session.dispatch("search_tools", search)
            assert "desk.add" in found.text
            assert described(broker, session) == []
            refused = await session.dispatch("execute_code", {"code": script(*CALLS)})
            error = (refused.structured or {})["error"]
            assert error["type"] == "ToolDescriptionRequired"
            assert "desk.add (line 2), desk.fail (line 3), desk.wait (line 4)" in error["message"]
            assert calls == []
            await session.dispatch("execute_code", {"code": script("add")})
    assert calls == [("add", 1, 2)]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(
    ("served", "required"), [("code", "ToolDescriptionRequired"), ("tools", "TOOL_DESCRIPTION_REQUIRED")]
)
async def test_a_client_that_lists_and_searches_is_described_nothing(desk_server, calls, mode, served, required):
    sessions = []
    with anyio.fail_after(60):
        async with Broker(servers={"desk": desk_server}) as broker:

            def make_session(_principal: str) -> Session:
                sessions.append(broker.session(grants=[Grant("*")]))
                return sessions[-1]

            async def call(tool: str) -> dict[str, Any]:
                wanted = (tool, CALLS[tool]) if served == "tools" else ("execute_code", {"code": script(tool)})
                return (await client.call_tool(*wanted)).structured_content or {}

            server = BrokerServer(broker, ServeSettings(mode=served), make_session=make_session)
            async with Client(server.mcp, mode=mode) as client:
                for search in SEARCHES.values():
                    listed = {tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools}
                    assert (CALLS.keys() <= listed) == (served == "tools")
                    found = await client.call_tool("search_tools", search)
                    assert "desk.add" in str(found.content[0])
                    assert described(broker, sessions[0]) == []
                for tool in CALLS:
                    assert required in (await call(tool))["error"].values()
                assert calls == []
                await client.call_tool("get_tool_details", {"tools": ["desk.add"]})
                assert not (await call("add")).get("error")
    assert (len(sessions), calls) == (1, [("add", 1, 2)])


async def test_delivering_describes_what_was_asked_for_and_no_more(catalog, disclosure):
    details = await disclosure.deliver(["git.git_log"])
    assert "async def git_log(" in details.source
    assert details.described == ("git.git_log",)
    assert [entry.qualified_name for entry in catalog if disclosure.is_described(entry)] == ["git.git_log"]


async def test_definitions_are_delivered_on_request_alone(disclosure):
    assert (await disclosure.deliver(["git.git_log"])).definitions == {}
    details = await disclosure.deliver(["git.git_log"], with_definitions=True)
    assert details.definitions["git.git_log"] == {
        "name": "git.git_log",
        "description": "Shows the history",
        "inputSchema": {"type": "object", "properties": {"count": {"type": "integer"}}},
        "annotations": {"readOnlyHint": True},
    }


@pytest.mark.parametrize(
    ("sent", "carried"), [("half \ud83d", "half ?"), (float("nan"), None), ("whole 😀", "whole 😀")]
)
def test_a_definition_is_what_json_can_carry(sent, carried):
    said = definition(spec("git", "git_log", count={"default": sent}), "git.git_log")
    assert said["inputSchema"]["properties"] == {"count": {"default": carried}}
    json.dumps(said, allow_nan=False, ensure_ascii=False).encode()


async def test_names_that_no_tool_has_are_told_apart(disclosure):
    details = await disclosure.deliver(["git.git_lgo", "search", "git.git_log", "git.git_log"])
    assert details.described == ("git.git_log",)
    assert details.unknown == {"git.git_lgo": ("git.git_log", "git.git_status")}
    assert details.ambiguous == {"search": ("git.search", "hub.search")}


@pytest.mark.parametrize(
    "name",
    [
        "mcp__git__git_log",
        "functions.git_log",
        "functions.git.git_log",
        "tools.git.git_log",
        "git.gitLog",
        "Git.Git-Log",
        "git/git_log",
        "git:git_log",
        "git__git_log",
        "gitLog",
        "git.git_log()",
    ],
)
async def test_a_tool_is_meant_by_its_name_in_another_spelling(disclosure, name):
    assert (await disclosure.deliver([name])).described == ("git.git_log",)


@pytest.mark.parametrize("name", ["mcp__git__search_all", "functions.search", "Search", "gitLogs", "__", "mcp__"])
async def test_a_spelling_that_several_tools_or_none_could_have_is_no_name(catalog, disclosure, name):
    details = await disclosure.deliver([name])
    assert (details.described, list(details.unknown)) == ((), [name])
    assert not any(disclosure.is_described(entry) for entry in catalog)


async def test_a_tool_with_the_letters_of_another_takes_no_name_from_it(catalog, disclosure):
    catalog.replace("hub", [spec("hub", "gitGitLog")])
    assert (await disclosure.deliver(["git.gitLog"])).described == ()
    assert (await disclosure.deliver(["git.git_log"])).described == ("git.git_log",)


async def test_a_spelling_is_one_of_the_present_tools(catalog, disclosure):
    assert (await disclosure.deliver(["git.gitLog"])).described == ("git.git_log",)
    catalog.replace("git", [spec("git", "git_show")])
    details = await disclosure.deliver(["git.gitLog", "git.gitShow"])
    assert (details.described, list(details.unknown)) == (("git.git_show",), ["git.gitLog"])


async def test_other_spellings_are_no_names_where_exact_ones_are_wanted(catalog, disclosure):
    details = await disclosure.deliver(["mcp__git__git_log", "git", "git.git_status"], exactly=True)
    assert details.described == ("git.git_status",)
    assert [entry.qualified_name for entry in catalog if disclosure.is_described(entry)] == ["git.git_status"]


@pytest.mark.parametrize("name", ["git", "git.*"])
async def test_a_server_stands_for_its_tools_while_they_are_few(catalog, disclosure, name):
    assert (await disclosure.deliver([name])).described == ("git.git_log", "git.git_status", "git.search")
    for tools in (20, 21):
        catalog.replace("git", [spec("git", f"tool_{number}") for number in range(tools)])
        details = await disclosure.deliver([name])
        assert (len(details.described), list(details.unavailable)) == ((20, []) if tools == 20 else (0, [name]))


async def test_whoever_asks_for_tools_of_a_disabled_server_is_told_so():
    names, said = ["git", "git.*", "git.git_log"], "git is disabled in the config: do without it"
    async with Broker(Config(servers={"git": ServerConfig(command="x", disabled=True)})) as broker:
        session = broker.session()
        assert (await session.get_tool_details(names)).unavailable == dict.fromkeys(names, said)
        found = await session.dispatch("search_tools", {"query": "log", "server": "git"})
        assert f"{said}." in found.text
        with pytest.raises(UnavailableError, match=said):
            await session.call_directly("git.git_log", {})
        assert said not in (await session.dispatch("search_tools", {"query": "log"})).text


async def test_of_very_many_wrong_names_the_first_have_suggestions(disclosure):
    wrong = [f"git.git_lgo{number}" for number in range(30)]
    details = await disclosure.deliver(wrong)
    assert list(details.unknown) == wrong
    assert [name for name, near in details.unknown.items() if near] == wrong[:10]


async def test_a_changed_tool_is_not_described_any_more_and_says_what_changed(catalog, disclosure):
    await disclosure.deliver(["git.git_log", "git.git_status"])
    changes = catalog.replace("git", [replace(LOG, description="Erases the history"), spec("git", "git_status")])
    assert [(change.before.name, change.text) for change in changes] == [
        ("git_log", "changed: its description"),
        ("search", "it is not offered any more"),
    ]
    assert not disclosure.is_described(catalog.lookup("git.git_log"))
    assert disclosure.is_described(catalog.lookup("git.git_status"))
    assert disclosure.lapsed == {"git.git_log": "changed: its description"}
    details = await disclosure.deliver(["git.git_log"])
    assert details.changed == {"git.git_log": "changed: its description"}
    assert disclosure.is_described(catalog.lookup("git.git_log"))
    assert disclosure.lapsed == {}


async def test_where_all_are_described_from_the_start_a_changed_tool_and_one_without_a_definition_are_not(
    catalog, from_the_start
):
    lines = [spec("hub", "search"), spec("hub", "listed")]
    catalog.replace("hub", lines, incomplete=["listed"])
    disclosure = from_the_start(FromTheStart(catalog, lambda _: True))
    assert disclosure.is_described(catalog.lookup("git.git_log"))
    assert "hub.listed" not in {entry.qualified_name for entry in disclosure.described()}
    assert not disclosure.is_described(catalog.lookup("hub.listed"))
    catalog.replace("git", [replace(LOG, description="Erases the history")])
    assert not disclosure.is_described(catalog.lookup("git.git_log"))
    assert disclosure.lapsed["git.git_log"] == "changed: its description"


async def test_what_a_session_has_not_looked_at_lapses_as_well_when_it_changes(catalog, from_the_start):
    told: list[ToolSpec] = []
    start = FromTheStart(catalog, lambda _: True)
    before = from_the_start(start, told.append)
    changed = replace(LOG, description="Erases the history")
    catalog.replace("git", [changed])
    after = from_the_start(start)
    entry = catalog.lookup("git.git_log")
    assert (before.is_described(entry), after.is_described(entry)) == (False, True)
    assert before.lapsed["git.git_log"] == "changed: its description"
    assert (await before.deliver(["git.git_log"])).changed == {"git.git_log": "changed: its description"}
    assert before.is_described(entry)
    # Grants are told of both definitions: one that was given before holds no longer.
    assert [spec.digest for spec in told if spec.name == "git_log"] == [LOG.digest, changed.digest]


def test_tools_that_come_while_all_fit_stay_described_and_those_that_come_later_are_not(catalog, from_the_start):
    most = len(catalog)
    disclosure = from_the_start(FromTheStart(catalog, lambda entries: len(entries) <= most))
    catalog.replace("hub", [spec("hub", "first")])
    catalog.replace("hub", [spec("hub", "first"), spec("hub", "second")])
    assert not disclosure.describes_all
    assert disclosure.is_described(catalog.lookup("hub.first"))
    assert disclosure.is_described(catalog.lookup("git.git_log"))
    assert not disclosure.is_described(catalog.lookup("hub.second"))
    assert "hub.second" not in {entry.qualified_name for entry in disclosure.described()}
    catalog.replace("hub", [spec("hub", "second")])
    assert disclosure.is_described(catalog.lookup("hub.second"))
    assert disclosure.lapsed == dict.fromkeys(("hub.search", "hub.first"), "it is not offered any more")


def test_what_a_server_lists_beyond_a_hundred_thousand_names_has_to_be_fetched(catalog, from_the_start):
    disclosure = from_the_start(FromTheStart(catalog, lambda _: True, most_tools=len(catalog)))
    assert all(disclosure.is_described(entry) for entry in catalog)
    catalog.replace("hub", [spec("hub", "one_more")])
    assert not disclosure.is_described(catalog.lookup("hub.one_more"))


async def test_a_fetch_beyond_the_rate_describes_nothing_however_short_the_wait_is(catalog):
    disclosure = Disclosure(catalog, {}, fetches_per_minute=120, redact=Redactor(()))
    fetched = [await disclosure.deliver([]) for _ in range(500)]
    assert fetched[0].retry_after_seconds == 0
    refused = [details for details in fetched if details.retry_after_seconds]
    assert refused
    assert all(details.retry_after_seconds <= 0.5 for details in refused)


def test_a_bucket_fills_up_within_a_minute_and_no_further():
    rate = FetchRate(60)
    assert [rate.take(0.0) for _ in range(61)] == [0.0] * 60 + [1.0]
    assert [rate.take(1.5), rate.take(1.5)] == [0.0, 0.5]
    assert [rate.take(1000.0) for _ in range(61)] == [0.0] * 60 + [1.0]


def test_callers_have_rates_of_their_own_and_those_without_room_share_one():
    rates = FetchRates(1)
    callers = [str(number) for number in range(MAX_CALLERS)]
    assert not any(rates.take(caller, 0.0) for caller in callers)
    assert all(rates.take(caller, 0.0) for caller in callers)
    assert (rates.take("late", 0.0), rates.take("later", 0.0), rates.take("", 0.0)) == (0.0, 60.0, 60.0)
    assert (rates.take("0", 30.0), rates.take("late", 30.0), len(rates)) == (30.0, 30.0, MAX_CALLERS + 1)
    assert (rates.take("late", 61.0), rates.take("later", 61.0), len(rates)) == (0.0, 0.0, 2)


async def test_a_description_outlives_a_reconnect_with_equal_digests(catalog, disclosure):
    await disclosure.deliver(["git.git_log"])
    catalog.replace("git", [])
    assert disclosure.lapsed == {"git.git_log": "it is not offered any more"}
    catalog.replace("git", [LOG])
    assert disclosure.is_described(catalog.lookup("git.git_log"))


async def test_a_listing_that_says_nothing_new_changes_nothing(catalog):
    before, revision = catalog.tools, catalog.revision
    copies = [replace(entry.spec) for entry in catalog.of_server("git")]
    assert catalog.replace("git", copies) == ()
    assert catalog.revision == revision
    assert all(one is other for one, other in zip(before, catalog.tools, strict=True))


@given(names=st.lists(st.text(max_size=40), max_size=5))
async def test_any_name_gives_an_answer_and_describes_nothing_else(names):
    catalog = Catalog(["git"])
    catalog.replace("git", [LOG])
    disclosure = Disclosure(catalog, {}, fetches_per_minute=120, redact=Redactor(()))
    details = await disclosure.deliver(names)
    assert set(details.described) <= {"git.git_log"}
    assert set(details.unknown) | set(details.ambiguous) | set(details.unavailable) | {"git.git_log"} >= set(names)
