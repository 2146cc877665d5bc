"""The broker as a client: `upstream_client.py URL`. Lists the tools of the server there and calls each once.

Whoever is asked leaves each field of a form as the server suggests it, and says yes where it suggests nothing.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import anyio

from broker import Answer, Broker, Config, Form, FormReply, Grant, Question, ServerConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

SECONDS = 60
SAMPLES = {"number": 2, "integer": 2, "string": "text", "boolean": True, "array": [], "object": {}, "null": None}


def sample(schema: dict[str, Any], focal: dict[str, Any]) -> dict[str, Any]:
    """Return arguments that fit a simple schema; what is to hold a schema gets that of the first tool."""
    properties = schema.get("properties", {})
    return {
        key: focal if "schema" in key.lower() else one.get("default", SAMPLES.get(one.get("type"), "text"))
        for key, one in properties.items()
    }


class Person:
    """Answers what servers ask."""

    async def answer(self, question: Question) -> Sequence[Answer]:
        """Allow nothing: all that is called here is granted."""
        raise AssertionError(question.as_text())

    async def fill(self, form: Form) -> FormReply:
        """Accept a form."""
        return FormReply("accept", {one.name: True if one.default is None else one.default for one in form.fields})


async def main(url: str) -> None:
    # The suite may name the calls that it wants.
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    server = ServerConfig(url=url, elicitation=True, connect_timeout_seconds=SECONDS, call_timeout_seconds=SECONDS)
    config = Config(servers={"suite": server})
    async with Broker(config, startup_seconds=SECONDS, opens_sandbox=False) as broker:
        session = broker.session(grants=[Grant("suite.*")], answerer=Person())
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
