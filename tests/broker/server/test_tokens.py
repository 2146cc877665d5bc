"""Who may use the HTTP server."""

from __future__ import annotations

import json
import re
import time
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import httpx2
import jwt
import pytest
import structlog
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from broker.server.http import Address, http_app
from broker.server.issuer_keys import KeysError, issuer_metadata, place_of_keys
from broker.server.settings import OAuthSettings
from broker.server.tokens import CLOCK_LEEWAY_SECONDS, IssuedTokens, StaticTokens
from tests.http_apps import bound_socket, serving, url_of

pytestmark = pytest.mark.anyio

RESOURCE = "https://codemode.example.org/mcp"
KEY, OTHER = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """The issuer's HTTP server needs asyncio."""
    return request.param


@asynccontextmanager
async def issuer(fetched: list[str]):
    """Serve the keys of an issuer; yields its settings."""

    async def keys(_request) -> JSONResponse:
        fetched.append("keys")
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
        return JSONResponse({"keys": [{**public, "kid": "one", "use": "sig", "alg": "RS256"}]})

    async def deep(_request) -> Response:
        return Response("[" * 100_000)

    sock = bound_socket()
    async with serving(Starlette(routes=[Route("/.well-known/jwks.json", keys), Route("/deep", deep)]), sock):
        yield OAuthSettings(issuer=url_of(sock), resource=RESOURCE, scopes=("codemode",))


def token(settings: OAuthSettings, *, key=KEY, kid: str = "one", algorithm: str = "RS256", **changed) -> str:
    claims: dict[str, Any] = {
        "iss": settings.issuer,
        "aud": RESOURCE,
        "sub": "ada",
        "client_id": "app",
        "scope": "codemode read",
    }
    claims |= {"exp": int(time.time()) + 60, **changed}
    given = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(given, key, algorithm, {"kid": kid})


async def test_a_token_of_the_issuer_is_who_it_says():
    with anyio.fail_after(30):
        async with issuer([]) as settings:
            access = await IssuedTokens(settings).verify_token(token(settings))
    assert access is not None
    assert (access.subject, access.client_id, access.scopes) == ("ada", "app", ["codemode", "read"])


@pytest.mark.parametrize("claim", ["iat", "nbf"])
async def test_a_token_is_taken_from_an_issuer_whose_clock_is_a_little_ahead(claim):
    with anyio.fail_after(30):
        async with issuer([]) as settings:
            soon: dict[str, Any] = {claim: int(time.time()) + CLOCK_LEEWAY_SECONDS}
            later: dict[str, Any] = {claim: soon[claim] + 60}
            assert await IssuedTokens(settings).verify_token(token(settings, **soon)) is not None
            assert await IssuedTokens(settings).verify_token(token(settings, **later)) is None


async def test_a_token_that_has_just_expired_is_refused():
    with anyio.fail_after(30):
        async with issuer([]) as settings:
            now = int(time.time())
            assert await IssuedTokens(settings).verify_token(token(settings, exp=now)) is None
            assert await IssuedTokens(settings).verify_token(token(settings, exp=now + 60)) is not None


UNKNOWN = "The token is not known here"
SENSELESS = "The token is not known here, and no JSON web token that makes sense"
ALGORITHM = "The token is signed with an algorithm that is not accepted here"
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "signed by another": ({"key": OTHER}, "The signature of the token is wrong"),
    "signed by another and all else wrong too": (
        {"key": OTHER, "aud": "https://other.example.org/mcp", "exp": 1_000, "iss": None},
        "The signature of the token is wrong",
    ),
    "for another resource": ({"aud": "https://other.example.org/mcp"}, f"The audience of the token is not {RESOURCE}"),
    "of another issuer": ({"iss": "https://other.example.org"}, "The issuer of the token is not {issuer}"),
    "expired": ({"exp": 1_000}, "The token has expired"),
    "for later": ({"nbf": 9_999_999_999}, "The token is not valid yet by the clock here"),
    "without an end": ({"exp": None}, "The token lacks the claim exp"),
    "without an audience": ({"aud": None}, "The token lacks the claim aud"),
    "with an unknown key": ({"kid": "two"}, "The token is signed with a key that is unknown or cannot be used here"),
    "signed with a shared secret": ({"key": "s" * 64, "algorithm": "HS256"}, ALGORITHM),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_a_token_that_is_not_right_is_refused(case):
    changed, _ = REFUSED[case]
    with anyio.fail_after(30):
        async with issuer([]) as settings:
            verifier = IssuedTokens(settings)
            assert await verifier.verify_token(token(settings, **changed)) is None
            assert await verifier.verify_token(token(settings)) is not None


