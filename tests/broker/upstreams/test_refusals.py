"""Servers that answer 401, and OAuth metadata that is not where it should be: what an operator is told."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial

import anyio
import httpx2
import pytest
from mcp.shared.auth import OAuthToken

from broker import Broker, Config
from broker.errors import LoginError
from broker.upstreams.http_answers import UnreadError
from broker.upstreams.http_trail import HttpTrail, SentCall
from broker.upstreams.kept_tokens import KeptTokens
from broker.upstreams.login import login
from broker.upstreams.oauth import authentication
from broker.upstreams.oauth_settings import OAuthClient
from broker.upstreams.server_config import ServerConfig

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("own_folder")]


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """The SDK's HTTP client leaves generators behind on trio."""
    return request.param


@asynccontextmanager
async def answering(answer):
    """A server on loopback that gives each request the answer for its method and path; yields its address."""

    async def serve(stream) -> None:
        async with stream:
            method, path, _ = (await stream.receive()).split(b" ", 2)
            said = answer(method.decode(), path.decode())
            if said:
                await stream.send(f"HTTP/1.1 {said}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610  # no Django here
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        with anyio.fail_after(30):
            yield f"http://127.0.0.1:{port}"
        tasks.cancel_scope.cancel()


WANTS_LOGIN = "401 No\r\nWWW-Authenticate: Bearer"
ACCOUNT = OAuthClient(grant="client_credentials", client_id="r", client_secret="s" * 8, issuer="https://a.example")
METADATA = "its OAuth metadata at {}/.well-known/"
UNREACHABLE = {
    "nobody there": (
        lambda method, _: WANTS_LOGIN if method == "POST" else "",
        "oauth-protected-resource/… did not answer",
    ),
    "not served": (
        lambda method, _: WANTS_LOGIN if method == "POST" else "404 No",
        "oauth-authorization-server answered HTTP 404",
    ),
    "broken": (
        lambda method, _: WANTS_LOGIN if method == "POST" else "503 No",
        "oauth-protected-resource answered HTTP 503",
    ),
}


@pytest.mark.parametrize("case", UNREACHABLE)
async def test_metadata_that_is_not_there_is_named_without_the_path_of_the_server(case):
    answer, said = UNREACHABLE[case]
    async with answering(answer) as base:
        settings = ServerConfig(url=f"{base}/s/path-with-a-secret/mcp", oauth=ACCOUNT)
        async with Broker(Config(servers={"web": settings})) as broker:
            status = broker.server_statuses()[0]
    assert status.problem == f"it answered HTTP 401, and {METADATA.format(base)}{said}"
    assert status.what_to_do == (
        "See whether its authorization server runs. Correct client_id, client_secret and issuer of its 'oauth'."
    )


@pytest.mark.parametrize("case", UNREACHABLE)
async def test_a_login_says_which_metadata_is_not_there(case):
    answer, said = UNREACHABLE[case]
    async with answering(answer) as base:
        with pytest.raises(LoginError) as failed:
            await login(ServerConfig(url=f"{base}/s/path-with-a-secret/mcp", oauth=OAuthClient()), print)
    assert str(failed.value) == f"the login failed: {METADATA.format(base)}{said}"


async def test_a_login_that_lapsed_while_the_metadata_is_away_says_so():
    async with answering(UNREACHABLE["nobody there"][0]) as base:
        url = f"{base}/mcp"
        await KeptTokens(url).set_tokens(OAuthToken(access_token="k" * 20, token_type="Bearer"))  # noqa: S106
        async with Broker(Config(servers={"web": ServerConfig(url=url, oauth=OAuthClient())})) as broker:
            status = broker.server_statuses()[0]
    assert (
        status.problem == f"it answered HTTP 401, and {METADATA.format(base)}oauth-protected-resource/… did not answer"
    )
    assert status.what_to_do == (
        "Log in with `codemode mcp login web` when that address answers, or give it a token in 'headers'."
    )


REFUSED = {
    "without credentials": (
        {},
        (
            'Add "headers": {"Authorization": "Bearer …"} to its entry, or add "oauth": {} and log in with '
            "`codemode mcp login web`."
        ),
    ),
    "with wrong ones": ({"Authorization": "Bearer abc"}, "Correct the credentials in its 'headers'."),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_a_refusal_says_what_to_do_about_it(case):
    headers, advice = REFUSED[case]
    async with answering(lambda *_: WANTS_LOGIN) as base:
        config = Config(servers={"web": ServerConfig(url=f"{base}/mcp", headers=headers)})
        async with Broker(config) as broker:
            status = broker.server_statuses()[0]
    assert (status.problem, status.what_to_do) == ("it answered HTTP 401", advice)


CHALLENGE = 'Bearer resource_metadata="{}10.0.0.1:9200/reset"'
SENT = {
    "http://": "it sends us to http://10.0.0.1:9200/…, which is not an https address",
    "https://admin:admin@": "it sends us to https://10.0.0.1:9200/… with a user name in the address",
    "https://": "it wants a login",
}


@pytest.mark.parametrize("scheme", SENT)
async def test_a_server_with_tls_chooses_no_address_without_it_and_none_with_a_password(scheme):
    seen = []

    async def answer(request):
        seen.append(f"{request.url.scheme} {request.url.host}")
        if request.url.path == "/register":
            return httpx2.Response(201, json={"client_id": "ours", "redirect_uris": ["http://127.0.0.1/callback"]})
        headers = {"WWW-Authenticate": CHALLENGE.format(scheme)}
        return httpx2.Response(401 if request.url.path == "/mcp" else 404, headers=headers)

    url = "https://web.example/mcp"
    await KeptTokens(url).set_tokens(OAuthToken(access_token="k" * 20, token_type="Bearer"))  # noqa: S106
    settings, hooks = ServerConfig(url=url, oauth=OAuthClient()), HttpTrail(url).hooks
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer), event_hooks=hooks) as http:
        http.auth = await authentication(settings, partial(http.send, auth=None))
        with pytest.raises(LoginError, match=SENT[scheme]):
            await http.get(url, headers={"Accept": "text/event-stream"})
    assert ("https 10.0.0.1" in seen, "http 10.0.0.1" in seen) == (scheme == "https://", False)


