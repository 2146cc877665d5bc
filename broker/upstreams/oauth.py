"""OAuth for servers behind HTTP: what authenticates the broker's requests, with nobody there to log in.

Above: connecting.py, and login.py for the login that a person does once. Below: the SDK's providers, kept_tokens.py.
"""

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, OAuthFlowError
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import OAuthClientMetadata
from pydantic import AnyUrl

from broker.errors import LoginError
from broker.upstreams.finishing import finish
from broker.upstreams.http_trail import REFUSALS
from broker.upstreams.kept_tokens import KeptTokens
from broker.upstreams.oauth_settings import OAuthClient

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

    import httpx2
    from mcp.shared.auth import OAuthToken

    from broker.upstreams.server_config import ServerConfig

    Exchange: TypeAlias = Callable[[httpx2.Request], Awaitable[httpx2.Response]]

_CLIENT = "codemode"
_WANTED = "it wants a login"

_MORE_SECONDS = 2.0
"""How long the end of a connection waits for tokens that are on their way."""


async def authentication(
    settings: ServerConfig, exchange: Exchange, learn: Callable[[str], None] | None = None
) -> httpx2.Auth:
    """Return what authenticates the requests to a server.

    Args:
        settings: The server.
        exchange: Sends a request to an authorization server, as it is, and returns the whole answer.
        learn: Is told of each token, which is a secret.

    Raises:
        LoginError: A person has to log in first; requests raise it too, when tokens cannot be refreshed any more.
    """
    oauth, url = settings.oauth or OAuthClient(), settings.url or ""
    storage = KeptTokens(url, learn, oauth)
    if oauth.grant == "client_credentials":
        account = _Account(
            exchange, url, storage, oauth.client_id or "", oauth.client_secret or "", issuer=oauth.issuer
        )
        account.context.client_metadata = _with_scopes(account.context.client_metadata, oauth)
        return account
    # Else each attempt to connect would register one more client.
    if await storage.get_tokens() is None:
        raise LoginError(_WANTED)
    client = client_metadata(oauth, f"http://127.0.0.1:{oauth.redirect_port}/callback")
    return _Provider(exchange, url, client, storage)


def client_metadata(oauth: OAuthClient, redirect: str) -> OAuthClientMetadata:
    """Return what our client is registered with, for logins that come back to an address."""
    metadata = OAuthClientMetadata(
        redirect_uris=[AnyUrl(redirect)],
        client_name=_CLIENT,
        grant_types=["authorization_code", "refresh_token"],
    )
    return _with_scopes(metadata, oauth)


def _with_scopes(metadata: OAuthClientMetadata, oauth: OAuthClient) -> OAuthClientMetadata:
    """Return the same, to ask for the scopes that the operator wrote; where there are none, the server names them."""
    if not oauth.scopes:
        return metadata
    return _OwnScopes.model_validate({**metadata.model_dump(), "scope": " ".join(oauth.scopes)})


class _OwnScopes(OAuthClientMetadata):
    """The SDK's, in which it puts the scopes that the server names in the place of any others."""

    def __setattr__(self, name: str, value: object) -> None:
        """Set a field; the scopes stay."""
        if name != "scope":
            super().__setattr__(name, value)


class OwnEndpoints(OAuthClientProvider):
    """The SDK's, which gives to no server what is for its authorization server.

    Where the metadata of that cannot be had, the SDK takes addresses at the server itself, as in 2025-03-26.
    """

    async def _perform_authorization_code_grant(self) -> tuple[str, str]:
        self._check_endpoints()
        return await super()._perform_authorization_code_grant()

    async def _refresh_token(self) -> httpx2.Request:
        self._check_endpoints()
        return await super()._refresh_token()

    def _check_endpoints(self) -> None:
        origin = self.context.get_authorization_base_url
        if self.context.oauth_metadata is None and origin(self._expected_issuer()) != origin(self.context.server_url):
            raise LoginError("the metadata of its authorization server cannot be had")


