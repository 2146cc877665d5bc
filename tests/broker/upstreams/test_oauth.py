"""OAuth against the SDK's own authorization server: a login with a redirect, and tokens that are kept."""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import pytest
from mcp.server import MCPServer
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl, AnyUrl
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from broker import Broker, Config, ConfigError, Grant
from broker.errors import LoginError
from broker.upstreams.kept_tokens import KeptTokens
from broker.upstreams.login import login
from broker.upstreams.oauth import authentication
from broker.upstreams.oauth_settings import OAuthClient
from broker.upstreams.server_config import ServerConfig
from tests.broker.server.issuing import code_for
from tests.http_apps import bound_socket, serving, url_of

TOKEN = "access-token-of-the-tests"  # noqa: S105  # of a server in this process

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("own_folder")]


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """The HTTP server needs asyncio."""
    return request.param


class Issuer(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Gives everybody a code at once, and one token."""

    def __init__(self):
        self.clients = {}
        self.codes = {}
        self.refuses = False

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        if self.refuses:
            return construct_redirect_uri(str(params.redirect_uri), error="access_denied", state=params.state)
        code = code_for(client, params)
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, _client, authorization_code):
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, _client, _authorization_code):
        return OAuthToken(access_token=TOKEN, token_type="Bearer", expires_in=3600)  # noqa: S106  # a word of OAuth

    async def load_refresh_token(self, _client, _refresh_token):
        return None

    async def exchange_refresh_token(self, _client, _refresh_token, _scopes):
        raise NotImplementedError

    async def revoke_token(self, _token):
        raise NotImplementedError

    async def load_access_token(self, token):
        return AccessToken(token=token, client_id="any", scopes=[]) if token == TOKEN else None


@asynccontextmanager
async def guarded(issuer, scopes=(), *, registers=True):
    sock = bound_socket()
    base = url_of(sock)
    server = MCPServer(
        "web",
        auth_server_provider=issuer,
        auth=AuthSettings(
            issuer_url=AnyHttpUrl(base),
            validate_token_resource=False,
            resource_server_url=AnyHttpUrl(f"{base}/mcp"),
            client_registration_options=ClientRegistrationOptions(enabled=registers),
            required_scopes=list(scopes),
        ),
    )

    @server.tool(structured_output=False)
    def tell() -> str:
        """Tells the token it was called with."""
        return f"your token is {TOKEN}"

    with anyio.fail_after(60):
        async with serving(server.streamable_http_app(), sock):
            yield ServerConfig(url=f"{base}/mcp", oauth=OAuthClient(), connect_timeout_seconds=20)


@asynccontextmanager
async def browser():
    """Follows what it is shown, as a person's browser would."""
    async with anyio.create_task_group() as tasks:

        async def visit(url):
            async with httpx2.AsyncClient(follow_redirects=True) as client:
                await client.get(url)

        yield lambda url: tasks.start_soon(visit, url)


async def test_after_a_login_calls_carry_the_token_and_nothing_else_does(own_folder):
    script = "from tools import web\nawait web.tell()"
    async with guarded(Issuer()) as settings, browser() as show:
        await login(settings, show)
        async with Broker(Config(servers={"web": settings})) as broker:
            assert broker.server_statuses()[0].problem is None
            result = await broker.session(grants=[Grant("*")]).execute_code(script, describe_references=True)
    assert result.value == "your token is [redacted]"
    [kept] = (own_folder / "tokens").iterdir()
    assert json.loads(kept.read_text())["tokens"]["access_token"] == TOKEN
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)


class RefreshingIssuer(Issuer):
    """Gives refresh tokens too."""

    async def exchange_authorization_code(self, client, authorization_code):
        token = await super().exchange_authorization_code(client, authorization_code)
        return token.model_copy(update={"refresh_token": "refresh-token-of-the-tests"})


CLIENT_SECRET = "client-secret-of-the-tests"  # noqa: S105  # as above


