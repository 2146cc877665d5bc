"""Who may use the HTTP server."""

from __future__ import annotations

import json
import socket
import time
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import jwt
import pytest
import uvicorn
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from broker.server.settings import OAuthSettings
from broker.server.tokens import IssuedTokens, StaticTokens

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

    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        app = Starlette(routes=[Route("/.well-known/jwks.json", keys)])
        http = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(http.serve, [sock])
            while not http.started:
                await anyio.lowlevel.checkpoint()
            url = f"http://127.0.0.1:{sock.getsockname()[1]}"
            yield OAuthSettings(issuer=url, resource=RESOURCE, scopes=("codemode",))
            http.should_exit = True


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


REFUSED: dict[str, dict[str, Any]] = {
    "signed by another": {"key": OTHER},
    "for another resource": {"aud": "https://other.example.org/mcp"},
    "of another issuer": {"iss": "https://other.example.org"},
    "expired": {"exp": 1_000},
    "without an end": {"exp": None},
    "without an audience": {"aud": None},
    "with an unknown key": {"kid": "two"},
    "signed with a shared secret": {"key": "s" * 64, "algorithm": "HS256"},
}


@pytest.mark.parametrize("case", REFUSED)
async def test_a_token_that_is_not_right_is_refused(case):
    with anyio.fail_after(30):
        async with issuer([]) as settings:
            verifier = IssuedTokens(settings)
            assert await verifier.verify_token(token(settings, **REFUSED[case])) is None
            assert await verifier.verify_token(token(settings)) is not None


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
