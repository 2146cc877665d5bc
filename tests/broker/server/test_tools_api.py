"""The tiers over plain HTTP: what they answer, and whom."""

from __future__ import annotations

import re
import sys
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import httpx2
import pytest
from mcp.server import MCPServer

from broker import Broker, Config, ServerConfig
from broker.disclosure.settings import CategorySettings, DisclosureSettings
from broker.server import BrokerServer, ServeSettings
from broker.server.http import Address, http_app
from tests.loop_turns import counted_turns

pytestmark = pytest.mark.anyio

TOKEN = "0123456789abcdef" * 2
ADDRESS = Address("127.0.0.1", 8000)
DESCRIBED = Path(__file__).parents[1] / "servers" / "described.py"


@pytest.fixture
def reached(desk_server):
    """An HTTP client of the application, without a socket between them."""

    @asynccontextmanager
    async def reach(settings=None, **headers):
        with anyio.fail_after(60):
            async with Broker(servers={"desk": desk_server}, opens_sandbox=False) as broker:
                app = http_app(BrokerServer(broker, settings or ServeSettings()), ADDRESS)
                transport = httpx2.ASGITransport(app=app)
                base = "http://127.0.0.1:8000/api/v1/tools"
                async with httpx2.AsyncClient(transport=transport, base_url=base, headers=headers) as client:
                    yield client

    return reach


async def test_each_tier_has_a_path(reached):
    async with reached() as client:
        hot = await client.get("/hot")
        assert [tool["name"] for tool in hot.json()["tools"]] == ["desk.add", "desk.fail", "desk.wait"]
        assert int(hot.headers["tokens"]) <= int(hot.headers["token-budget"]) == 2_000
        [category] = (await client.get("/categories")).json()["categories"]
        assert (category["name"], category["about"], category["tools"]) == ("desk", "Tools of desk", 3)
        page = (await client.get("/category/desk?page=2&page_size=1")).json()
        assert [tool["name"] for tool in page["tools"]] == ["desk.fail"]
        following = (await client.get("/category/desk", params={"cursor": page["next_cursor"]})).json()
        assert [tool["name"] for tool in following["tools"]] == ["desk.wait"]
        assert (await client.get("/desk/add")).json()["inputSchema"]["required"] == ["a"]


@pytest.fixture
def large_tools():
    """A server of 29 tools with 20 parameters each, of which a page of summaries does not hold all."""
    server = MCPServer("large")
    parameters = ", ".join(f"{'parcel_of_a_customer_' * 2}kept_in_store_{number}: str = ''" for number in range(20))
    made: dict[str, Any] = {}
    exec(f"def tool({parameters}) -> str:\n    'Does it.'\n    return ''", made)  # noqa: S102
    for number in range(29):
        server.add_tool(made["tool"], name=f"tool_{number:02}")
    return server


@pytest.mark.parametrize("page_size", ["", "&page_size=50", "&page_size=7"])
async def test_numbered_pages_of_a_category_have_each_of_its_tools(large_tools, page_size):
    async with Broker(servers={"large": large_tools}, opens_sandbox=False) as broker:
        app = http_app(BrokerServer(broker, ServeSettings()), ADDRESS)
        base = "http://127.0.0.1:8000/api/v1/tools"
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=base) as client:
            pages: list[dict[str, Any]] = []
            while not pages or pages[-1]["tools"]:
                answer = await client.get(f"/category/large?page={len(pages) + 1}{page_size}")
                assert int(answer.headers["tokens"]) <= int(answer.headers["token-budget"])
                pages.append(answer.json())
    assert len(pages[0]["tools"]) < 29
    shown = [tool["name"] for page in pages for tool in page["tools"]]
    assert shown == [f"large.tool_{number:02}" for number in range(29)]
    assert {page["total"] for page in pages} == {29}
    assert [page["next_cursor"] is None for page in pages[:-1]] == [*[False] * (len(pages) - 2), True]


