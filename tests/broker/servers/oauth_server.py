"""An MCP server behind HTTP with an authorization server, both of the SDK: `-m tests.broker.servers.oauth_server`.

Prints its address. Everybody is given a code at once. `POST /expire` makes the access tokens that it gave invalid,
`POST /revoke` the refresh tokens too. `GET /log` lists the grants that tokens were given for, with the scopes of an
account, and the registrations. Account `robot` with secret `robot-secret-1` may use client_credentials, which the SDK's
authorization server does not have.
"""

from __future__ import annotations

import base64
import secrets
import socket
from urllib.parse import parse_qs, unquote

import anyio
import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthToken
from pydantic import AnyHttpUrl
from starlette.responses import JSONResponse, Response

from tests.broker.server.issuing import code_for

ACCOUNT = ("robot", "robot-secret-1")


class Issuer(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    def __init__(self):
        self.clients, self.codes, self.access, self.refresh, self.log = {}, {}, set(), {}, []

    def give(self, kind, *, client_id="", scopes=(), with_refresh=True):
        """Give new tokens."""
        self.log.append(kind)
        token = OAuthToken(access_token=f"access-{secrets.token_hex(8)}", token_type="Bearer", expires_in=3600)  # noqa: S106
        self.access.add(token.access_token)
        if with_refresh:
            token.refresh_token = f"refresh-{secrets.token_hex(8)}"
            self.refresh[token.refresh_token] = RefreshToken(
                token=token.refresh_token, client_id=client_id, scopes=list(scopes)
            )
        return token

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        self.log.append("register")
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        code = code_for(client, params)
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, _client, authorization_code):
        return self.codes.pop(authorization_code, None)

    async def exchange_authorization_code(self, client, _authorization_code):
        return self.give("code", client_id=client.client_id)

    async def load_refresh_token(self, _client, refresh_token):
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, _scopes):
        # Each is good for one use.
        if self.refresh.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant")
        return self.give("refresh", client_id=client.client_id)

    async def revoke_token(self, token):
        raise NotImplementedError

    async def load_access_token(self, token):
        return AccessToken(token=token, client_id="any", scopes=[]) if token in self.access else None


def beside(app, issuer):
    """Put what the SDK's application does not have before it."""

    async def answer(scope, receive, send):
        path = scope.get("path")
        if path == "/log":
            await JSONResponse(issuer.log)(scope, receive, send)
        elif path in {"/expire", "/revoke"}:
            issuer.access.clear()
            if path == "/revoke":
                issuer.refresh.clear()
            await Response(status_code=204)(scope, receive, send)
        elif path == "/token":
            messages = [await receive()]
            while messages[-1].get("more_body"):
                messages.append(await receive())
            form = parse_qs(b"".join(message["body"] for message in messages).decode())
            if form.get("grant_type") == ["client_credentials"]:
                await client_credentials(issuer, dict(scope["headers"]), form)(scope, receive, send)
            else:
                await app(scope, anyio_iterator(messages), send)
        else:
            await app(scope, receive, send)

    return answer


def anyio_iterator(messages):
    left = list(messages)

    async def receive():
        return left.pop(0) if left else await anyio.sleep_forever()

    return receive


def client_credentials(issuer, headers, form):
    kind, _, encoded = headers.get(b"authorization", b"").decode().partition(" ")
    given = tuple(map(unquote, base64.b64decode(encoded).decode().split(":"))) if kind == "Basic" else ()
    if given != ACCOUNT:
        return JSONResponse({"error": "invalid_client"}, 401)
    token = issuer.give(" ".join(["client_credentials", *form.get("scope", [])]), with_refresh=False)
    return JSONResponse(token.model_dump(mode="json", exclude_none=True))


def main() -> None:
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.listen()  # whoever is told the address may connect at once
    base = f"http://127.0.0.1:{sock.getsockname()[1]}"
    issuer = Issuer()
    server = MCPServer(
        "web",
        auth_server_provider=issuer,
        auth=AuthSettings(
            issuer_url=AnyHttpUrl(base),
            validate_token_resource=False,
            resource_server_url=AnyHttpUrl(f"{base}/mcp"),
            client_registration_options=ClientRegistrationOptions(enabled=True),
        ),
    )

    @server.tool(structured_output=False)
    def tell() -> str:
        """Tells all valid tokens."""
        return " ".join([*issuer.access, *issuer.refresh])

    print(base, flush=True)  # noqa: T201  # whoever started it waits for it
    config = uvicorn.Config(beside(server.streamable_http_app(), issuer), log_level="critical")
    anyio.run(uvicorn.Server(config).serve, [sock])


if __name__ == "__main__":
    main()
