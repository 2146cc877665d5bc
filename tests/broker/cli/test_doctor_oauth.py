"""What `codemode doctor` says of the issuer in `serve.oauth`."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from broker.cli.doctor_oauth import oauth_findings
from broker.server.settings import OAuthSettings
from tests.broker.server.issuing import issuing
from tests.http_apps import bound_socket, serving, url_of

pytestmark = pytest.mark.anyio

RESOURCE = "https://codemode.example.org/mcp"
METADATA = "/.well-known/oauth-authorization-server"
KEY = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP256R1()).public_key()))


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """The HTTP servers need asyncio."""
    return request.param


@asynccontextmanager
async def site(documents, **headers):
    """An issuer that has these documents; yields its address. `{url}` in them is that."""

    async def answer(request):
        said = documents.get(request.url.path)
        text = json.dumps(said).replace("{url}", url)
        return JSONResponse(json.loads(text), 404 if said is None else 200, headers=headers)

    sock = bound_socket()
    url = url_of(sock)
    with anyio.fail_after(30):
        async with serving(Starlette(routes=[Route("/{path:path}", answer)]), sock, date_header=not headers):
            yield url


WHOLE: dict[str, Any] = {
    METADATA: {
        "issuer": "{url}",
        "jwks_uri": "{url}/keys",
        "registration_endpoint": "{url}/register",
        "code_challenge_methods_supported": ["S256"],
    },
    "/keys": {"keys": [KEY | {"kid": "one"}]},
}


def but(**changed):
    """Return the documents with other metadata; None leaves something out."""
    return WHOLE | {METADATA: {key: one for key, one in (WHOLE[METADATA] | changed).items() if one is not None}}


async def found(issuer, **settings):
    """Return the findings as lines."""
    oauth = OAuthSettings(issuer=issuer, resource=RESOURCE, **settings)
    return [
        f"{'ok' if one.is_right else 'wrong'} {one.subject}: {one.found}"
        + (f" -> {one.what_to_do}" * bool(one.what_to_do))
        async for one in oauth_findings(oauth)
    ]


async def test_an_issuer_with_which_all_is_right_has_its_name_its_audience_and_its_keys_said():
    with anyio.fail_after(30):
        async with issuing() as issuer:
            assert await found(issuer.url) == [
                f"ok oauth issuer: {issuer.url}, whose tokens are for {RESOURCE}",
                "ok oauth keys: 1 key, for ES256",
            ]


CORRECT = "Correct serve.oauth.issuer: it is the name that the issuer gives itself, to the last slash."
PLACE = "Set serve.oauth.jwks_url to the address of the issuer's keys."
RIGHT = f"ok oauth issuer: {{url}}, whose tokens are for {RESOURCE}"
ONE_KEY = "ok oauth keys: 1 key, for ES256"
OTHER_NAME = f"at {{url}}{METADATA} the issuer is called {{url}}/, and serve.oauth.issuer is {{url}}"
NO_METADATA = (
    "no metadata that names keys, so that no client can log in; looked at "
    f"{{url}}{METADATA}, {{url}}/.well-known/openid-configuration"
)
NO_PKCE = "its metadata does not list S256 in code_challenge_methods_supported: clients do not log in"
FAULTS = {
    "another name": (but(issuer="{url}/"), [f"wrong oauth issuer: {OTHER_NAME} -> {CORRECT}"]),
    "no metadata": (
        {"/.well-known/jwks.json": WHOLE["/keys"]},
        [f"wrong oauth issuer: {NO_METADATA} -> {CORRECT}", ONE_KEY],
    ),
    "no keys": (WHOLE | {"/keys": None}, [RIGHT, f"wrong oauth keys: {{url}}/keys has none -> {PLACE}"]),
    "no key that can be used": (
        WHOLE | {"/keys": {"keys": []}},
        [RIGHT, f"wrong oauth keys: {{url}}/keys has none that can be used -> {PLACE}"],
    ),
    "a key beside one that cannot be used": (
        WHOLE | {"/keys": {"keys": [KEY | {"crv": "unheard-of"}, KEY]}},
        [RIGHT, ONE_KEY],
    ),
    "no PKCE": (
        but(code_challenge_methods_supported=None),
        [f"wrong oauth issuer: {NO_PKCE} -> Turn on PKCE with S256 at the issuer.", ONE_KEY],
    ),
    "no registration": (
        but(registration_endpoint=None),
        [f"{RIGHT}; clients cannot register there by themselves, and each needs a client id", ONE_KEY],
    ),
}


@pytest.mark.parametrize("case", FAULTS)
async def test_what_would_keep_clients_out_is_said(case):
    documents, said = FAULTS[case]
    async with site(documents) as url:
        assert await found(url) == [line.replace("{url}", url) for line in said]


async def test_keys_for_other_algorithms_than_the_config_believes_are_wrong():
    async with site(WHOLE) as url:
        assert (await found(url, algorithms=("RS256",)))[1] == (
            "wrong oauth keys: 1 key, for ES256, and serve.oauth.algorithms has RS256 "
            "-> Name there what the issuer signs with."
        )


async def test_an_issuer_that_nobody_reaches_is_one_line():
    with bound_socket() as sock:  # and nobody listens
        url = url_of(sock)
        [line] = await found(url)
    assert line == (
        f"wrong oauth issuer: {url}{METADATA} does not answer: ConnectError "
        "-> Correct it in serve.oauth, or let this machine reach it."
    )


@pytest.mark.parametrize(
    ("ahead", "age", "said"),
    [
        (3_600, 0, "s behind that of the issuer: its tokens are not valid yet -> Set the clock of this machine."),
        (-3_600, 0, "s ahead of that of the issuer: its tokens have expired early -> Set the clock of this machine."),
        (-3_600, 3_600, None),
    ],
)
async def test_a_clock_that_is_not_the_issuers_is_said(ahead, age, said):
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=ahead), usegmt=True)
    async with site(WHOLE, date=date, age=str(age)) as url:
        lines = (await found(url))[2:]
    assert [line.startswith("wrong oauth clock: the clock here is 3") and line.endswith(said) for line in lines] == (
        [True] if said else []
    )


async def test_doctor_says_it(codemode, tmp_path):
    async with site(but(issuer="{url}/")) as url:
        config = tmp_path / "mcp.json"
        config.write_text(json.dumps({"mcpServers": {}, "serve": {"oauth": {"issuer": url, "resource": RESOURCE}}}))
        done = await anyio.to_thread.run_sync(codemode, "doctor", "--config", str(config))
    assert done.returncode == 2
    assert f"wrong  oauth issuer: at {url}{METADATA} the issuer is called {url}/" in done.stdout
