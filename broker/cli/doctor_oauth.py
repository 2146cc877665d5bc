"""What `codemode doctor` says about the issuer in `serve.oauth`: whether clients can log in, and tokens be checked.

Above: doctor.py. Below: issuer_keys.py, with which the server looks for the same. No token is asked for.
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import httpx2

from broker.cli.findings import Finding
from broker.server.issuer_keys import (
    FETCH_SECONDS,
    KeysError,
    UnreachableIssuerError,
    fetch_keys,
    issuer_metadata,
    place_of_keys,
    places_of_metadata,
)
from broker.server.tokens import CLOCK_LEEWAY_SECONDS
from codegen.plain_text import counted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

    import jwt

    from broker.server.settings import OAuthSettings

_Looked = TypeVar("_Looked")

_ISSUER, _KEYS, _CLOCK = "oauth issuer", "oauth keys", "oauth clock"
_CORRECT = "Correct serve.oauth.issuer: it is the name that the issuer gives itself, to the last slash."
_KEYS_PLACE = "Set serve.oauth.jwks_url to the address of the issuer's keys."
_REACH = "Correct it in serve.oauth, or let this machine reach it."


class _Clock:
    """How far the clock of the issuer is ahead of this machine's, by its last answer."""

    def __init__(self) -> None:
        self.ahead: float | None = None

    async def note(self, response: httpx2.Response) -> None:
        try:
            told = parsedate_to_datetime(response.headers["date"])
            kept = int(response.headers.get("age", 0))
        except (KeyError, ValueError):
            return
        if told.tzinfo is not None:
            self.ahead = (told - datetime.now(UTC)).total_seconds() + kept


async def oauth_findings(settings: OAuthSettings) -> AsyncIterator[Finding]:
    """Yield what is found; each thing that is wrong, with what to do."""
    clock, place = _Clock(), settings.jwks_url
    async with httpx2.AsyncClient(timeout=FETCH_SECONDS, event_hooks={"response": [clock.note]}) as client:
        try:
            metadata = await _in_time(issuer_metadata(settings.issuer, client))
        except KeysError as error:
            yield _fault(_ISSUER, error, _CORRECT)
        else:
            yield _issuer_finding(settings, metadata)
            place = place or place_of_keys(settings.issuer, metadata)
        if place is not None:
            try:
                yield _keys_finding(settings, await _in_time(fetch_keys(place, client)))
            except KeysError as error:
                yield _fault(_KEYS, error, _KEYS_PLACE)
    if clock.ahead is not None and abs(clock.ahead) > CLOCK_LEEWAY_SECONDS:
        yield _clock_finding(clock.ahead)


async def _in_time(looking: Awaitable[_Looked]) -> _Looked:
    try:
        with anyio.fail_after(FETCH_SECONDS):
            return await looking
    except TimeoutError:
        raise UnreachableIssuerError(f"no answer within {FETCH_SECONDS:g} s") from None


def _fault(subject: str, error: KeysError, remedy: str) -> Finding:
    what_to_do = _REACH if isinstance(error, UnreachableIssuerError) else remedy
    return Finding(subject, is_right=False, found=str(error), what_to_do=what_to_do)


def _issuer_finding(settings: OAuthSettings, metadata: dict[str, Any] | None) -> Finding:
    """Tell whether clients can use the metadata."""
    if metadata is None:
        places = ", ".join(places_of_metadata(settings.issuer))
        problem = f"no metadata that names keys, so that no client can log in; looked at {places}"
        return Finding(_ISSUER, is_right=False, found=problem, what_to_do=_CORRECT)
    methods = metadata.get("code_challenge_methods_supported")
    if not (isinstance(methods, list) and "S256" in methods):
        problem = "its metadata does not list S256 in code_challenge_methods_supported: clients do not log in"
        return Finding(_ISSUER, is_right=False, found=problem, what_to_do="Turn on PKCE with S256 at the issuer.")
    registers = metadata.get("registration_endpoint") or metadata.get("client_id_metadata_document_supported")
    by_hand = "" if registers else "; clients cannot register there by themselves, and each needs a client id"
    return Finding(
        _ISSUER, is_right=True, found=f"{settings.issuer}, whose tokens are for {settings.resource}{by_hand}"
    )


def _keys_finding(settings: OAuthSettings, keys: dict[str, jwt.PyJWK]) -> Finding:
    names = sorted({key.algorithm_name for key in keys.values()})
    found = f"{counted(len(keys), 'key')}, for {', '.join(names)}"
    if not set(names) & set(settings.algorithms):
        problem = f"{found}, and serve.oauth.algorithms has {', '.join(settings.algorithms) or 'none'}"
        return Finding(_KEYS, is_right=False, found=problem, what_to_do="Name there what the issuer signs with.")
    return Finding(_KEYS, is_right=True, found=found)


def _clock_finding(ahead: float) -> Finding:
    relation, effect = ("behind", "are not valid yet") if ahead > 0 else ("ahead of", "have expired early")
    found = f"the clock here is {abs(ahead):.0f} s {relation} that of the issuer: its tokens {effect}"
    return Finding(_CLOCK, is_right=False, found=found, what_to_do="Set the clock of this machine.")
