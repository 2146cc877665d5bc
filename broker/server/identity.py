"""Who a request comes from: the authenticated principal, as one text, and the connection.

Above: session_keeper.py, and whatever keeps something for a client. Below: the SDK's authentication.
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import principal_components

if TYPE_CHECKING:
    from mcp.server import ServerRequestContext
    from mcp.server.auth.middleware.bearer_auth import AuthorizationContext

SESSION_HEADER = "mcp-session-id"
"""What names a connection of the older era."""

_PLAIN = string.punctuation.replace("%", "")


def principal_of_request() -> str:
    """Return who was authenticated for the present request; empty where nobody is."""
    token = get_access_token()
    return "" if token is None else _name_of(*principal_components(token))


def principal_of_owner(owner: AuthorizationContext | None) -> str:
    """Return the same of whoever opened a connection, as the SDK keeps it."""
    return "" if owner is None else _name_of(owner["client_id"], owner["issuer"], owner["subject"])


def connection_of(ctx: ServerRequestContext[Any, Any]) -> str:
    """Return what tells the connection of a request from others, of an era that has connections; empty for stdio."""
    return "" if ctx.request is None else str(ctx.request.headers.get(SESSION_HEADER, ""))


def _name_of(client: str, issuer: str | None, subject: str | None) -> str:
    """Return the name that policies, grants and recordings have for a principal.

    Of a token of the config it is the name there, which is client and subject; of one of an issuer, the words `SUBJECT
    CLIENT ISSUER`, so encoded that nobody's subject passes for two words.
    """
    if issuer is None and subject in {None, client}:
        return client
    words = (quote(word, safe=_PLAIN, errors="surrogatepass") for word in (subject, client, issuer) if word)
    return " ".join(words)
