"""An authorization server of this process, of the SDK's parts, whose tokens are JSON web tokens.

Everybody is given a code at once, for what was asked for. Its keys are where its metadata says.
"""

from __future__ import annotations

import json
import secrets
import time
from contextlib import asynccontextmanager
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.routes import build_metadata, create_auth_routes
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthToken
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from tests.http_apps import bound_socket, serving, url_of

KEY = ec.generate_private_key(ec.SECP256R1())
SCOPES = ["codemode", "read"]


def code_for(client, params):
    """Make the code that a client gets at once for what it asks."""
    return AuthorizationCode(
        code=secrets.token_hex(20),
        scopes=params.scopes or [],
        expires_at=time.time() + 60,
        client_id=client.client_id,
        code_challenge=params.code_challenge,
        redirect_uri=params.redirect_uri,
        redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
        resource=params.resource,
    )


class Issuer(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """What it gives: `changed` are claims of the next token, and `given` the claims of all so far."""

    def __init__(self, url: str):
        self.url = url
        self.changed: dict[str, Any] = {}
        self.given: list[dict[str, Any]] = []
        self._clients: dict[str, Any] = {}
        self._codes: dict[str, AuthorizationCode] = {}
        self._refreshing: dict[str, tuple[list[str], str | None]] = {}

    async def get_client(self, client_id):
        return self._clients.get(client_id)

    async def register_client(self, client_info):
        self._clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        code = code_for(client, params)
        self._codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state, iss=self.url)

    async def load_authorization_code(self, _client, authorization_code):
        return self._codes.pop(authorization_code, None)

    async def exchange_authorization_code(self, client, authorization_code):
        return self._give(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client, refresh_token):
        scopes, _ = self._refreshing[refresh_token]
        return RefreshToken(token=refresh_token, client_id=client.client_id, scopes=scopes)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        return self._give(client.client_id, scopes, self._refreshing.pop(refresh_token.token)[1])

    async def revoke_token(self, _token):
        raise NotImplementedError

    async def load_access_token(self, _token):
        raise NotImplementedError

    def _give(self, client, scopes, resource):
        claims = {"iss": self.url, "aud": resource, "sub": "ada", "client_id": client, "scope": " ".join(scopes)}
        claims |= {"exp": int(time.time()) + 3_600, **self.changed}
        self.changed = {}
        self.given.append(claims)
        refresh = secrets.token_hex(8)
        self._refreshing[refresh] = (scopes, resource)
        return OAuthToken(
            access_token=jwt.encode(claims, KEY, "ES256", {"kid": "one"}),
            token_type="Bearer",  # noqa: S106  # a word of OAuth
            expires_in=3_600,
            refresh_token=refresh,
        )


@asynccontextmanager
async def issuing():
    """Run an authorization server on a free port; needs asyncio."""
    sock = bound_socket()
    issuer = Issuer(url_of(sock))
    async with serving(_app(issuer), sock):
        yield issuer


def _app(issuer: Issuer) -> Starlette:
    url = AuthSettings.model_validate({"issuer_url": issuer.url, "resource_server_url": None}).issuer_url
    registration = ClientRegistrationOptions(enabled=True, valid_scopes=SCOPES)
    metadata = build_metadata(url, None, registration, RevocationOptions()).model_dump(mode="json", exclude_none=True)
    public = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(KEY.public_key()))

    async def said(_request):
        return JSONResponse(metadata | {"jwks_uri": f"{issuer.url}/keys"})

    async def keys(_request):
        return JSONResponse({"keys": [{**public, "kid": "one", "use": "sig", "alg": "ES256"}]})

    own = [Route("/.well-known/oauth-authorization-server", said), Route("/keys", keys)]
    return Starlette(routes=[*own, *create_auth_routes(issuer, url, client_registration_options=registration)])