@pytest.mark.parametrize("case", REFUSED)
async def test_the_challenge_says_why_and_the_log_too(served, case, caplog):
    caplog.set_level("INFO", "codemode")
    changed, reason = REFUSED[case]
    async with issuer([]) as settings, served(oauth=settings) as server:
        app = http_app(server, Address("127.0.0.1", 0))
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            bearer = {"authorization": f"Bearer {token(settings, **changed)}"}
            said = reason.replace("{issuer}", settings.issuer)
            for path in ("/mcp", "/api/v1/tools/hot"):
                response = await client.get(path, headers=bearer)
                assert response.status_code == 401
                assert response.json() == {"error": "invalid_token", "error_description": said}
                assert f'error_description="{said}"' in response.headers["www-authenticate"]
            bearer = {"authorization": f"Bearer {token(settings)}"}
            assert (await client.get("/api/v1/tools/hot", headers=bearer)).status_code == 200
            narrow = {"authorization": f"Bearer {token(settings, scope='read')}"}
            response = await client.get("/api/v1/tools/hot", headers=narrow)
            assert (response.status_code, response.json()["error_description"]) == (403, "Required scope: codemode")
    assert [line for line in caplog.messages if "refused" in line] == [
        *[f"event='a request was refused' reason={said!r} level='info'"] * 2,
        "event='a request was refused' reason='Required scope: codemode' level='info'",
    ]


async def test_the_log_says_which_host_or_origin_was_refused(served, caplog):
    caplog.set_level("INFO", "codemode")
    async with served() as server:
        transport = httpx2.ASGITransport(http_app(server, Address("127.0.0.1", 0)))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            for header, given in (("Host", "other.example"), ("Origin", "https://other.example")):
                await client.get("/api/v1/tools/hot", headers={header: given})
                told = f"reason='serve.allowed_{header.lower()}s does not have its {header}' given={given!r}"
                assert told in caplog.messages[-1]


@pytest.mark.parametrize("host", ["::1", "0:0:0:0:0:0:0:1", "fd00::2", "127.0.0.2", "192.0.2.1"])
async def test_the_address_that_is_listened_on_is_one_that_clients_may_name(served, host):
    address = Address(host, 8000)
    async with served(tokens={"ada": "a" * 32}) as server:
        transport = httpx2.ASGITransport(http_app(server, address))
        bearer = {"authorization": f"Bearer {'a' * 32}"}
        base = f"http://{address.in_urls}:8000"
        async with httpx2.AsyncClient(transport=transport, base_url=base, headers=bearer) as client:
            assert (await client.get("/api/v1/tools/hot")).status_code == 200
            assert (await client.get("/api/v1/tools/hot", headers={"Host": "other.example"})).status_code == 421


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({"scope": "read codemode"}, 200),
        ({"scope": ["read", "codemode"]}, 200),
        ({"scope": None, "scp": ["codemode"]}, 200),
        ({"scope": [7, ["codemode"], {"codemode": 1}]}, 403),
        ({"scope": {"codemode": True}}, 403),
        ({"scope": 7}, 403),
        ({"scope": True}, 403),
    ],
)
async def test_scopes_are_words_and_anything_else_is_none(served, listening, claims, status):
    async with (
        issuer([]) as settings,
        served(oauth=settings) as server,
        listening(server) as url,
        httpx2.AsyncClient() as client,
    ):
        bearer = {"authorization": f"Bearer {token(settings, **claims)}"}
        response = await client.get(url.replace("/mcp", "/api/v1/tools/hot"), headers=bearer)
    assert response.status_code == status


@pytest.mark.parametrize("static", [True, False])
async def test_of_a_token_that_is_none_no_more_is_said_and_of_none_what_is_wanted(served, listening, static):
    async with (
        issuer([]) as settings,
        served(oauth=None if static else settings, tokens={"ada": "a" * 32}) as server,
        listening(server) as url,
        httpx2.AsyncClient() as client,
    ):
        for given, said in (("b" * 32, UNKNOWN if static else SENSELESS), (None, "Authentication required")):
            response = await client.get(url, headers={"authorization": f"Bearer {given}"} if given else {})
            assert (response.status_code, response.json()["error_description"]) == (401, said)


