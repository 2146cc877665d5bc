"""Where tokens, codes and secrets of an authorization server go while its metadata is not to be had."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import parse_qs

import anyio
import httpx2
import pytest
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from broker.errors import LoginError
from broker.upstreams.kept_tokens import KeptTokens
from broker.upstreams.login import login
from broker.upstreams.oauth import authentication
from broker.upstreams.oauth_settings import OAuthClient
from broker.upstreams.server_config import ServerConfig
from tests.http_apps import bound_socket, serving, url_of

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("own_folder")]

NEW = "new-access-token"
METADATA = "/.well-known/oauth-authorization-server"


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """The HTTP servers need asyncio."""
    return request.param


class Site:
    """An MCP server and an authorization server at one address, of which either may be used; `posted` is what it got.

    Attributes:
        issuer: The authorization server that the MCP server names; none for one that is as of 2025-03-26.
        status: How its own metadata is answered.
    """

    def __init__(self):
        self.socket = bound_socket()
        self.url = url_of(self.socket)
        self.issuer, self.status = "", 200
        self.posted = []
        self.app = Starlette(
            routes=[
                Route("/mcp", self.guarded, methods=["GET", "POST"]),
                Route("/.well-known/oauth-protected-resource", self.resource),
                Route(METADATA, self.metadata),
                Route("/authorize", self.authorize),
                Route("/{kind:str}", self.post, methods=["POST"]),
            ]
        )

    def guarded(self, request):
        return Response(status_code=200 if request.headers.get("authorization") == f"Bearer {NEW}" else 401)

    def resource(self, _request):
        named = {"resource": f"{self.url}/mcp", "authorization_servers": [self.issuer]}
        return JSONResponse(named, 200 if self.issuer else 404)

    def metadata(self, _request):
        places = {"authorization_endpoint": f"{self.url}/authorize", "token_endpoint": f"{self.url}/token"}
        return JSONResponse({"issuer": self.url, **places}, self.status)

    def authorize(self, request):
        asked = request.query_params
        return RedirectResponse(f"{asked['redirect_uri']}?code=c&state={asked['state']}")

    async def post(self, request):
        self.posted.append((request.path_params["kind"], parse_qs((await request.body()).decode())))
        return JSONResponse({"access_token": NEW, "token_type": "Bearer"})


@asynccontextmanager
async def sites():
    upstream, issuer = Site(), Site()
    upstream.issuer = issuer.url
    with anyio.fail_after(60):
        async with serving(upstream.app, upstream.socket), serving(issuer.app, issuer.socket):
            yield upstream, issuer


async def refresh(upstream, issuer_url):
    """Ask with tokens of an authorization server that the upstream does not take any more; return its answer."""
    settings = ServerConfig(url=f"{upstream.url}/mcp", oauth=OAuthClient())
    kept = KeptTokens(settings.url or "", client=settings.oauth)
    await kept.set_client_info(OAuthClientInformationFull(client_id="ours", issuer=issuer_url))
    await kept.set_tokens(OAuthToken(access_token="old-access-token", refresh_token="refresh-token"))  # noqa: S106
    async with httpx2.AsyncClient() as http:
        http.auth = await authentication(settings, partial(http.send, auth=None))
        return await http.get(settings.url or "")


def grants(site):
    return [(kind, form["grant_type"]) for kind, form in site.posted]


async def test_an_authorization_server_is_given_its_refresh_token():
    async with sites() as (upstream, issuer):
        assert (await refresh(upstream, issuer.url)).status_code == 200
    assert (grants(upstream), grants(issuer)) == ([], [("token", ["refresh_token"])])


@pytest.mark.parametrize("status", [404, 503])
async def test_while_its_metadata_is_away_nobody_else_is_given_its_refresh_token(status):
    async with sites() as (upstream, issuer):
        issuer.status = status
        with pytest.raises(LoginError, match="the metadata of its authorization server cannot be had"):
            await refresh(upstream, issuer.url)
        assert (upstream.posted, issuer.posted) == ([], [])
        issuer.status = 200
        assert (await refresh(upstream, issuer.url)).status_code == 200


async def test_a_server_that_is_its_own_authorization_server_needs_no_metadata():
    async with sites() as (upstream, _):
        upstream.issuer, upstream.status = "", 404
        assert (await refresh(upstream, upstream.url)).status_code == 200
    assert grants(upstream) == [("token", ["refresh_token"])]


@pytest.mark.parametrize("status", [200, 404, 503])
async def test_a_login_sends_person_code_and_secret_to_the_authorization_server_alone(status):
    shown = []
    async with sites() as (upstream, issuer), anyio.create_task_group() as tasks:
        issuer.status = status

        async def visit(url):
            async with httpx2.AsyncClient(follow_redirects=True) as browser:
                await browser.get(url)

        def show(url):
            shown.append(url.partition("/authorize")[0])
            tasks.start_soon(visit, url)

        own = OAuthClient(client_id="ours", client_secret="client-secret-1")  # noqa: S106  # of the test
        problem = ""
        try:
            await login(ServerConfig(url=f"{upstream.url}/mcp", oauth=own), show)
        except LoginError as error:
            problem = str(error)
    assert upstream.posted == []
    if status == 200:
        assert (shown, grants(issuer)) == ([issuer.url], [("token", ["authorization_code"])])
    else:
        assert (shown, issuer.posted) == ([], [])
        assert problem.startswith(f"the login failed: its OAuth metadata at {issuer.url}/.well-known/o")
        assert problem.endswith(f"answered HTTP {status}")