@pytest.mark.parametrize("is_configured", [False, True])
async def test_another_authorization_server_gets_neither_tokens_nor_the_clients_secret(is_configured):
    issuer, seen = RefreshingIssuer(), []
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = OAuthClient()
    if is_configured:
        own = OAuthClient(client_id="ours", client_secret=CLIENT_SECRET, redirect_port=port)
        issuer.clients["ours"] = OAuthClientInformationFull(
            client_id="ours",
            client_secret=CLIENT_SECRET,
            redirect_uris=[AnyUrl(f"http://127.0.0.1:{port}/callback")],
            token_endpoint_auth_method="client_secret_basic",  # noqa: S106  # a word of OAuth
        )
    async with guarded(issuer) as served, browser() as show:
        settings = served.model_copy(update={"oauth": own})
        await login(settings, show)
    base = (settings.url or "").removesuffix("/mcp")
    metadata = {"resource": settings.url, "authorization_servers": ["https://evil.example"]}
    evil = "https://evil.example"
    answers = {
        f"{base}/prm": httpx2.Response(200, json=metadata),
        f"{evil}/.well-known/oauth-authorization-server": httpx2.Response(
            200,
            json={
                "issuer": evil,
                "authorization_endpoint": f"{evil}/authorize",
                "token_endpoint": f"{evil}/token",
                "registration_endpoint": f"{evil}/register",
            },
        ),
        f"{evil}/register": httpx2.Response(
            201, json={"client_id": "theirs", "redirect_uris": ["http://127.0.0.1/callback"]}
        ),
        f"{evil}/token": httpx2.Response(200, json={"access_token": "x", "token_type": "Bearer"}),
    }

    async def answer(request):
        if request.url.host == "evil.example":
            seen.append(f"{request.url} {dict(request.headers)} {request.content.decode()}")
        challenge = {"WWW-Authenticate": f'Bearer resource_metadata="{base}/prm"'}
        return answers.get(str(request.url), httpx2.Response(401, headers=challenge))

    for _ in range(2):  # what was registered there is no way to them later either
        storage = KeptTokens(settings.url or "", client=own)
        kept, client = await storage.get_tokens(), await storage.get_client_info()
        assert kept is not None
        assert client is not None
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as http:
            http.auth = await authentication(settings, partial(http.send, auth=None))
            with pytest.raises(LoginError, match="it wants a login"):
                await http.get(settings.url or "")
            # Somebody logs in again, while a connection is open that has registered there.
            await storage.set_client_info(client)
            await storage.set_tokens(kept)
            with pytest.raises(LoginError, match="it wants a login"):
                await http.get(settings.url or "")
    assert any(f"{evil}/register" in line for line in seen)
    assert not [line for line in seen if f"{evil}/token" in line]
    assert not [line for line in seen if "refresh-token-of-the-tests" in line or CLIENT_SECRET in line]


async def test_without_a_login_the_server_is_down_and_says_what_to_do():
    async with guarded(Issuer()) as settings, Broker(Config(servers={"web": settings})) as broker:
        status = broker.server_statuses()[0]
    assert (status.problem, status.what_to_do) == (
        "it wants a login",
        "Log in with `codemode mcp login web`.",
    )


async def test_a_login_that_is_refused_is_explained_and_keeps_nothing():
    issuer = Issuer()
    issuer.refuses = True
    async with guarded(issuer) as settings, browser() as show:
        with pytest.raises(LoginError, match="the authorization server refused: access_denied"):
            await login(settings, show)
        assert await KeptTokens(settings.url or "").get_tokens() is None


async def test_a_login_that_fails_leaves_what_an_earlier_one_gave():
    issuer = Issuer()
    async with guarded(issuer) as settings, browser() as show:
        await login(settings, show)
        issuer.refuses = True
        with pytest.raises(LoginError, match="access_denied"):
            await login(settings, show)
        async with Broker(Config(servers={"web": settings})) as broker:
            assert broker.server_statuses()[0].problem is None


@pytest.mark.parametrize("registers", [False, True])
async def test_a_login_says_whether_the_client_or_its_token_was_refused(registers):
    class Forgetful(Issuer):
        async def load_authorization_code(self, _client, _authorization_code):
            return None

    said = "gave no token after the login. Log in again" if registers else "does not register the broker as a client"
    async with guarded(Forgetful(), registers=registers) as settings, browser() as show:
        with pytest.raises(LoginError, match=f"the login failed: its authorization server {said}"):
            await login(settings, show)


async def test_a_login_asks_for_the_scopes_of_the_config_and_no_others():
    shown = []
    async with guarded(Issuer(), ["more"]) as settings:

        def show(url):
            shown.append(url)
            raise LoginError("shown")

        with pytest.raises(LoginError, match="shown"):
            await login(settings.model_copy(update={"oauth": OAuthClient(scopes=("less", "least"))}), show)
    assert [parse_qs(urlsplit(url).query)["scope"] for url in shown] == [["less least"]]