class _Renewing(OAuthClientProvider):
    """The SDK's, for which requests wait only while there are new tokens to get, and get these to the end.

    The SDK's holds its lock until each request is answered: calls would wait for each other, and for one that hangs.
    And a refresh that is cut off may have used up the refresh token, and with it the login.
    """

    def __init__(self, exchange: Exchange, *given: Any, **named: Any) -> None:
        """Take what the SDK's takes; `exchange` is that of `authentication`."""
        super().__init__(*given, **named)
        self._exchange = exchange
        self._renewal = anyio.Lock()

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send a request, and once more if there are new tokens for it."""
        if not self._initialized:
            await self._initialize()
        while True:
            used = self.context.current_tokens
            self._add_auth_header(request)
            response = yield request
            if response.status_code not in REFUSALS:
                return
            async with self._alone():
                if await self._are_renewed(used):
                    continue
                if not await finish(partial(self._renew, request, response), _MORE_SECONDS):
                    return
            yield request
            return

    async def _renew(self, request: httpx2.Request, refusal: httpx2.Response) -> bool:
        """Get new tokens for a request that was refused; tell whether it is to be sent again."""
        # The server says when tokens are over: those that expire here may have been refreshed elsewhere.
        self.context.token_expiry_time = None
        async with aclosing(super().async_auth_flow(request)) as flow:
            await anext(flow)  # the request, which has been answered
            answer = refusal
            try:
                while (outgoing := await flow.asend(answer)) is not request:
                    answer = await self._exchange(outgoing)
            except StopAsyncIteration:
                return False
        return True

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Let nobody else get new tokens meanwhile."""
        async with self._renewal:
            yield

    async def _are_renewed(self, used: OAuthToken | None) -> bool:
        """Tell whether somebody else has got new tokens since a request was sent with these."""
        return self.context.current_tokens not in (None, used)


class _Provider(_Renewing, OwnEndpoints):
    """The SDK's, for a login that several processes of a user share, with refresh tokens that may be good for one use.

    One of them at a time gets new tokens, and the others take these over. The SDK's would present a refresh token that
    was used, for which an authorization server may end the login (RFC 9700, section 4.14.2).
    """

    def __init__(self, exchange: Exchange, url: str, client: OAuthClientMetadata, kept: KeptTokens) -> None:
        """Use the tokens that are kept for a URL."""
        super().__init__(exchange, url, client, kept, _nobody_is_there, _nobody_comes_back)
        self._kept = kept

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        async with super()._alone(), self._kept.alone():
            yield

    async def _are_renewed(self, used: OAuthToken | None) -> bool:
        """Take over what is kept, and tell whether that is something else than was used.

        What was given to another registration is not for the authorization server that the upstream names now.
        """
        is_ours = await self._kept.get_client_info() == self.context.client_info
        self.context.current_tokens = await self._kept.get_tokens() if is_ours else None
        return self.context.current_tokens not in (None, used)

    async def _perform_authorization(self) -> httpx2.Request:
        if self.context.can_refresh_token():
            return await self._refresh_token()
        return await super()._perform_authorization()

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        before = self.context.current_tokens
        if before is None or before.refresh_token is None:
            await super()._handle_token_response(response)
        elif not await self._handle_refresh_response(response):
            raise LoginError(_WANTED)


class _Account(_Renewing, ClientCredentialsOAuthProvider):
    """The SDK's, with errors that say what an operator can correct."""

    async def _perform_authorization(self) -> httpx2.Request:
        try:
            return await super()._perform_authorization()
        except OAuthFlowError:
            raise LoginError("its authorization server is not the issuer that the config names") from None

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        try:
            await super()._handle_token_response(response)
        except OAuthFlowError:
            raise LoginError("the authorization server did not accept the account") from None


async def _nobody_is_there(_url: str) -> None:
    raise LoginError(_WANTED)


async def _nobody_comes_back() -> AuthorizationCodeResult:
    raise LoginError(_WANTED)
