"""The broker as a client: `upstream_client.py URL`. Lists the tools of the server there and calls each once."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import anyio

from broker import Broker, Config, Grant, ServerConfig

SAMPLES = {"number": 2, "integer": 2, "string": "text", "boolean": True, "array": [], "object": {}, "null": None}


def sample(schema: dict[str, Any], focal: dict[str, Any]) -> dict[str, Any]:
    """Return arguments that fit a simple schema; what is to hold a schema gets that of the first tool."""
    properties = schema.get("properties", {})
    return {
        key: focal if "schema" in key.lower() else one.get("default", SAMPLES.get(one.get("type"), "text"))
        for key, one in properties.items()
    }


async def main(url: str) -> None:
    # The suite may name the calls that it wants.
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    config = Config(servers={"suite": ServerConfig(url=url, connect_timeout_seconds=10, call_timeout_seconds=20)})
    async with Broker(config, startup_seconds=20, opens_sandbox=False) as broker:
        session = broker.session(grants=[Grant("suite.*")])
        schemas = {entry.spec.name: entry.spec.input_schema for entry in broker.catalog.of_server("suite")}
        focal: dict[str, Any] = next(iter(schemas.values()), {})
        calls = [(call["name"], _given(call)) for call in context.get("toolCalls", [])]
        named = {name for name, _ in calls}
        calls += [(name, sample(schema, focal)) for name, schema in schemas.items() if name not in named]
        for name, arguments in calls:
            await session.get_tool_details([f"suite.{name}"])
            await session.call_directly(f"suite.{name}", arguments)


def _given(call: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call without those that are null: what is not given is left out."""
    return {key: value for key, value in call.get("arguments", {}).items() if value is not None}


anyio.run(main, sys.argv[-1])