class SteppingIssuer(Issuer):
    """Gives the first time a token that is good for nothing."""

    given = 0

    async def exchange_authorization_code(self, client, authorization_code):
        self.given += 1
        token = await super().exchange_authorization_code(client, authorization_code)
        return token if self.given > 1 else token.model_copy(update={"access_token": "token-without-scopes"})

    async def load_access_token(self, token):
        return AccessToken(token=token, client_id="any", scopes=["more"] if token == TOKEN else [])


async def test_a_server_that_wants_more_scopes_after_a_login_gets_a_second_one():
    shown, issuer = [], SteppingIssuer()
    async with guarded(issuer, ["more"]) as settings, browser() as show:

        def note_and_show(url):
            shown.append(url)
            show(url)

        await login(settings, note_and_show)
        tokens = await KeptTokens(settings.url or "").get_tokens()
    assert tokens is not None
    assert (tokens.access_token, len(shown), issuer.given) == (TOKEN, 2, 2)


class DistrustedIssuer(Issuer):
    """Gives tokens that are not for its server."""

    async def load_access_token(self, _token):
        return None


async def test_a_login_whose_token_the_server_does_not_take_says_so_at_once():
    shown = []
    async with guarded(DistrustedIssuer()) as settings, browser() as show:

        def note_and_show(url):
            shown.append(url)
            show(url)

        with pytest.raises(LoginError, match="it answered HTTP 401 to a token that it was just given") as failed:
            await login(settings, note_and_show)
    assert "Compare 'url' and the 'scopes' of its 'oauth' with what it wants" in str(failed.value)
    assert len(shown) == 1


DISTURBANCES = [
    b"",
    b"GET //[ HTTP/1.1\r\n\r\n",
    b"GET /callback HTTP/1.1\r\n\r\n",
    b"GET /callback?error=access_denied HTTP/1.1\r\n\r\n",
    b"GET /callback?code=theirs&state=theirs HTTP/1.1\r\n\r\n",
]


async def test_a_login_outlasts_what_is_not_the_answer_to_it():
    async with guarded(Issuer()) as settings, browser() as show:

        def disturb_and_show(url):
            place = urlsplit(parse_qs(urlsplit(url).query)["redirect_uri"][0])
            for said in DISTURBANCES:
                with socket.create_connection((place.hostname, place.port)) as connection:
                    connection.sendall(said)
            show(url)

        await login(settings, disturb_and_show)
        assert await KeptTokens(settings.url or "").get_tokens() is not None


PAGES = {
    "https://bank.example@10.0.0.1:9200/reset": (
        "the login failed: it sends us to https://10.0.0.1:9200/… with a user name in the address"
    ),
    "https://10.0.0.1:9200/reset": "the login failed: shown",
    "http://10.0.0.1:9200/reset": (
        "the login failed: it sends us to http://10.0.0.1:9200/…, which is not an https address"
    ),
}


@pytest.mark.parametrize("page", PAGES)
async def test_a_server_sends_no_person_to_a_page_without_tls_or_with_a_name_before_its_host(monkeypatch, page):
    base = "https://web.example"

    def answer(request):
        if request.url.path == "/register":
            client = {"client_id": "ours", "redirect_uris": ["http://127.0.0.1/callback"]}
            return httpx2.Response(201, json={**client, "token_endpoint_auth_method": "none"})
        if request.url.path == "/.well-known/oauth-authorization-server":
            places = {"issuer": base, "authorization_endpoint": page, "token_endpoint": f"{base}/token"}
            return httpx2.Response(200, json={**places, "response_types_supported": ["code"]})
        return httpx2.Response(401 if request.url.path == "/mcp" else 404)

    def show(url):
        assert url.startswith(page)
        raise LoginError("shown")

    client = partial(httpx2.AsyncClient, transport=httpx2.MockTransport(answer))
    monkeypatch.setattr("broker.upstreams.login.httpx2.AsyncClient", client)
    with anyio.fail_after(30), pytest.raises(LoginError) as failed:
        await login(ServerConfig(url=f"{base}/mcp", oauth=OAuthClient()), show)
    assert str(failed.value) == PAGES[page]


async def test_a_login_at_a_server_that_is_not_there_says_so():
    settings = ServerConfig(url="http://127.0.0.1:9/mcp", oauth=OAuthClient())
    with anyio.fail_after(30), pytest.raises(LoginError) as failed:
        await login(settings, print)
    assert str(failed.value) == "the login failed: nothing answers at its URL. Start the server or correct 'url'"


