"""The keys of an issuer: which documents are believed, and how long."""

from __future__ import annotations

import gzip
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel
import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from broker.server.issuer_keys import (
    DOCUMENT_BYTES,
    IssuerKeys,
    KeysError,
    fetch_keys,
    issuer_metadata,
    places_of_metadata,
)
from broker.server.settings import OAuthSettings
from tests.http_apps import bound_socket, serving, url_of

pytestmark = pytest.mark.anyio

PUBLIC = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP256R1()).public_key()))


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """The issuer's HTTP server needs asyncio."""
    return request.param


def keys_of(*names: str) -> dict[str, Any]:
    return {"keys": [{**PUBLIC, "kid": name, "use": "sig", "alg": "ES256"} for name in names]}


@dataclass
class Issuer:
    """What is where: a status and a document by path; `asked` are the paths so far."""

    url: str
    says: dict[str, tuple[int, Any]]
    asked: list[str] = field(default_factory=list)

    async def answer(self, request) -> Response:
        self.asked.append(request.url.path)
        status, document = self.says.get(request.url.path, (404, None))
        return document if isinstance(document, Response) else JSONResponse(document, status)

    @property
    def settings(self) -> OAuthSettings:
        return OAuthSettings(issuer=self.url, resource="https://codemode.example.org/mcp", jwks_url=f"{self.url}/keys")


@asynccontextmanager
async def saying(**says: tuple[int, Any]):
    """An issuer that answers so."""
    sock = bound_socket()
    issuer = Issuer(url_of(sock), {f"/{name}": said for name, said in says.items()})
    with anyio.fail_after(60):
        async with serving(Starlette(routes=[Route("/{path:path}", issuer.answer)]), sock):
            yield issuer


@pytest.mark.parametrize(("names", "found"), [(["one"], True), (["one", "two"], False)])
async def test_a_token_that_names_no_key_is_signed_with_the_only_one_there_is(names, found):
    async with saying(keys=(200, keys_of(*names))) as issuer:
        assert (await IssuerKeys(issuer.settings).key("") is not None) is found


async def test_a_key_that_the_issuer_took_back_is_believed_for_an_hour():
    async with saying(keys=(200, keys_of("one"))) as issuer:
        keys = IssuerKeys(issuer.settings)
        assert await keys.key("one") is not None
        issuer.says["/keys"] = 200, keys_of("two")
        assert await keys.key("one") is not None
        keys._fetched_at -= 3_601
        assert (await keys.key("one"), issuer.asked) == (None, ["/keys", "/keys"])


async def test_many_tokens_at_once_fetch_the_keys_once_and_a_failure_is_not_repeated_for_each():
    async with saying(keys=(200, {"keys": []})) as issuer:
        keys = IssuerKeys(issuer.settings)
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(keys.key, "one")
        assert (await keys.key("two"), issuer.asked) == (None, ["/keys"])


@pytest.mark.parametrize(("status", "found"), [(200, ["one"]), (203, None), (404, None), (500, None)])
async def test_keys_are_those_of_an_answer_that_is_a_success(status, found):
    async with saying(keys=(status, keys_of("one"))) as issuer, httpx2.AsyncClient() as client:
        if found is None:
            with pytest.raises(KeysError, match="/keys has none"):
                await fetch_keys(f"{issuer.url}/keys", client)
        else:
            assert list(await fetch_keys(f"{issuer.url}/keys", client)) == found


async def endless():
    while True:
        yield b"[" * 65_536
        await anyio.lowlevel.checkpoint()  # who has gone is noticed then


COMPRESSED = gzip.compress(json.dumps(keys_of("one")).encode())
UNUSABLE = {
    "endless": (lambda: StreamingResponse(endless()), f"answers with more than {DOCUMENT_BYTES} bytes"),
    "very many keys": (lambda: JSONResponse(keys_of(*map(str, range(2_000)))), "answers with more than"),
    "compressed": (lambda: Response(COMPRESSED, headers={"Content-Encoding": "gzip"}), "has none"),
    "a list as id": (lambda: JSONResponse({"keys": [{**PUBLIC, "kid": ["one"]}]}), "has none that can be used"),
    "a list as algorithm": (lambda: JSONResponse({"keys": [{**PUBLIC, "alg": ["ES256"]}]}), "has none that can be"),
}


@pytest.mark.parametrize("case", UNUSABLE)
async def test_a_document_that_nobody_means_is_left_and_gives_no_key(case):
    answer, said = UNUSABLE[case]
    async with saying(keys=(200, None)) as issuer, httpx2.AsyncClient() as client:
        issuer.says["/keys"] = 200, answer()
        with pytest.raises(KeysError, match=said):
            await fetch_keys(f"{issuer.url}/keys", client)
        issuer.says["/keys"] = 200, answer()
        keys = IssuerKeys(issuer.settings)
        assert await keys.key("one") is None
        issuer.says["/keys"] = 200, keys_of("one")
        keys._fetched_at -= 3_601
        assert await keys.key("one") is not None


async def test_what_an_issuer_calls_itself_is_told_in_short_and_acts_on_no_terminal():
    async with saying() as issuer, httpx2.AsyncClient() as client:
        metadata = {"issuer": "\x1b[31m\u202e" + "x" * 100_000, "jwks_uri": f"{issuer.url}/keys"}
        issuer.says["/.well-known/oauth-authorization-server"] = 200, metadata
        with pytest.raises(KeysError, match=r"the issuer is called xxx") as caught:
            await issuer_metadata(issuer.url, client)
    assert len(str(caught.value)) <= 500


@pytest.mark.parametrize("named", [None, "", "https://other.example.org", "SELF/"])
async def test_metadata_that_does_not_name_its_issuer_is_not_believed(named):
    async with saying() as issuer, httpx2.AsyncClient() as client:
        metadata = {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/elsewhere"}
        place = "/.well-known/oauth-authorization-server"
        issuer.says[place] = 200, metadata
        assert await issuer_metadata(issuer.url, client) == metadata
        issuer.says[place] = 200, metadata | {"issuer": named and named.replace("SELF", issuer.url)}
        with pytest.raises(KeysError, match="the issuer is called"):
            await issuer_metadata(issuer.url, client)


@pytest.mark.parametrize("issuer", ["https://a.example/tenant", "https://a.example/tenant/"])
def test_metadata_is_looked_for_where_both_protocols_have_it(issuer):
    assert list(places_of_metadata(issuer)) == [
        "https://a.example/.well-known/oauth-authorization-server/tenant",
        "https://a.example/.well-known/openid-configuration/tenant",
        "https://a.example/tenant/.well-known/openid-configuration",
    ]
