"""Who may use the HTTP server: bearer tokens of the config, and tokens of an authorization server.

Above: http.py. Below: issuer_keys.py, PyJWT. A token that cannot be checked is refused; the challenge says why, and
the log, without the token.
"""

from __future__ import annotations

import hmac
import time
from typing import TYPE_CHECKING, Any

import jwt
from mcp.server.auth.provider import AccessToken, TokenVerifier

from broker.server.challenge import say_why
from broker.server.issuer_keys import IssuerKeys

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker.server.settings import OAuthSettings

CLOCK_LEEWAY_SECONDS = 10
"""How far an issuer's clock may be ahead of ours before its new tokens are refused (RFC 7519, section 4.1.5)."""

_REASONS: dict[type[Exception], str] = {
    jwt.ExpiredSignatureError: "The token has expired",
    jwt.ImmatureSignatureError: "The token is not valid yet by the clock here",
    jwt.InvalidAlgorithmError: "The token is signed with an algorithm that is not accepted here",
    jwt.InvalidAudienceError: "The audience of the token is not {settings.resource}",
    jwt.InvalidIssuerError: "The issuer of the token is not {settings.issuer}",
    jwt.InvalidKeyError: "The token is signed with a key that is unknown or cannot be used here",
    jwt.InvalidSignatureError: "The signature of the token is wrong",
    jwt.MissingRequiredClaimError: "The token lacks the claim {error.claim}",
}
"""Audience and issuer as they should be are in the metadata that anybody can read."""


class StaticTokens(TokenVerifier):
    """Tokens written in the config, each with the name of its holder."""

    def __init__(self, tokens: Mapping[str, str], scopes: Iterable[str] = ()) -> None:
        """Take the tokens by name; each has all the scopes that tokens of an issuer need beside them."""
        self._tokens = {name: token.encode() for name, token in tokens.items()}
        self._scopes = list(scopes)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the holder of a token, comparing with all of them in constant time."""
        given = token.encode("utf-8", "replace")
        found = [name for name, known in self._tokens.items() if hmac.compare_digest(known, given)]
        if not found:
            say_why("The token is not known here")
            return None
        return AccessToken(token=token, client_id=found[0], scopes=self._scopes, subject=found[0])


class IssuedTokens(TokenVerifier):
    """JSON web tokens that an issuer signed for this server."""

    def __init__(self, settings: OAuthSettings) -> None:
        """Fetch nothing before the first token comes."""
        self._settings = settings
        self._keys = IssuerKeys(settings)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what a token says of its holder, when its signature, issuer, audience, time and scopes are right."""
        try:
            return self._access(token, await self._claims(token))
        except (jwt.PyJWTError, ValueError) as error:
            say_why(self._reason(error))
            return None

    async def _claims(self, token: str) -> dict[str, Any]:
        key = await self._keys.key(str(jwt.get_unverified_header(token).get("kid", "")))
        if key is None:
            raise jwt.InvalidKeyError
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=list(self._settings.algorithms),
            audience=self._settings.resource,
            issuer=self._settings.issuer,
            leeway=CLOCK_LEEWAY_SECONDS,
            options={"require": ["exp", "iss", "aud"]},
        )
        if int(claims["exp"]) <= time.time():  # the leeway is for new tokens alone
            raise jwt.ExpiredSignatureError
        return claims

    def _reason(self, error: Exception) -> str:
        said = _REASONS.get(type(error), "The token is not known here, and no JSON web token that makes sense")
        return said.format(settings=self._settings, error=error)

    def _access(self, token: str, claims: dict[str, Any]) -> AccessToken:
        client = claims.get("client_id") or claims.get("azp") or claims.get("sub") or ""
        subject = claims.get("sub")
        return AccessToken(
            token=token,
            client_id=str(client),
            scopes=_scopes_of(claims),
            expires_at=int(claims["exp"]),
            resource=self._settings.resource,
            subject=None if subject is None else str(subject),
            claims={"iss": claims["iss"]},
        )


def _scopes_of(claims: Mapping[str, Any]) -> list[str]:
    """Return the scopes that a token has: words in a text, or texts in a list; anything else is none."""
    scope = claims.get("scope", claims.get("scp"))
    if isinstance(scope, str):
        return scope.split()
    return [one for one in scope if isinstance(one, str)] if isinstance(scope, list) else []


class AnyOf(TokenVerifier):
    """A token that one of several verifiers knows."""

    def __init__(self, verifiers: list[TokenVerifier]) -> None:
        """Ask them in this order."""
        self._verifiers = verifiers

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what the first verifier says that knows the token."""
        for verifier in self._verifiers:
            found = await verifier.verify_token(token)
            if found is not None:
                return found
        return None
