"""Servers that list a line for each tool and describe them in a resource, which is read when it is needed."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from broker import Broker, Config, Grant, ServerConfig
from broker.disclosure.settings import DisclosureSettings
from broker.upstreams.remote_descriptions import wants_description

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
        return Broker(Config(servers={"post": config}, disclosure=disclosure or DisclosureSettings()))

    return make


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines()


async def test_the_catalog_has_lines_until_a_description_is_asked_for(opened, log):
    async with opened() as broker:
        entry = broker.catalog.lookup("post.send_mail")
        assert (entry.is_complete, entry.spec.description) == (False, "Sends a mail to one person.")
        assert lines(log) == []
        session = broker.session()
        details = await session.get_tool_details(["post.send_mail"])
        assert lines(log) == ["read send_mail"]
        assert "to: str" in details.source
        assert "A mail to nobody is an error." in details.source
        assert '{"to": "a@example.com"}' in details.source
        assert broker.catalog.lookup("post.send_mail").is_complete
        assert not broker.catalog.lookup("post.count_mails").is_complete


async def test_one_read_describes_all_that_are_asked_for_and_authorizes_their_calls(opened, log):
    async with opened() as broker:
        session = broker.session(grants=[Grant("post.*")])
        script = "from tools import post\nawait post.count_mails()\nawait post.send_mail(to='a')"
        assert "ToolDescriptionRequired" in str((await session.execute_code(script)).error)
        assert lines(log) == []
        result = await session.execute_code(script, describe_references=True)
        assert (result.outcome, result.value) == ("completed", "done"), result.error
        assert lines(log) == ["read count_mails,send_mail", "call count_mails {}", 'call send_mail {"to": "a"}']


async def test_descriptions_are_read_where_the_server_lists_them(opened, log):
    async with opened("elsewhere") as broker:
        session = broker.session(grants=[Grant("post.*")])
        assert "to: str" in (await session.get_tool_details(["post.send_mail"])).source
        assert (await session.call_directly("post.send_mail", {"to": "a"})).failed is None
        assert lines(log) == ["read send_mail", 'call send_mail {"to": "a"}']


async def test_descriptions_at_an_address_that_cannot_be_sent_leave_those_of_other_servers(log):
    def server(mode):
        return ServerConfig(command=sys.executable, args=("-I", str(DESCRIBED), mode), env={"CALLS_LOG": str(log)})

    async with Broker(Config(servers={"bad": server("half"), "post": server("plain")})) as broker:
        session = broker.session(grants=[Grant("*.*")])
        details = await session.get_tool_details(["bad.send_mail", "post.send_mail"])
        assert details.described == ("post.send_mail",)
        script = "from tools import bad, post\nawait post.count_mails()\nawait bad.count_mails()"
        assert "bad" in str((await session.execute_code(script, describe_references=True)).error)
        result = await session.execute_code(
            "from tools import post\nawait post.count_mails()", describe_references=True
        )
        assert (result.outcome, result.value) == ("completed", "done"), result.error


async def test_a_list_of_definitions_is_understood_as_well(opened):
    async with opened("as_list") as broker:
        details = await broker.session().get_tool_details(["post.send_mail"])
        assert details.described == ("post.send_mail",)


async def test_a_server_that_forgot_is_read_and_called_once_more(opened, log):
    async with opened() as broker:
        session = broker.session(grants=[Grant("post.*")])
        await session.get_tool_details(["post.send_mail"])
        await session.call_directly("post.send_mail", {"to": "a", "text": "forget"})
        result = await session.call_directly("post.send_mail", {"to": "b"})
        assert result.failed is None
        assert [line.partition(" ")[0] for line in lines(log)] == ["read", "call", "read", "call"]


async def test_a_server_that_goes_on_refusing_is_read_once_and_called_twice(opened, log):
    async with opened("refusing") as broker:
        session = broker.session(grants=[Grant("post.*")])
        await session.get_tool_details(["post.send_mail"])
        code = (
            "from tools import ToolError, post\ntry:\n    await post.send_mail(to='a')\n"
            "except ToolError as error:\n    said = [type(error).__name__, str(error)]\nsaid"
        )
        result = await session.execute_code(code)
        kind, said = result.value
        assert kind == "ToolUnavailableError"
        assert said == (
            "post still says that the description of send_mail must be read, though it was read again for this call. "
            "Nothing was executed, and another fetch will not help. "
            'Look for another tool: search_tools({"query": "send mail"}), or tell the user. '
            "[text of post] read it first"
        )
        assert lines(log) == ["read send_mail", 'call send_mail {"to": "a"}'] * 2
        assert [(record.tool, record.status) for record in result.calls] == [("send_mail", "unavailable")]
        reply = await session.dispatch("execute_code", {"code": "from tools import post\nawait post.send_mail(to='a')"})
        assert "stay done" not in reply.text
        direct = await session.call_directly("post.send_mail", {"to": "a"})
        assert direct.failed is not None
        assert direct.failed.message == said


async def test_calls_that_are_refused_together_need_one_read(opened, log):
    async with opened() as broker:
        session = broker.session(grants=[Grant("post.*")])
        await session.get_tool_details(["post.send_mail"])
        await session.call_directly("post.send_mail", {"to": "a", "text": "forget"})
        code = (
            "import asyncio as io\nfrom tools import post\nawait io.gather(*[post.send_mail(to=x) for x in 'abcdefgh'])"
        )
        result = await session.execute_code(code)
        assert result.value == ["done"] * 8, result.error
        assert lines(log).count("read send_mail") == 2
        assert sorted(line for line in lines(log)[2:] if line.startswith("call")) == [
            f'call send_mail {{"to": "{name}"}}' for name in "abcdefgh"
        ]


@pytest.mark.parametrize(
    ("how", "warnings"),
    [
        ("exhaust", ()),
        ("fail", ("its descriptions could not be read again (JSON-RPC error -32601)",)),
        ("hang", ("its descriptions could not be read again (it did not answer in time)",)),
    ],
)
async def test_a_tool_that_its_server_does_not_describe_now_stays_described_and_is_not_called(
    opened, log, how, warnings
):
    async with opened(lazy=True, call_timeout_seconds=2, connect_timeout_seconds=8) as broker:
        session = broker.session(grants=[Grant("post.*")])
        await session.get_tool_details(["post.send_mail"])
        await session.call_directly("post.send_mail", {"to": "a", "text": how})
        refused = await session.call_directly("post.send_mail", {"to": "b"})
        assert refused.failed is not None
        assert refused.failed.message == (
            "post wants the description of send_mail to be read again before it takes the call, and does not give it "
            "now. Nothing was executed. Try again in a moment."
        )
        upstream = broker._upstreams.by_name["post"]
        before = upstream._tools.listing
        upstream._tools.note_change()
        while upstream._tools.listing is before:
            await anyio.lowlevel.checkpoint()
        assert session.is_described(broker.catalog.lookup("post.send_mail"))
        assert session.lapsed == {}
        assert broker.server_statuses()[0].warnings == warnings
        assert [line for line in lines(log) if line.startswith("call")] == [
            f'call send_mail {{"to": "a", "text": "{how}"}}'
        ]


async def test_nothing_is_kept_of_a_tool_that_its_server_does_not_list_any_more(opened, log):
    async with opened() as broker:
        session = broker.session(grants=[Grant("post.*")])
        await session.get_tool_details(["post.send_mail"])
        await session.call_directly("post.send_mail", {"to": "a", "text": "forget"})
        assert (await session.call_directly("post.send_mail", {"to": "b", "text": "withdraw"})).failed is None
        descriptions = broker._upstreams.by_name["post"]._tools.descriptions
        assert lines(log).count("read send_mail") >= 2
        while len(broker.catalog.tools) > 1:
            await anyio.lowlevel.checkpoint()
        assert [*descriptions._read, *descriptions._last_readings, *descriptions._reading] == []


async def test_a_read_that_is_not_answered_in_the_time_of_a_call_is_not_taken_for_the_call(opened, log):
    async with opened(call_timeout_seconds=1) as broker:
        session = broker.session(grants=[Grant("post.*")])
        await session.get_tool_details(["post.send_mail"])
        await session.call_directly("post.send_mail", {"to": "a", "text": "hang"})
        refused = await session.call_directly("post.send_mail", {"to": "b"})
        assert refused.failed is not None
        assert refused.failed.kind == "ToolUnavailableError"
        assert "Nothing was executed." in refused.failed.message
        assert [line for line in lines(log) if line.startswith("call")] == [
            'call send_mail {"to": "a", "text": "hang"}'
        ]


async def test_what_is_read_while_the_tools_are_listed_again_stays_described(opened, log):
    async with opened() as broker:
        session = broker.session(grants=[Grant("post.*")])
        await session.get_tool_details(["post.send_mail"])
        upstream = broker._upstreams.by_name["post"]
        before = upstream._tools.listing
        await session.call_directly("post.send_mail", {"to": "a", "text": "hold"})
        while lines(log).count("read send_mail") < 2:  # noqa: ASYNC110  # another process writes them
            await anyio.sleep(0.01)
        assert (await session.get_tool_details(["post.count_mails"])).described == ("post.count_mails",)
        while upstream._tools.listing is before:
            await anyio.lowlevel.checkpoint()
        assert all(map(session.is_described, broker.catalog.tools))
        assert session.lapsed == {}


async def test_what_a_read_leaves_to_the_next_is_read_then(opened, log):
    async with opened("short") as broker:
        session = broker.session(grants=[Grant("post.*")])
        details = await session.get_tool_details(["post.send_mail", "post.count_mails"])
        assert details.described == ("post.send_mail", "post.count_mails")
        assert "folder: str" in details.source
        assert (await session.call_directly("post.count_mails", {"folder": "a"})).failed is None
        assert lines(log) == ["read send_mail,count_mails", "read count_mails", 'call count_mails {"folder": "a"}']


async def test_a_script_whose_tools_cannot_be_described_now_is_answered_with_the_reason(opened):
    code = {"code": "from tools import post\nawait post.send_mail(to='a')"}
    begin = "The script was not started: these tools have not been described yet: post.send_mail (line 2). "
    async with opened("silent", DisclosureSettings(fetches_per_minute=1)) as broker:
        session = broker.session(grants=[Grant("post.*")])
        for why in (
            r"post does not describe it now: fetch it again in a moment\.",
            r"Too many descriptions were fetched; try again in \d+ s\.",
        ):
            reply = await session.dispatch("execute_code", code)
            assert reply.is_error
            assert re.search(re.escape(begin) + why, reply.text)


async def test_an_error_for_want_of_any_tools_is_no_definition(opened, log):
    async with opened("down") as broker:
        details = await broker.session().get_tool_details(["post.send_mail", "post.count_mails"])
        assert details.described == ("post.count_mails",)
        assert details.unavailable == {"post.send_mail": "post does not describe it now: fetch it again in a moment"}
        assert not broker.catalog.lookup("post.send_mail").is_complete
        assert lines(log) == ["read send_mail,count_mails"]


async def test_a_tool_that_changed_meanwhile_is_not_called_again(opened, log):
    async with opened() as broker:
        session = broker.session(grants=[Grant("post.*")])
        await session.get_tool_details(["post.send_mail"])
        await session.call_directly("post.send_mail", {"to": "a", "text": "change"})
        result = await session.call_directly("post.send_mail", {"to": "b"})
        assert result.failed is not None
        assert "has changed since it was described. Nothing was executed" in result.failed.message
        assert [line for line in lines(log) if line.startswith("call")] == [
            'call send_mail {"to": "a", "text": "change"}'
        ]
        while session.is_described(broker.catalog.lookup("post.send_mail")):
            await anyio.lowlevel.checkpoint()
        assert session.lapsed["post.send_mail"] == "changed: its description"


async def test_a_malformed_description_at_a_later_listing_does_not_end_the_connection(opened, log):
    async with opened() as broker:
        session = broker.session(grants=[Grant("post.*")])
        await session.get_tool_details(["post.send_mail"])
        await session.call_directly("post.send_mail", {"to": "a", "text": "break"})
        while lines(log).count("read send_mail") < 2:  # noqa: ASYNC110  # another process writes them
            await anyio.sleep(0.01)
        result = await session.call_directly("post.send_mail", {"to": "b"})
        assert result.failed is None
        await anyio.sleep(0.2)
        assert broker.server_statuses()[0].state == "ready"
        assert lines(log).count("read send_mail") == 2


async def test_descriptions_outlive_a_rest_of_the_server_and_its_calls_are_taken_again(opened, log):
    async with opened(lazy=True) as broker:
        session = broker.session(grants=[Grant("post.*")])
        await session.get_tool_details(["post.send_mail"])
        broker.rest_lazy_servers()
        result = await session.call_directly("post.send_mail", {"to": "a"})
        assert result.failed is None
        assert session.is_described(broker.catalog.lookup("post.send_mail"))
        assert lines(log) == ["read send_mail", "read send_mail", 'call send_mail {"to": "a"}']


async def test_a_tool_that_the_resource_does_not_know_is_as_it_was_listed(opened, log):
    async with opened("with_status") as broker:
        session = broker.session(grants=[Grant("post.*")])
        details = await session.get_tool_details(["post.status", "post.send_mail", "post.missing"])
        assert details.described == ("post.status", "post.send_mail")
        assert "deep: bool" in details.source
        result = await session.call_directly("post.status", {"deep": True})
        assert result.failed is None
        assert lines(log) == ["read status,send_mail", 'call status {"deep": true}']


async def test_a_tool_of_which_its_server_says_no_more_than_a_line_is_not_described(opened, log):
    async with opened("silent") as broker:
        session = broker.session(grants=[Grant("post.*")])
        details = await session.get_tool_details(["post.send_mail", "post.count_mails"])
        assert details.described == ("post.count_mails",)
        assert details.unavailable == {"post.send_mail": "post does not describe it now: fetch it again in a moment"}
        refused = await session.call_directly("post.send_mail", {"to": "a"})
        assert refused.record.status == "not_described"
        assert (await session.call_directly("post.count_mails", {})).failed is None
        assert lines(log) == ["read send_mail,count_mails", "call count_mails {}"]


NOT_LISTED = (
    "its resources could not be listed ({}), so it is not known whether it describes its tools in tool_descriptions; "
    "it is asked again when a tool without parameters is described"
)


async def test_malformed_resources_do_not_hide_that_a_server_describes_its_tools(opened, log):
    async with opened("odd_resources") as broker:
        assert broker.server_statuses()[0].warnings == ()
        session = broker.session(grants=[Grant("post.*")])
        assert "to: str" in (await session.get_tool_details(["post.send_mail"])).source
        assert (await session.call_directly("post.send_mail", {"to": "a"})).failed is None
        assert lines(log) == ["read send_mail", 'call send_mail {"to": "a"}']


async def test_a_server_that_did_not_list_its_resources_is_asked_again_when_a_tool_is_described(opened):
    async with opened("late") as broker:
        assert broker.server_statuses()[0].warnings == (NOT_LISTED.format("JSON-RPC error -32601"),)
        session = broker.session(grants=[Grant("post.*")])
        assert "to: str" in (await session.get_tool_details(["post.send_mail"])).source
        assert (await session.call_directly("post.send_mail", {"to": "a"})).failed is None
        while broker.server_statuses()[0].warnings:
            await anyio.lowlevel.checkpoint()
        assert not broker.catalog.lookup("post.count_mails").is_complete
        assert session.is_described(broker.catalog.lookup("post.send_mail"))


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("never", "JSON-RPC error -32601"),
        ("round", "the pages go round"),
        ("half_a_cursor", "the cursor of the next page cannot be sent back"),
    ],
)
async def test_a_server_that_never_lists_its_resources_is_known_by_its_description(opened, mode, why):
    async with opened(mode) as broker:
        assert broker.server_statuses()[0].warnings == (NOT_LISTED.format(why),)
        session = broker.session(grants=[Grant("post.*")])
        assert "to: str" in (await session.get_tool_details(["post.send_mail"])).source
        assert (await session.call_directly("post.send_mail", {"to": "a"})).failed is None


async def test_a_server_that_never_lists_its_resources_is_known_by_its_refusal_of_a_call(opened, log):
    async with opened("never_at_first") as broker:
        session = broker.session(grants=[Grant("post.*")])
        assert (await session.get_tool_details(["post.count_mails"])).described == ("post.count_mails",)
        refused = await session.call_directly("post.count_mails", {})
        assert refused.failed is not None
        assert "has changed since it was described. Nothing was executed" in refused.failed.message
        while session.is_described(broker.catalog.lookup("post.count_mails")):
            await anyio.lowlevel.checkpoint()
        assert session.lapsed["post.count_mails"] == "changed: its description, new parameter 'folder'"
        session = broker.session(grants=[Grant("post.*")])
        await session.get_tool_details(["post.count_mails"])
        assert (await session.call_directly("post.count_mails", {"folder": "a"})).failed is None
        assert [line for line in lines(log) if line.startswith("call")] == ['call count_mails {"folder": "a"}']


async def test_a_tool_with_parameters_is_whole_while_its_server_does_not_list_its_resources(opened):
    async with opened("never_with_status") as broker:
        assert broker.catalog.lookup("post.status").is_complete
        assert not broker.catalog.lookup("post.send_mail").is_complete


async def test_more_pages_of_resources_than_are_allowed_are_said(opened):
    async with opened("odd_resources", max_pages=1) as broker:
        why = "there are more than 1 pages; raise max_pages to look at the others"
        assert broker.server_statuses()[0].warnings == (NOT_LISTED.format(why),)


@pytest.mark.parametrize(
    ("answer", "wants"),
    [
        ({"isError": True, "structuredContent": {"error": {"code": "TOOL_DESCRIPTION_REQUIRED"}}}, True),
        ({"isError": True, "content": [{"type": "text", "text": '{"code": "TOOL_DESCRIPTION_REQUIRED"}'}]}, True),
        ({"isError": True, "content": [{"type": "text", "text": '{"error": "TOOL_DESCRIPTION_REQUIRED"}'}]}, True),
        ({"content": [{"type": "text", "text": '{"error": "TOOL_DESCRIPTION_REQUIRED"}'}]}, False),
        ({"isError": True, "content": [{"type": "text", "text": "TOOL_DESCRIPTION_REQUIRED"}]}, False),
        ({"isError": True, "content": [5, {"text": 5}, {"type": "text", "text": "{" * 9}]}, False),
        ({"isError": True, "content": "x"}, False),
        (["isError"], False),
    ],
)
async def test_only_the_code_of_an_error_says_that_nothing_was_executed(answer, wants):
    assert wants_description(answer) is wants
