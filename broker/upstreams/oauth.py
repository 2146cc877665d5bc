"""OAuth for servers behind HTTP: what authenticates the broker's requests, with nobody there to log in.

Above: connecting.py, and login.py for the login that a person does once. Below: the SDK's providers, kept_tokens.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, OAuthFlowError
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import OAuthClientMetadata
from pydantic import AnyUrl

from broker.errors import LoginError
from broker.upstreams.kept_tokens import KeptTokens
from broker.upstreams.oauth_settings import OAuthClient

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx2

    from broker.upstreams.server_config import ServerConfig

_CLIENT = "codemode"
_WANTED = "it wants a login"


async def authentication(settings: ServerConfig, learn: Callable[[str], None] | None = None) -> OAuthClientProvider:
    """Return what authenticates the requests to a server; `learn` is told of each token, which is a secret.

    Raises:
        LoginError: A person has to log in first; requests raise it too, when tokens cannot be refreshed any more.
    """
    oauth, url = settings.oauth or OAuthClient(), settings.url or ""
    storage = KeptTokens(url, learn)
    if oauth.grant == "client_credentials":
        return _Account(
            url,
            storage,
            oauth.client_id or "",
            oauth.client_secret or "",
            scope=" ".join(oauth.scopes) or None,
            issuer=oauth.issuer,
        )
    # Else each attempt to connect would register one more client.
    if await storage.get_tokens() is None:
        raise LoginError(_WANTED)
    client = client_metadata(oauth, f"http://127.0.0.1:{oauth.redirect_port}/callback")
    return _Provider(url, client, storage, _nobody_is_there, _nobody_comes_back)


def client_metadata(oauth: OAuthClient, redirect: str) -> OAuthClientMetadata:
    """Return what our client is registered with, for logins that come back to an address."""
    return OAuthClientMetadata(
        redirect_uris=[AnyUrl(redirect)],
        client_name=_CLIENT,
        scope=" ".join(oauth.scopes) or None,
        grant_types=["authorization_code", "refresh_token"],
    )


class _Provider(OAuthClientProvider):
    """The SDK's, which refreshes only tokens that it has seen expire itself, and after a restart wants a new login."""

    async def _perform_authorization(self) -> httpx2.Request:
        # Another process of the same user may have refreshed them, and each refresh token may be good for one use. What
        # was given to another registration is not for the authorization server that the upstream names now.
        context = self.context
        is_ours = await context.storage.get_client_info() == context.client_info
        context.current_tokens = await context.storage.get_tokens() if is_ours else None
        if self.context.can_refresh_token():
            return await self._refresh_token()
        return await super()._perform_authorization()

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        before = self.context.current_tokens
        if before is None or before.refresh_token is None:
            await super()._handle_token_response(response)
        elif not await self._handle_refresh_response(response):
            raise LoginError(_WANTED)


class _Account(ClientCredentialsOAuthProvider):
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