async def test_others_have_turns_while_the_pages_before_a_numbered_one_are_measured(desk_server):
    config = Config(disclosure=DisclosureSettings(categories={"all": CategorySettings(tools=("*",))}))

    async with Broker(config, servers={"desk": desk_server}, opens_sandbox=False) as broker:
        one = broker.catalog.lookup("desk.add").spec
        broker.catalog.replace("desk", [replace(one, name=f"add_{number:04}") for number in range(5_000)])
        app = http_app(BrokerServer(broker, ServeSettings()), ADDRESS)
        base = "http://127.0.0.1:8000/api/v1/tools"
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=base) as client:
            await client.get("/category/all")
            async with counted_turns() as turns:
                deep = await client.get("/category/all?page=90&page_size=50")
        assert turns.count > 20  # a turn a millisecond; an answer alone is one of a few
        assert deep.json() == broker.tiers.summaries("all", page=90, page_size=50).to_json()
        assert len(deep.json()["tools"]) == 50


@pytest.mark.parametrize("path", ["/desk", "/category"])
async def test_a_definition_says_its_tokens_and_one_larger_than_a_page_is_only_named(desk_server, named_category, path):
    for server in (desk_server, named_category):
        server.add_tool(lambda: 1, name="huge", description="Keeps words. " + "Word. " * 30_000)
    servers = {"desk": desk_server, "category": named_category}
    async with Broker(servers=servers, opens_sandbox=False) as broker:
        app = http_app(BrokerServer(broker, ServeSettings()), ADDRESS)
        base = f"http://127.0.0.1:8000/api/v1/tools{path}"
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=base) as client:
            whole, huge = await client.get("/add"), await client.get("/huge")
        counter = broker.tiers.counter
    for answer in (whole, huge):
        assert answer.headers["token-counter"] == counter.name
        assert int(answer.headers["tokens"]) == counter.count(answer.text) < int(answer.headers["token-budget"])
        assert answer.headers["token-budget"] == "12000"
    assert "inputSchema" in whole.json()
    named = huge.json()
    assert (huge.status_code, named["name"], named["about"]) == (200, f"{path[1:]}.huge", "Keeps words.")
    assert re.fullmatch(
        r"Its full definition has \d{5} tokens and was left out; get_tool_details fetches it\.", named["note"]
    )


async def test_servers_that_are_starting_are_waited_for():
    begun = anyio.Event()

    @asynccontextmanager
    async def starting(_server):
        await begun.wait()
        yield

    slow = MCPServer("slow", lifespan=starting)
    slow.add_tool(lambda: 1, name="one")
    pages = []

    async def ask(client):
        pages.append((await client.get("/hot")).json())

    with anyio.fail_after(60):
        async with Broker(servers={"slow": slow}, opens_sandbox=False, startup_seconds=0) as broker:
            app = http_app(BrokerServer(broker, ServeSettings()), ADDRESS)
            base = "http://127.0.0.1:8000/api/v1/tools"
            async with (
                httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=base) as client,
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(ask, client)
                await anyio.wait_all_tasks_blocked()
                begun.set()
    assert [tool["name"] for tool in pages[0]["tools"]] == ["slow.one"]


async def test_a_category_of_a_server_that_is_asleep_is_listed_and_connects_it_when_it_is_read():
    def lazy(*args):
        return ServerConfig(command=sys.executable, args=tuple(map(str, args)), lazy=True, group=f"of {args[0].stem}")

    servers = {"mail": lazy(DESCRIBED), "gone": lazy(DESCRIBED.with_name("faulty.py"), "exits")}
    with anyio.fail_after(60):
        async with Broker(Config(servers=servers), opens_sandbox=False) as broker:
            app = http_app(BrokerServer(broker, ServeSettings()), ADDRESS)
            base = "http://127.0.0.1:8000/api/v1/tools"
            async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=base) as client:
                listed = (await client.get("/categories")).json()["categories"]
                assert [(one["name"], one["tools"], one["asleep"]) for one in listed] == [
                    ("of described", 0, "mail"),
                    ("of faulty", 0, "gone"),
                ]
                page = (await client.get("/category/of described")).json()
                assert [tool["name"] for tool in page["tools"]] == ["mail.count_mails", "mail.send_mail"]
                assert "asleep" not in (await client.get("/categories")).json()["categories"][0]
                down = await client.get("/category/of faulty")
                assert (down.status_code, "it exited with code 3" in down.json()["error"]) == (503, True)
                assert (await client.get("/category/of nobody")).status_code == 404


