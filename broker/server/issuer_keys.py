"""The keys with which an issuer signs its tokens, found where its metadata says.

Above: tokens.py, `codemode doctor`. Below: PyJWT and httpx2. An issuer with TLS is not followed to an address without.
If the keys cannot be fetched, the log has an error, and nobody gets in.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
import httpx2
import jwt

from broker.logging import logger
from codegen.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.server.settings import OAuthSettings

_KEYS_SECONDS = 3_600.0
_RETRY_SECONDS = 10.0
FETCH_SECONDS = 10.0
_FOUND = 200

DOCUMENT_BYTES = 256 * 1024
"""The longest document; keys take a kilobyte each, and reading as many as there may be holds up everybody else."""

_REASON_CHARACTERS = 500


class KeysError(Exception):
    """The keys cannot be fetched; the text says why, with words of the issuer that are inert."""

    def __init__(self, why: str) -> None:
        """Keep the text."""
        super().__init__(one_line(why, _REASON_CHARACTERS))


class UnreachableIssuerError(KeysError):
    """Nobody answers where they should be."""


class IssuerKeys:
    """The keys of one issuer, fetched when the first is needed, and anew after an hour or for one that is unknown."""

    def __init__(self, settings: OAuthSettings) -> None:
        """Fetch nothing yet."""
        self._settings = settings
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched_at = float("-inf")
        self._fetching = anyio.Lock()

    async def key(self, key_id: str) -> jwt.PyJWK | None:
        """Return a key of the issuer; a token that names none is signed with its only one."""
        if self._is_due(key_id):
            async with self._fetching:
                if self._is_due(key_id):
                    await self._fetch()
        if not key_id and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(key_id)

    def _is_due(self, key_id: str) -> bool:
        """Tell whether to fetch: an unknown key is a reason too, but not for every bad token."""
        age = anyio.current_time() - self._fetched_at
        return age > _KEYS_SECONDS or (key_id not in self._keys and age > _RETRY_SECONDS)

    async def _fetch(self) -> None:
        try:
            with anyio.fail_after(FETCH_SECONDS):
                async with httpx2.AsyncClient(timeout=FETCH_SECONDS) as client:
                    self._keys = await fetch_keys(await self._place(client), client)
        except KeysError as error:
            self._report(str(error))
        except TimeoutError:
            self._report(f"it took longer than {FETCH_SECONDS:g} s to fetch them")
        finally:
            self._fetched_at = anyio.current_time()

    async def _place(self, client: httpx2.AsyncClient) -> str:
        issuer = self._settings.issuer
        return self._settings.jwks_url or place_of_keys(issuer, await issuer_metadata(issuer, client))

    def _report(self, reason: str) -> None:
        logger().error(
            "no token can be checked: the keys of the issuer cannot be had",
            issuer=self._settings.issuer,
            reason=reason,
            what_to_do="Correct serve.oauth.issuer, or set serve.oauth.jwks_url.",
        )


async def issuer_metadata(issuer: str, client: httpx2.AsyncClient) -> dict[str, Any] | None:
    """Return what the metadata of an issuer says; None where there is none that names keys.

    Raises:
        KeysError: The issuer does not answer, or its metadata is of another one or names no safe place.
    """
    for url in places_of_metadata(issuer):
        metadata = await _document(url, client)
        if not (isinstance(metadata, dict) and isinstance(place := metadata.get("jwks_uri"), str)):
            continue
        if (named := metadata.get("issuer")) != issuer:
            raise KeysError(f"at {url} the issuer is called {named}, and serve.oauth.issuer is {issuer}")
        if urlsplit(issuer).scheme == "https" != urlsplit(place).scheme:
            raise KeysError(f"{url} names {place}, which is not an https address")
        return metadata
    return None


def place_of_keys(issuer: str, metadata: dict[str, Any] | None) -> str:
    """Return where the keys of an issuer are: where its metadata says, else at the address that many have."""
    return f"{issuer.rstrip('/')}/.well-known/jwks.json" if metadata is None else str(metadata["jwks_uri"])


async def fetch_keys(url: str, client: httpx2.AsyncClient) -> dict[str, jwt.PyJWK]:
    """Return the keys at an address by their ids, an empty id for a key without one.

    Raises:
        KeysError: They cannot be fetched.
    """
    document = await _document(url, client)
    if not isinstance(document, dict):
        raise KeysError(f"{url} has none")
    try:
        return {key.key_id or "": key for key in jwt.PyJWKSet.from_dict(document).keys}
    except (jwt.PyJWTError, TypeError):  # PyJWT looks up what may be a list
        raise KeysError(f"{url} has none that can be used") from None


def places_of_metadata(issuer: str) -> Iterable[str]:
    """Return where the metadata of an issuer may be: as OAuth has it (RFC 8414), then as OpenID Connect."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}/.well-known", parts.path.rstrip("/")
    places = [
        f"{origin}/oauth-authorization-server{path}",
        f"{origin}/openid-configuration{path}",
        f"{issuer.rstrip('/')}/.well-known/openid-configuration",
    ]
    return dict.fromkeys(places)


async def _document(url: str, client: httpx2.AsyncClient) -> Any:
    """Return the JSON at an address, None where there is none, or one that is compressed though nobody asked for that.

    Raises:
        KeysError: It is too long.
        UnreachableIssuerError: Nobody answers there.
    """
    body = bytearray()
    try:
        async with client.stream("GET", url, headers={"Accept-Encoding": "identity"}) as response:
            if response.status_code != _FOUND or response.headers.get("content-encoding", "identity") != "identity":
                return None
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > DOCUMENT_BYTES:
                    raise KeysError(f"{url} answers with more than {DOCUMENT_BYTES} bytes")
        return json.loads(body)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise UnreachableIssuerError(f"{url} does not answer: {type(error).__name__}") from None
    except (ValueError, RecursionError):  # it is no JSON, or nested so deep that nobody means it
        return None
