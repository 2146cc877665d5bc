"""A rule about a principal decides for whoever authenticates as that one over HTTP, and for nobody else."""

from __future__ import annotations

from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.auth.middleware.bearer_auth import AuthorizationContext
from pydantic import ValidationError

from broker import Broker
from broker.authorization.policy_config import PolicyConfig
from broker.config.config import Config
from broker.server import BrokerServer, ServeSettings
from broker.server.identity import principal_of_owner
from tests.broker.server.principals import TOKENS
from tests.broker.server.test_tokens import issuer, token

pytestmark = pytest.mark.anyio

ADD = "from tools import desk\nreturn await desk.add(a=1)"


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """Serving HTTP needs asyncio."""
    return request.param


@pytest.fixture
def decided(desk_server, listening):
    """Tells, of a rule about principals with one effect and all else with the other, whether each caller may add."""

    async def decide(principals: str, effect: str, claims: dict[str, dict[str, Any]]) -> dict[str, bool]:
        other = {"allow": "deny", "deny": "allow"}[effect]
        rules = [
            {"tools": "desk.*", "principals": principals, "effect": effect},
            {"tools": "desk.*", "effect": other},
        ]
        with anyio.fail_after(60):
            async with (
                issuer([]) as oauth,
                Broker(
                    Config(policy=PolicyConfig.model_validate({"rules": rules})), servers={"desk": desk_server}
                ) as broker,
                listening(BrokerServer(broker, ServeSettings(tokens=TOKENS, oauth=oauth))) as url,
            ):
                issued = {name: token(oauth, **changed) for name, changed in claims.items()}
                return {name: await may_add(url, bearer) for name, bearer in (TOKENS | issued).items()}

    return decide


async def may_add(url: str, bearer: str) -> bool:
    headers = {"Authorization": f"Bearer {bearer}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        await client.call_tool("get_tool_details", {"tools": ["desk.add"]})
        envelope = (await client.call_tool("execute_code", {"code": ADD})).structured_content
    refused = (envelope["error"] or {}).get("type") == "ToolRefusedError"
    assert refused or envelope["value"] == 3
    return not refused


@pytest.mark.parametrize("effect", ["allow", "deny"])
async def test_a_rule_about_a_token_of_the_config_is_about_the_name_it_has_there(decided, effect):
    theirs = await decided("ada", effect, {"ada of an issuer": {"sub": "ada", "client_id": "ada"}})
    assert theirs == {"ada": effect == "allow", "bob": effect != "allow", "ada of an issuer": effect != "allow"}


@pytest.mark.parametrize("effect", ["allow", "deny"])
async def test_a_rule_about_a_subject_is_about_no_subject_that_looks_like_two_words(decided, effect):
    theirs = await decided(
        "ada app *",
        effect,
        {
            "she": {},
            "she elsewhere": {"client_id": "other"},
            "a longer name": {"sub": "ada app x"},
            "an encoded one": {"sub": "ada%20app"},
            "no subject": {"sub": None, "client_id": "ada app"},
        },
    )
    assert [name for name, allowed in theirs.items() if allowed is (effect == "allow")] == ["she"]


def test_two_subjects_of_one_client_are_two_principals_also_without_an_issuer():
    owners = [AuthorizationContext(client_id="app", issuer=None, subject=subject) for subject in ("ada", "bob", "app")]
    assert [principal_of_owner(owner) for owner in owners] == ["ada app", "bob app", "app"]


def test_a_token_of_nobody_is_none():
    with pytest.raises(ValidationError, match="an empty name stands for nobody"):
        ServeSettings(tokens={"": TOKENS["ada"]})
