"""Full definitions from a server that lists its tools with a line each (the client role of tool_descriptions.py).

Above: upstream.py, when a description is asked for, and again after a reconnect. Below: one connection. Reading a
description is also what makes the server take calls of that tool in its session. Everything in an answer was written
by the server.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcp import MCPError
from pydantic import ValidationError

from broker.listing import spec_of
from broker.tool_descriptions import DESCRIPTION_REQUIRED, MOST_TOOLS, RESOURCE_NAME, RESOURCE_URI, error_code, uri_of
from codegen import ToolSpec
from codegen.plain_text import paragraph

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from broker.connection import Connection

# Where a server may put more than MCP's own fields, with the words that go before it.
_GUIDANCE = {
    "examples": "Examples",
    "usage": "Usage",
    "usage_guidance": "Usage",
    "usageGuidance": "Usage",
    "error_guidance": "Errors",
    "errorGuidance": "Errors",
    "error_handling": "Errors",
    "errorHandling": "Errors",
}
_GUIDANCE_CHARACTERS = 4_000


async def speaks_extension(connection: Connection) -> bool:
    """Tell whether a server has the resource `tool_descriptions`. A server that fails to say has not."""
    try:
        return any(
            resource.name == RESOURCE_NAME or resource.uri.partition("?")[0] == RESOURCE_URI
            for resource in await connection.list_resources()
        )
    except (MCPError, ValidationError, RuntimeError):
        return False


async def read_descriptions(connection: Connection, server: str, names: Sequence[str]) -> dict[str, ToolSpec]:
    """Return the full definitions of these tools, by name; those that the server does not describe are left out.

    Raises:
        MCPError: The server answered with an error, or the connection ended.
    """
    found: dict[str, ToolSpec] = {}
    for start in range(0, len(names), MOST_TOOLS):
        batch = names[start : start + MOST_TOOLS]
        texts = await connection.read_resource(uri_of(batch))
        for name, said in _entries(texts, batch):
            spec = spec_of(server, {**said, "name": name})
            if isinstance(spec, ToolSpec):
                found[name] = spec
    return found


def wants_description(answer: Any) -> bool:
    """Tell whether a result of `tools/call` says that the tool was not executed for want of its description."""
    if not isinstance(answer, dict) or answer.get("isError") is not True:
        return False
    content = answer.get("content")
    blocks = content if isinstance(content, list) else []
    said = [answer.get("structuredContent"), *(_decoded(b.get("text")) for b in blocks if isinstance(b, dict))]
    return any(error_code(one) == DESCRIPTION_REQUIRED for one in said)


def error_wants_description(error: MCPError) -> bool:
    """Tell the same of a JSON-RPC error."""
    return error_code(error.error.data) == DESCRIPTION_REQUIRED


def _entries(texts: Iterable[str], names: Sequence[str]) -> Iterable[tuple[str, dict[str, Any]]]:
    """Yield each tool that was asked for with what is said of it: an object by name, or a list, maybe as `tools`."""
    for text in texts:
        document = _decoded(text)
        said = document.get("tools", document) if isinstance(document, dict) else document
        if isinstance(said, dict) and "inputSchema" in said and len(names) == 1:
            said = {names[0]: said}
        if isinstance(said, list):
            said = {one["name"]: one for one in said if isinstance(one, dict) and isinstance(one.get("name"), str)}
        for name in names if isinstance(said, dict) else ():
            entry = said.get(name)
            if isinstance(entry, dict) and "error" not in entry:
                yield name, _with_guidance(entry)


def _with_guidance(entry: dict[str, Any]) -> dict[str, Any]:
    """Put examples and guidance below the description, which is what a model reads and a digest covers."""
    description = entry.get("description")
    parts = [description if isinstance(description, str) else ""]
    for key, title in _GUIDANCE.items():
        said = entry.get(key)
        if said:
            text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
            parts.append(f"{title}: {paragraph(text, _GUIDANCE_CHARACTERS)}")
    return {**entry, "description": "\n\n".join(part for part in parts if part)}


def _decoded(text: Any) -> Any:
    if not isinstance(text, str) or not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