@pytest.fixture
def named_category():
    server = MCPServer("category")

    @server.tool()
    def add(a: int) -> int:
        """Adds nothing."""
        return a

    server.add_tool(add, name="desk")
    return server


async def test_the_tools_of_a_server_called_category_can_be_read(desk_server, named_category):
    servers = {"desk": desk_server, "category": named_category}
    async with Broker(servers=servers, opens_sandbox=False) as broker:
        app = http_app(BrokerServer(broker, ServeSettings()), ADDRESS)
        base = "http://127.0.0.1:8000/api/v1/tools/category"
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=base) as client:
            assert (await client.get("/add")).json()["name"] == "category.add"
            assert (await client.get("/desk")).json()["tier"] == "summaries"
            assert (await client.get("/category.desk")).json()["name"] == "category.desk"
            assert (await client.get("/category")).json()["total"] == 2
            for path in ("/desk.add", "/none"):
                assert (await client.get(path)).status_code == 404


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/category/dsek", 404, "There is no category 'dsek'. Did you mean desk?"),
        ("/category/desk?page=0", 400, "The page 0 cannot be used. Give a whole number from 1 to 1000000."),
        ("/category/desk?page=-1", 400, "The page '-1' cannot be used. Give a whole number from 1 to 1000000."),
        ("/category/desk?page_size=x", 400, "The page_size 'x' cannot be used. Give a whole number from 1 to 500."),
        ("/hot?cursor=x", 400, "The cursor cannot be read."),
        ("/hot/", 404, "There is nothing at this path. Write it without the slash at its end."),
        ("/desk/", 404, "There is nothing at this path. Name a tool, as in /api/v1/tools/SERVER/TOOL."),
        ("/desk/ad", 404, "There is no tool 'desk.ad'. Did you mean desk.add"),
    ],
)
async def test_what_is_not_there_is_said(reached, path, status, said):
    async with reached() as client:
        answer = await client.get(path)
        assert answer.status_code == status
        assert answer.json()["error"].startswith(said)


@pytest.fixture
def reached_servers():
    """An HTTP client of the application over configured servers."""

    @asynccontextmanager
    async def reach(**servers: ServerConfig):
        with anyio.fail_after(60):
            async with Broker(Config(servers=servers), opens_sandbox=False) as broker:
                app = http_app(BrokerServer(broker, ServeSettings()), ADDRESS)
                transport = httpx2.ASGITransport(app=app)
                base = "http://127.0.0.1:8000/api/v1/tools"
                async with httpx2.AsyncClient(transport=transport, base_url=base) as client:
                    yield client

    return reach


def described(mode: str) -> ServerConfig:
    return ServerConfig(command=sys.executable, args=("-I", str(DESCRIBED), mode), mode="legacy")


async def test_one_tool_is_read_as_a_whole_from_a_server_that_lists_lines(reached_servers):
    async with reached_servers(post=described("plain"), category=described("plain")) as client:
        for path in ("/post/send_mail", "/category/send_mail"):
            answer = await client.get(path)
            assert answer.json()["inputSchema"]["required"] == ["to"]
            assert "A mail to nobody is an error." in answer.json()["description"]


async def test_a_line_is_no_answer_where_a_server_does_not_describe_the_tool(reached_servers):
    async with reached_servers(post=described("silent")) as client:
        answer = await client.get("/post/send_mail")
        assert (answer.status_code, answer.json()) == (
            503,
            {"error": "post does not describe it now: fetch it again in a moment."},
        )