NAMED = {
    "http://127.0.0.1:9/register": "127.0.0.1:9, which it names for a login, cannot be reached",
    "https://a.example/" + "a" * 70_000: "an address that it names for a login is not a usable URL",
}


@pytest.mark.parametrize("address", NAMED, ids=["nobody answers", "too long"])
async def test_a_login_that_leads_to_where_nobody_is_blames_the_server_and_not_the_config(address):
    async def metadata(request):
        base = str(request.base_url).rstrip("/")
        places = {"authorization_endpoint": f"{base}/authorize", "token_endpoint": f"{base}/token"}
        return JSONResponse(
            {"issuer": base, **places, "response_types_supported": ["code"], "registration_endpoint": address}
        )

    async def refuse(_request):
        return JSONResponse({}, 401)

    app = Starlette(
        routes=[
            Route("/.well-known/oauth-authorization-server", metadata),
            Route("/mcp", refuse, methods=["GET", "POST"]),
        ]
    )
    sock = bound_socket()
    async with serving(app, sock):
        with anyio.fail_after(30), pytest.raises(LoginError) as failed:
            await login(ServerConfig(url=f"{url_of(sock)}/mcp", oauth=OAuthClient()), print)
    assert str(failed.value) == f"the login failed: {NAMED[address]}. Tell those who run the server"


async def test_a_login_that_nobody_comes_to_ends(monkeypatch):
    monkeypatch.setattr("broker.upstreams.login.LOGIN_SECONDS", 0.2)
    async with guarded(Issuer()) as settings:
        with pytest.raises(LoginError, match=r"nobody logged in within 0.2 s"):
            await login(settings, lambda _url: None)


@pytest.mark.skipif(sys.platform == "win32", reason="modes are of POSIX")
async def test_nobody_else_can_put_tokens_in_the_place_of_those_that_are_kept(monkeypatch, tmp_path):
    monkeypatch.setattr("broker.upstreams.kept_tokens.tokens_folder", lambda: tmp_path / "new" / "tokens")
    before = os.umask(0)
    try:
        kept = KeptTokens("https://web.example")
        async with kept.alone():
            await kept.set_tokens(OAuthToken(access_token="k" * 20, token_type="Bearer"))  # noqa: S106
    finally:
        os.umask(before)
    made = (tmp_path / "new").rglob("*")
    modes = {path.suffix: stat.S_IMODE(path.stat().st_mode) for path in [tmp_path / "new", *made] if path.is_file()}
    assert modes == {".json": 0o600, ".lock": 0o600}
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


async def test_damaged_tokens_are_none(own_folder):
    storage = KeptTokens("http://x/mcp")
    await storage.set_tokens(OAuthToken(access_token="a" * 8, token_type="Bearer"))  # noqa: S106
    [kept] = (own_folder / "tokens").iterdir()
    for text in ("", "[]", '{"tokens": 5}'):
        kept.write_text(text)
        assert await storage.get_tokens() is None


NO_TOKENS = [
    {"access_token": "e"},
    {"access_token": "a" * 8, "refresh_token": "x" * 1_000_000},
    {"access_token": "a" * 8 + "\r\nX-More: 1"},
    {"access_token": "a" * 8 + "\0"},
    {"access_token": "ä" * 8},
    {"access_token": "a" * 8, "refresh_token": "ä" * 8},
]


@pytest.mark.parametrize("tokens", NO_TOKENS)
async def test_what_is_no_token_takes_no_text_apart_and_is_not_kept(tokens):
    learnt: list[str] = []
    storage = KeptTokens("http://x/mcp", learnt.append)
    with pytest.raises(LoginError, match="far too short or too long"):
        await storage.set_tokens(OAuthToken(**tokens))
    assert (learnt, await storage.get_tokens()) == ([], None)
    await storage.set_tokens(OAuthToken(access_token="a" * 8))
    assert learnt == ["a" * 8]


def test_client_credentials_need_what_they_are():
    text = '{"mcpServers": {"a": {"url": "https://a.example/mcp", "oauth": {"grant": "client_credentials"}}}}'
    with pytest.raises(ConfigError, match="client_credentials needs client_id, client_secret, issuer"):
        Config.parse(text, source="c", folder=Path(), environment={})
