"""The broker at a server that wants OAuth: `oauth_client.py URL`. Logs in, lists the tools there and calls each once.

The person at the browser is a request that follows the suite's redirects; everything else is what `codemode mcp login`
and the broker do.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from typing import Any

import anyio
import httpx2

from broker import Broker, Config, Grant, ServerConfig
from broker.errors import LoginError
from broker.upstreams.login import login
from broker.upstreams.oauth_settings import OAuthClient

SECONDS = 20


def settings(url: str, context: dict[str, Any]) -> ServerConfig:
    """Return the config of the suite's server, with the credentials that the suite hands out."""
    known = {key: context[key] for key in ("client_id", "client_secret", "issuer") if key in context}
    return ServerConfig(url=url, oauth=OAuthClient(**known), connect_timeout_seconds=SECONDS)


async def main(url: str) -> None:
    server = settings(url, json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}"))
    async with anyio.create_task_group() as tasks:

        async def browse(url: str) -> None:
            with suppress(httpx2.HTTPError):  # nobody waits any more where it leads to
                async with httpx2.AsyncClient(follow_redirects=True) as browser:
                    await browser.get(url)

        def show(url: str) -> None:
            tasks.start_soon(browse, url)

        with suppress(LoginError):  # what the suite is about, where it is one
            await login(server, show)
        async with Broker(Config(servers={"suite": server}), startup_seconds=SECONDS, opens_sandbox=False) as broker:
            session = broker.session(grants=[Grant("suite.*")])
            for entry in list(broker.catalog.of_server("suite")):
                await session.get_tool_details([entry.qualified_name])
                await session.call_directly(entry.qualified_name, {})


anyio.run(main, sys.argv[-1])