@pytest.mark.parametrize("is_lazy", [False, True])
async def test_a_server_that_is_down_is_said_to_be(reached_servers, is_lazy):
    gone = ServerConfig(command="/no/such/program", lazy=is_lazy)
    async with reached_servers(gone=gone, category=gone) as client:
        for path, server in (("/gone/x", "gone"), ("/category/x", "category")):
            answer = await client.get(path)
            assert answer.status_code == 503
            assert answer.json()["error"].startswith(f"{server} is not available: ")
            assert "/no/such" not in answer.json()["error"]


async def test_a_server_that_is_asleep_is_connected_for_a_tool_of_it(reached_servers, faulty):
    lazy = faulty("plain", lazy=True)
    async with reached_servers(zoo=lazy, category=lazy) as client:
        assert (await client.get("/zoo/echo")).json()["name"] == "zoo.echo"
        assert (await client.get("/category/category.echo")).json()["name"] == "category.echo"
        for path in ("/zoo/ech", "/category/ech", "/zo/echo"):
            assert (await client.get(path)).status_code == 404


async def test_only_reading_is_possible(reached):
    async with reached() as client:
        assert (await client.post("/hot")).status_code == 405


@pytest.mark.parametrize("path", ["/hot", "/categories", "/category/desk", "/desk/add", "/desk/none"])
async def test_a_token_is_asked_for_where_the_server_has_tokens(reached, path):
    settings = ServeSettings(tokens={"one": TOKEN})
    async with reached(settings) as client:
        assert (await client.get(path)).status_code == 401
    async with reached(settings, authorization=f"Bearer {TOKEN}x") as client:
        assert (await client.get(path)).status_code == 401
    async with reached(settings, authorization=f"Bearer {TOKEN}") as client:
        assert (await client.get(path)).status_code == (404 if path.endswith("none") else 200)


TOKENS = {"ada": "a" * 32, "bob": "b" * 32}


@pytest.fixture
def limited(desk_server, named_category):
    """What an HTTP client of the application with two fetches a minute is answered, as the holder of a token."""

    @asynccontextmanager
    async def reach():
        config = Config(disclosure=DisclosureSettings(fetches_per_minute=2))
        servers = {"desk": desk_server, "category": named_category}
        with anyio.fail_after(60):
            async with Broker(config, servers=servers, opens_sandbox=False) as broker:
                server = BrokerServer(broker, ServeSettings(tokens=TOKENS))
                transport = httpx2.ASGITransport(app=http_app(server, ADDRESS))
                base = "http://127.0.0.1:8000/api/v1/tools"
                async with httpx2.AsyncClient(transport=transport, base_url=base) as client:

                    async def get(path, name="ada"):
                        return await client.get(path, headers={"authorization": f"Bearer {TOKENS[name]}"})

                    yield get

    return reach


@pytest.mark.parametrize("path", ["/desk/add", "/category/add"])
async def test_a_definition_takes_from_the_fetches_of_its_caller_and_a_page_does_not(limited, path):
    async with limited() as get:
        assert [(await get("/desk/add")).status_code for _ in range(2)] == [200, 200]
        refused = await get(path)
        assert refused.status_code == 429
        assert 1 <= int(refused.headers["retry-after"]) <= 30
        seconds = refused.headers["retry-after"]
        assert refused.json() == {"error": f"Too many descriptions were fetched; try again in {seconds} s."}
        for page in ("/hot", "/categories", "/category/desk"):
            assert (await get(page)).status_code == 200
        assert (await get(path, "bob")).status_code == 200


async def test_a_page_of_another_site_cannot_read_the_tools(reached):
    async with reached(host="evil.example:8000") as client:
        assert (await client.get("/hot")).status_code == 421
    async with reached(origin="https://evil.example") as client:
        assert (await client.get("/hot")).status_code == 403