@pytest.mark.parametrize("resource", ['https://a"b\\c/\u00e9', f"https://{'x' * 9_000}"])
async def test_a_reason_has_the_characters_and_the_length_of_a_header(served, resource):
    async with issuer([]) as settings, served(oauth=settings.model_copy(update={"resource": resource})) as server:
        transport = httpx2.ASGITransport(http_app(server, Address("127.0.0.1", 0)))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            bearer = {"authorization": f"Bearer {token(settings)}"}
            said = (await client.get("/mcp", headers=bearer)).json()["error_description"]
    assert re.fullmatch(r'The audience of the token is not https://[^"\\\x7f-\U0010ffff]{1,300}', said)
    assert len(said) <= 300


@pytest.mark.parametrize("text", ["", "x", "a.b.c", "eyJhbGciOiJub25lIn0.e30.", "\x00" * 100])
async def test_what_is_no_token_is_refused(text):
    with anyio.fail_after(30):
        async with issuer([]) as settings:
            assert await IssuedTokens(settings).verify_token(text) is None


async def test_unknown_keys_do_not_make_us_ask_the_issuer_again_and_again():
    fetched: list[str] = []
    with anyio.fail_after(30):
        async with issuer(fetched) as settings:
            verifier = IssuedTokens(settings)
            for number in range(20):
                await verifier.verify_token(token(settings, kid=f"unknown{number}"))
    assert len(fetched) == 1


async def test_static_tokens_name_their_holder_and_nobody_else():
    verifier = StaticTokens({"ada": "a" * 32, "bob": "b" * 32})
    ada = await verifier.verify_token("a" * 32)
    assert ada is not None
    assert ada.client_id == "ada"
    for wrong in ("", "a" * 31, "a" * 33, "A" * 32, "\ud800"):
        assert await verifier.verify_token(wrong) is None


def metadata(issuer: str, keys: str) -> dict[str, str]:
    return {"issuer": issuer, "jwks_uri": keys}


ISSUER = "https://login.example.org"
REALM = f"{ISSUER}/realm"
KEYS = "https://keys.example.org/certs"
PLACES = {
    "OAuth": (ISSUER, "/.well-known/oauth-authorization-server", KEYS),
    "OpenID Connect": (ISSUER, "/.well-known/openid-configuration", KEYS),
    "OAuth with a path": (REALM, "/.well-known/oauth-authorization-server/realm", KEYS),
    "OpenID Connect with a path": (REALM, "/realm/.well-known/openid-configuration", KEYS),
    "no metadata": (REALM, "/elsewhere", f"{REALM}/.well-known/jwks.json"),
    "a slash at its end": (f"{ISSUER}/", "/.well-known/openid-configuration", KEYS),
}


def site(answers: dict[str, Any]) -> httpx2.AsyncClient:
    """A client of an issuer that has these documents."""

    async def answer(request: httpx2.Request) -> httpx2.Response:
        said = answers.get(request.url.path)
        return httpx2.Response(404) if said is None else httpx2.Response(200, json=said)

    return httpx2.AsyncClient(transport=httpx2.MockTransport(answer))


@pytest.mark.parametrize("case", PLACES)
async def test_the_keys_are_where_the_metadata_of_the_issuer_says(case):
    named, path, place = PLACES[case]
    async with site({path: metadata(named, KEYS)}) as client:
        assert place_of_keys(named, await issuer_metadata(named, client)) == place


NOT_FOLLOWED = {
    "of another issuer": (
        metadata(f"{ISSUER}/", KEYS),
        f"the issuer is called {ISSUER}/, and serve.oauth.issuer is {ISSUER}",
    ),
    "without TLS": (metadata(ISSUER, "http://10.0.0.1/certs"), "http://10.0.0.1/certs, which is not an https address"),
}


@pytest.mark.parametrize("case", NOT_FOLLOWED)
async def test_metadata_that_is_not_the_issuers_is_not_followed(case):
    said, problem = NOT_FOLLOWED[case]
    async with site({"/.well-known/oauth-authorization-server": said}) as client:
        with pytest.raises(KeysError, match=f"{re.escape(problem)}$"):
            await issuer_metadata(ISSUER, client)


@pytest.mark.parametrize("path", ["/not-there", "/deep"])
async def test_keys_that_cannot_be_had_are_an_error_that_the_operator_reads(path):
    with anyio.fail_after(30), structlog.testing.capture_logs() as logs:
        async with issuer([]) as settings:
            away = settings.model_copy(update={"jwks_url": f"{settings.issuer}{path}"})
            assert await IssuedTokens(away).verify_token(token(away)) is None
    assert [(entry["log_level"], entry["reason"]) for entry in logs] == [
        ("error", f"{settings.issuer}{path} has none"),
    ]
