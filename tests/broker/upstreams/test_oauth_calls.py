"""Calls to servers that want tokens: beside each other, while new tokens are fetched, and when none come."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio
import pytest
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from broker import ServerConfig
from broker.errors import CallTimeoutError, UnavailableError
from broker.texts.call_texts import refused_by_http
from broker.upstreams.kept_tokens import KeptTokens
from broker.upstreams.oauth_settings import OAuthClient
from tests.http_apps import bound_socket, serving, url_of

from .test_http_answers import HONEST
from .test_http_answers_2026 import DISCOVERED, LISTED

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("own_folder", "deadline")]

ACCOUNT = {"grant": "client_credentials", "client_id": "ours", "client_secret": "client-secret-1"}
RESULTS = HONEST | {"server/discover": DISCOVERED, "tools/list": LISTED}
GRANTS: dict[str, dict[str, str]] = {"a login": {}, "an account": ACCOUNT}


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """The HTTP servers need asyncio."""
    return request.param


class Site:
    """An MCP server of both eras that is its own authorization server, and answers calls and tokens when it is let.

    Attributes:
        good: The one access token that it takes.
        granted: How many it has given.
        open: Calls that wait for `answers`; `most_open` is the most at once, `executed` all so far.
        tokens: Set while it gives tokens.
        drips: Whether it begins an answer instead, and goes on with it until then.
    """

    def __init__(self):
        self.socket = bound_socket()
        self.url = url_of(self.socket)
        self.good, self.granted, self.executed, self.open, self.most_open = "access-token-0", 0, 0, 0, 0
        self.answers, self.tokens, self.was_asked = anyio.Event(), anyio.Event(), anyio.Event()
        self.tokens.set()
        self.drips = False
        self.app = Starlette(
            routes=[
                Route("/mcp", self.mcp, methods=["POST"]),
                Route("/.well-known/oauth-protected-resource/mcp", self.resource),
                Route("/.well-known/oauth-authorization-server", self.metadata),
                Route("/token", self.token, methods=["POST"]),
            ]
        )

    def resource(self, _request):
        return JSONResponse({"resource": f"{self.url}/mcp", "authorization_servers": [self.url]})

    def metadata(self, _request):
        places = {"authorization_endpoint": f"{self.url}/authorize", "token_endpoint": f"{self.url}/token"}
        return JSONResponse({"issuer": self.url, **places})

    async def token(self, _request):
        self.was_asked.set()
        if self.drips:
            return StreamingResponse(self.drops())
        await self.tokens.wait()
        self.granted += 1
        self.good = f"access-token-{self.granted}"
        return JSONResponse({"access_token": self.good, "token_type": "Bearer", "refresh_token": "refresh-token"})

    async def drops(self):
        while not self.tokens.is_set():
            yield b" "
            await anyio.sleep(0.1)

    async def mcp(self, request):
        if request.headers.get("authorization") != f"Bearer {self.good}":
            return Response(status_code=401, headers={"WWW-Authenticate": "Bearer"})
        message = await request.json()
        if message["method"] not in RESULTS:
            return Response(status_code=202)
        if message["method"] == "tools/call":
            self.executed += 1
            self.open += 1
            self.most_open = max(self.most_open, self.open)
            await self.answers.wait()
            self.open -= 1
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": RESULTS[message["method"]]})

    async def until_open(self, count):
        while self.open < count:  # noqa: ASYNC110  # what the server sees, as it comes
            await anyio.sleep(0.01)


@asynccontextmanager
async def a_site(grant, **settings):
    """A site, the config of an upstream that has tokens for it, and where these are kept."""
    site = Site()
    oauth = OAuthClient.model_validate({**grant, "issuer": site.url} if grant else grant)
    url = f"{site.url}/mcp"
    kept = KeptTokens(url, client=oauth)
    await kept.set_client_info(OAuthClientInformationFull(client_id="ours", issuer=site.url))
    await kept.set_tokens(OAuthToken(access_token=site.good, refresh_token="refresh-token"))  # noqa: S106  # of the test
    async with serving(site.app, site.socket):
        yield site, ServerConfig(url=url, oauth=oauth, **({"mode": "legacy"} | settings)), kept


@asynccontextmanager
async def logged_in(running, grant, **settings):
    """A site in the hands of an upstream that has tokens for it."""
    async with a_site(grant, **settings) as (site, config, _), running(config) as upstream:
        assert upstream.status.problem is None
        yield site, upstream
        site.answers.set()
        site.tokens.set()


@pytest.mark.parametrize("grant", GRANTS)
async def test_calls_with_a_token_do_not_wait_for_each_other(running, grant):
    async with logged_in(running, GRANTS[grant]) as (site, upstream), anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(upstream.call_tool, "do", {})
        await site.until_open(5)
        site.answers.set()
    assert (site.executed, site.most_open) == (5, 5)


@pytest.mark.parametrize("grant", GRANTS)
async def test_calls_whose_token_is_over_get_one_new_token_together(running, grant):
    async with logged_in(running, GRANTS[grant]) as (site, upstream), anyio.create_task_group() as tasks:
        granted, site.good = site.granted, "another-token"
        for _ in range(5):
            tasks.start_soon(upstream.call_tool, "do", {})
        await site.until_open(5)
        site.answers.set()
    assert (site.executed, site.granted) == (5, granted + 1)


async def test_a_call_that_is_answered_is_not_held_up_by_one_that_waits_for_a_token(running):
    async with logged_in(running, {}) as (site, upstream), anyio.create_task_group() as tasks:
        results = []

        async def call():
            results.append(await upstream.call_tool("do", {}))

        tasks.start_soon(call)
        await site.until_open(1)
        site.good, site.tokens = "another-token", anyio.Event()
        tasks.start_soon(call)
        await site.was_asked.wait()
        site.answers.set()
        while not results:  # noqa: ASYNC110  # what comes back, as it comes
            await anyio.sleep(0.01)
        site.tokens.set()
    assert len(results) == 2


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_call_that_was_refused_is_not_executed_when_its_token_comes_too_late_and_the_next_one_has_that(
    running, mode
):
    async with logged_in(running, {}, mode=mode, call_timeout_seconds=3) as (site, upstream):
        site.good, site.tokens = "another-token", anyio.Event()
        with pytest.raises(UnavailableError) as failed:
            await upstream.call_tool("do", {})
        assert str(failed.value) == refused_by_http("faulty", 401, 3)
        site.tokens.set()
        while not site.granted:  # noqa: ASYNC110  # what the server sees, as it comes
            await anyio.sleep(0.01)
        site.answers.set()
        assert (await upstream.call_tool("do", {})) == HONEST["tools/call"]
    assert (site.executed, site.granted) == (1, 1)  # a refresh token may be good for one use


async def test_a_call_that_was_let_in_with_a_new_token_and_not_answered_may_have_acted(running):
    async with logged_in(running, {}, call_timeout_seconds=3) as (site, upstream):
        site.good = "another-token"
        with pytest.raises(CallTimeoutError, match="the server may have acted"):
            await upstream.call_tool("do", {})
    assert site.executed == 1


@pytest.mark.parametrize("drips", [False, True])
async def test_an_authorization_server_that_hangs_holds_up_nobody_for_long(running, drips):
    async with logged_in(running, {}, connect_timeout_seconds=5) as (site, upstream):
        site.good, site.tokens, site.drips = "another-token", anyio.Event(), drips
        with pytest.raises(UnavailableError) as failed:
            await upstream.call_tool("do", {})
    assert str(failed.value) == refused_by_http("faulty", 401)


async def test_tokens_that_are_on_their_way_are_kept_when_the_broker_ends(running):
    async with a_site({}) as (site, config, kept):
        with anyio.CancelScope() as ending:
            async with running(config) as upstream, anyio.create_task_group() as tasks:
                site.good, site.tokens = "another-token", anyio.Event()
                tasks.start_soon(upstream.call_tool, "do", {})
                await site.was_asked.wait()
                ending.cancel()
                site.tokens.set()
        tokens = await kept.get_tokens()
    assert (site.granted, tokens and tokens.access_token) == (1, site.good)
