"""Tools that their server lists with a line each: what is shown of them before and after they are read."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest

from broker import Broker, Config, Grant, ServerConfig
from broker.disclosure.settings import DisclosureSettings
from broker.errors import SearchError, UnavailableError, UnknownToolError
from broker.server.tools_mode import ToolsMode
from broker.texts.tool_texts import ALL_DESCRIBED, described_now

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("deadline")]

DESCRIBED = Path(__file__).parents[1] / "servers" / "described.py"


@pytest.fixture
def opened(log):
    def make(mode="plain", disclosure=None, **settings) -> Broker:
        config = ServerConfig(
            command=sys.executable,
            args=("-I", str(DESCRIBED), mode),
            env={"CALLS_LOG": str(log)},
            mode="legacy",
            **settings,
        )
        return Broker(
            Config(servers={"post": config}, disclosure=disclosure or DisclosureSettings()), opens_sandbox=False
        )

    return make


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines()


async def test_reading_in_full_reads_the_definitions_that_it_delivers(opened, log):
    async with opened() as broker:
        session = broker.session()
        page = await session.read_in_full(["post.send_mail", "post.count_mails"])
        assert page.items[0]["inputSchema"]["required"] == ["to"]
        assert "A mail to nobody is an error." in page.items[0]["description"]
        assert list(page.items[1]["inputSchema"]["properties"]) == ["folder"]
        assert all(session.is_described(entry) for entry in broker.catalog.tools)
        assert lines(log) == ["read send_mail,count_mails"]


async def test_reading_in_full_names_what_its_server_does_not_describe_and_describes_the_rest(opened):
    async with opened("silent") as broker:
        session = broker.session()
        page = await session.read_in_full(["post.send_mail", "post.count_mails"])
        assert page.items[0] == {
            "name": "post.send_mail",
            "about": "Sends a mail to one person.",
            "note": "Its server has told no more of it yet; get_tool_details asks it for the full definition.",
        }
        assert "inputSchema" in page.items[1]
        described = [entry.qualified_name for entry in broker.catalog.tools if session.is_described(entry)]
        assert described == ["post.count_mails"]


async def test_reading_in_full_is_a_fetch_like_any_other(opened, log):
    async with opened(disclosure=DisclosureSettings(fetches_per_minute=2)) as broker:
        session = broker.session()
        await session.get_tool_details(["post.send_mail"])
        await session.read_in_full(["post.send_mail"])
        with pytest.raises(SearchError, match=r"Too many descriptions were fetched; try again in \d+ s. Nothing was"):
            await session.read_in_full(["post.count_mails"])
        assert lines(log) == ["read send_mail"]
        assert not session.is_described(broker.catalog.lookup("post.count_mails"))


async def test_a_search_at_detail_full_beyond_the_rate_asks_no_server(opened, log):
    async with opened(disclosure=DisclosureSettings(fetches_per_minute=2)) as broker:
        session = broker.session()
        asked = {"query": "counts mails", "detail": "full", "limit": 1}
        found = await session.dispatch("search_tools", asked)
        await session.get_tool_details(["post.none"])
        assert (found.is_error, lines(log)) == (False, ["read count_mails"])
        refused = await session.dispatch("search_tools", asked | {"query": "sends a mail", "limit": 20})
        assert refused.text.startswith("Too many descriptions were fetched; try again in")
        assert "cursor" not in refused.text
        assert (refused.is_error, lines(log)) == (True, ["read count_mails"])
        assert not session.is_described(broker.catalog.lookup("post.send_mail"))


async def test_with_auto_what_is_listed_by_line_is_named_and_described_to_those_alone_who_have_fetched_it(opened, log):
    # Ten tokens: what is listed with a line does not count.
    auto = DisclosureSettings(describe="auto", context_share=0.01, context_tokens=1_000)
    async with opened(disclosure=auto) as broker:
        session, entry = broker.session(grants=[Grant("*")]), partial(broker.catalog.lookup, "post.send_mail")
        found = await session.dispatch("search_tools", {})
        assert described_now(["post"]) in found.text
        await broker.read_tool("post.send_mail")
        await broker.session().get_tool_details(["post.send_mail"])
        assert entry().is_complete
        assert not any(one.is_described(entry()) for one in (session, broker.session()))
        refused = await session.call_directly("post.send_mail", {"to": "a"})
        assert refused.record.status == "not_described"
        listed = ToolsMode(broker, None).listed()
        assert [tool["inputSchema"]["properties"] for tool in listed] == [{}, {}]
        await session.get_tool_details(["post.send_mail"])
        assert (await session.call_directly("post.send_mail", {"to": "a"})).record.status == "ok"
        assert described_now(["post.count_mails"]) in (await session.dispatch("search_tools", {})).text
        await session.get_tool_details(["post.count_mails"])
        assert ALL_DESCRIBED in (await session.dispatch("search_tools", {})).text
        assert lines(log)[-1] == "read count_mails"


async def test_no_tier_takes_a_line_for_a_definition(opened, log):
    async with opened() as broker:
        (full,) = broker.tiers.full([broker.catalog.lookup("post.send_mail")]).items
        assert full.keys() == {"name", "about", "note"}
        assert not any("parameters" in item for item in broker.tiers.hot().items)
        found = await broker.session().surface.dispatch("search_tools", {"category": "post"})
        assert "post.send_mail(…): Sends a mail to one person." in found.text
        assert lines(log) == []
        await broker.session().get_tool_details(["post.send_mail"])
        found = await broker.session().surface.dispatch("search_tools", {"category": "post"})
        assert "post.send_mail(to, text?) -> text: Sends a mail to one person." in found.text


@pytest.mark.parametrize("is_lazy", [False, True])
async def test_a_tool_is_read_as_a_whole_and_described_to_nobody(opened, log, is_lazy):
    async with opened("silent", lazy=is_lazy) as broker:
        session = broker.session()
        entry = await broker.read_tool("post.count_mails")
        assert (entry.is_complete, list(entry.spec.input_schema["properties"])) == (True, ["folder"])
        assert not session.is_described(entry)
        with pytest.raises(UnavailableError, match="post does not describe it now"):
            await broker.read_tool("post.send_mail")
        with pytest.raises(UnknownToolError):
            await broker.read_tool("post.none")
        with pytest.raises(TypeError, match="name is text"):
            await broker.read_tool(5)
        assert lines(log) == ["read count_mails", "read send_mail"]
