"""The login that a person does once, in a browser, for a server behind HTTP.

Above: `codemode mcp login`. Below: oauth.py, and the SDK's client. The authorization server sends the browser back to
an address of this machine that is open for as long as the login takes.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
from anyio.abc import SocketAttribute
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthRegistrationError, OAuthTokenError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull

from broker.errors import LoginError
from broker.upstreams.explain import token_refused, unreachable
from broker.upstreams.http_trail import HttpTrail
from broker.upstreams.kept_tokens import NewTokens
from broker.upstreams.oauth import OwnEndpoints, client_metadata
from broker.upstreams.oauth_settings import OAuthClient

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyio.abc import SocketStream

    from broker.upstreams.server_config import ServerConfig

LOGIN_SECONDS = 300.0
"""How long a person has to log in."""

_REFUSED = {
    OAuthRegistrationError: (
        "its authorization server does not register the broker as a client. Register one there, and put its "
        "'client_id', 'client_secret' and 'redirect_port' into 'oauth'"
    ),
    OAuthTokenError: (
        "its authorization server gave no token after the login. Log in again; if 'oauth' names a client, correct its "
        "'client_id' and 'client_secret'"
    ),
}
"""What the SDK's errors mean, whose texts quote the authorization server."""

_UNAUTHORIZED = 401
_REQUEST_BYTES = 16_384
_ANSWER = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"


async def login(settings: ServerConfig, show: Callable[[str], None]) -> None:
    """Let a person log in to a server, and keep the tokens; those of an earlier login go once there are new ones.

    Args:
        settings: The server; people log in there.
        show: Shows a URL to the person, or opens it.

    Raises:
        LoginError: It did not come about; the text says why.
    """
    oauth, url = settings.oauth or OAuthClient(), settings.url or ""
    storage = NewTokens(url, oauth)
    await _register(oauth, storage)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=oauth.redirect_port) as listener:
        port = listener.extra(SocketAttribute.local_port)  # noqa: S610  # of anyio
        trail = HttpTrail(url)
        callback = _Callback(f"http://127.0.0.1:{port}/callback", show, trail)
        provider = _Provider(
            url,
            client_metadata(oauth, callback.url),
            storage,
            redirect_handler=callback.show,
            callback_handler=callback.result,
        )
        provider.trail = trail
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, callback.serve)
            problem = await _list_tools(url, settings, provider, trail)
            tasks.cancel_scope.cancel()
    if await storage.get_tokens() is None:
        raise callback.problem or problem or LoginError("the server asked for no login, and gave no token")
    # What else goes wrong after a login is for the connection to find out.
    if trail.refused is not None:
        raise LoginError(token_refused(trail.refused))


async def _list_tools(url: str, settings: ServerConfig, provider: _Provider, trail: HttpTrail) -> LoginError | None:
    """Ask for the tools, as the broker will: some servers want a login, or one that is good for more, only then.

    Returns why the login did not come about, if it did not.
    """
    try:
        with anyio.fail_after(LOGIN_SECONDS):
            async with (
                httpx2.AsyncClient(auth=provider, headers=settings.headers, event_hooks=trail.hooks) as http,
                Client(streamable_http_client(url, http_client=http)) as client,
            ):
                await client.list_tools()
    except TimeoutError:
        return LoginError(f"nobody logged in within {LOGIN_SECONDS:g} s")
    except Exception as error:  # noqa: BLE001  # of the SDK or the network
        return LoginError(f"the login failed: {trail.missing_metadata or _reason(error, url)}")
    return None


class _Provider(OwnEndpoints):
    """The SDK's, which binds to their authorization server only the clients that it has registered itself.

    Where the server refuses a token that it was just given, the person would only be sent to get the same again.
    """

    trail: HttpTrail

    async def _perform_authorization(self) -> httpx2.Request:
        if self.context.current_tokens is not None and self.trail.refused == _UNAUTHORIZED:
            raise LoginError(token_refused(_UNAUTHORIZED))
        return await super()._perform_authorization()

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        client = self.context.client_info
        if client is not None and client.issuer is None and self.context.oauth_metadata is not None:
            client.issuer = self._expected_issuer()
            await self.context.storage.set_client_info(client)
        await super()._handle_token_response(response)


class _Callback:
    """The end of a redirect, on this machine, where any page and any user can send a request as well."""

    def __init__(self, url: str, show: Callable[[str], None], trail: HttpTrail) -> None:
        self.url = url
        self._show = show
        self._trail = trail
        self._state = ""
        self.problem: LoginError | None = None
        self._came = anyio.Event()
        self._parameters: dict[str, str] = {}

    async def show(self, url: str) -> None:
        """Send the person to the authorization server; a second time for a login that is good for more."""
        self._trail.check(url)
        self._came = anyio.Event()
        self._state = _parameters(urlsplit(url).query).get("state", "")
        self._show(url)

    async def result(self) -> AuthorizationCodeResult:
        """Wait until the person comes back."""
        await self._came.wait()
        if "code" not in self._parameters:
            refused = self._parameters.get("error", "no code")[:80]
            self.problem = LoginError(f"the authorization server refused: {refused}")
            raise self.problem
        fields = {key: self._parameters.get(key) for key in ("code", "state", "iss")}
        return AuthorizationCodeResult.model_validate(fields)

    async def serve(self, stream: SocketStream) -> None:
        """Answer one request of the browser; what is no request, and one that is broken off, does not end the login."""
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, ValueError):
            async with stream:
                await self._serve(stream)

    async def _serve(self, stream: SocketStream) -> None:
        request = await stream.receive(_REQUEST_BYTES)
        target = request.split(b" ", 2)[1].decode("ascii", "replace") if request.count(b" ") > 1 else ""
        place = urlsplit(target)
        parameters = _parameters(place.query)
        if place.path != "/callback" or parameters.get("state") != self._state:
            await stream.send(b"HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n")
            return
        self._parameters = parameters
        try:
            await stream.send(f"{_ANSWER}You can close this window and go back to the terminal.\n".encode())
        finally:
            self._came.set()


def _parameters(query: str) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(query).items()}


async def _register(oauth: OAuthClient, storage: NewTokens) -> None:
    """Put the client that the config names in the place of one that we would register."""
    if oauth.client_id is not None:
        method = "client_secret_basic" if oauth.client_secret else "none"
        fields = {"client_id": oauth.client_id, "client_secret": oauth.client_secret, "issuer": oauth.issuer}
        await storage.set_client_info(
            OAuthClientInformationFull.model_validate({**fields, "token_endpoint_auth_method": method})
        )


def _reason(error: BaseException, url: str) -> str:
    """Return what is inside exception groups: our own words, or the kind of what is somebody else's."""
    if explanation := unreachable(error, url):
        return f"{explanation.problem}. {explanation.what_to_do.rstrip('.')}"
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, LoginError):
        return str(error)
    return next((said for kind, said in _REFUSED.items() if isinstance(error, kind)), type(error).__name__)