async def test_a_password_in_the_servers_own_address_is_the_operators():
    url = "https://our%20name:p%40ss@web.example/mcp"
    trail = HttpTrail(url)
    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, text=request.headers["Authorization"]))
    async with httpx2.AsyncClient(transport=transport, event_hooks=trail.hooks) as http:
        assert (await http.post(url)).text.startswith("Basic ")


ANSWERS: dict[str, tuple[list[int | None], int | None]] = {
    "refused": ([401], 401),
    "refused again with a new token": ([401, 403], 403),
    "accepted with a new token": ([401, 200], None),
    "sent again and not answered yet": ([401, None], None),
    "never answered": ([None], None),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_a_call_was_refused_if_nothing_but_refusals_came(case):
    statuses, refused = ANSWERS[case]
    sent, request = SentCall(), httpx2.Request("POST", "https://web.example/mcp")
    for status in statuses:
        sent.begin(request)
        if status is not None:
            sent.note(httpx2.Response(status, request=request))
    assert (sent.refused, sent.may_have_acted) == (refused, refused is None)


def test_what_is_answered_beside_a_call_does_not_say_that_it_was_refused():
    sent, call = SentCall(), httpx2.Request("POST", "https://web.example/mcp")
    sent.begin(call)
    sent.begin(taken_back := httpx2.Request("POST", "https://web.example/mcp"))
    sent.note(httpx2.Response(401, request=taken_back))
    assert (sent.refused, sent.may_have_acted) == (None, True)


def test_a_call_that_nobody_waits_for_is_not_sent_again_nor_taken_back():
    sent, call = SentCall(), httpx2.Request("POST", "https://web.example/mcp")
    sent.begin(call)
    sent.note(httpx2.Response(401, request=call))
    with pytest.raises(UnreadError, match="nobody waits"):
        sent.begin(httpx2.Request("POST", "https://web.example/mcp"))
    sent.is_over = True
    with pytest.raises(UnreadError, match="nobody waits"):
        sent.begin(call)
    assert (sent.refused, sent.may_have_acted) == (401, False)
