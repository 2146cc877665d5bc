"""Full definitions from a server that lists its tools with a line each (the client role of tool_descriptions.py).

Above: listed_tools.py, when a description is asked for, and again after a reconnect. Below: one connection. Reading a
description is also what makes the server take calls of that tool in its session. Everything in an answer was written
by the server.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mcp import MCPError
from pydantic import ValidationError

from broker.disclosure.tool_descriptions import (
    DESCRIPTION_REQUIRED,
    MOST_TOOLS,
    RESOURCE_NAME,
    RESOURCE_URI,
    error_code,
    error_message,
    uri_of,
)
from broker.errors import UnavailableError
from broker.texts import call_texts
from broker.upstreams.listing import spec_of
from codegen import ToolSpec
from codegen.plain_text import paragraph

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from broker.upstreams.connection import Connection
    from broker.upstreams.listing import Listing

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


class NotTakenError(Exception):
    """A server did not execute a call for want of its tool's description; the text is the server's, not bounded."""


class RemoteDescriptions:
    """What one server has been asked to describe, over all of its connections."""

    def __init__(self, server: str, on_change: Callable[[], None]) -> None:
        """Start with nothing read; `on_change` is called when a tool is found to be different than it was."""
        self._server = server
        self._on_change = on_change
        self._is_spoken = False
        self._listed: dict[str, ToolSpec] = {}
        self._read: dict[str, ToolSpec] = {}

    async def complete(self, connection: Connection, listing: Listing) -> Listing:
        """Return a new listing with the definitions that were read before, read again, and the others as incomplete.

        They may have changed, and a new session of the server does not know what was read in the one before.

        Raises:
            MCPError: The server answered with an error, or the connection ended.
        """
        self._is_spoken = await speaks_extension(connection)
        if not self._is_spoken:
            return listing
        self._listed = {spec.name: spec for spec in listing.tools}
        again = [spec for spec in listing.tools if spec.name in self._read]
        self._read = await read_descriptions(connection, again) if again else {}
        tools = tuple(self._read.get(spec.name, spec) for spec in listing.tools)
        return replace(listing, tools=tools, incomplete=frozenset(spec.name for spec in tools) - self._read.keys())

    async def read(self, connection: Connection, names: Sequence[str]) -> list[ToolSpec]:
        """Return the full definitions of tools that were listed with a line; those that cannot be read are left out.

        Raises:
            MCPError: The server answered with an error, or the connection ended.
        """
        listed = [self._listed[name] for name in names if name in self._listed]
        found = await read_descriptions(connection, listed) if self._is_spoken else {}
        self._read |= found
        return list(found.values())

    def has_read(self, name: str) -> bool:
        """Tell whether what is known of a tool was read from its description, so that `call` has to send its calls."""
        return name in self._read

    async def call(
        self, connection: Connection, name: str, send: Callable[[], Awaitable[dict[str, Any]]]
    ) -> dict[str, Any]:
        """Send a call; once more after its description was read, if the server says that it executed nothing.

        Raises:
            UnavailableError: The tool has changed since it was described; nothing was executed.
            NotTakenError: The server says so again, though its description was read.
            MCPError: The server answered with an error, or the connection ended.
        """
        try:
            return await _taken(send)
        except NotTakenError:
            pass
        known = self._read[name]
        now = (await read_descriptions(connection, [self._listed.get(name, known)])).get(name)
        if now is None or now.digest != known.digest:
            self._on_change()  # the tools are listed again, and with that lapses what was described
            raise UnavailableError(self._server, call_texts.changed_at_server(self._server, name))
        return await _taken(send)


async def speaks_extension(connection: Connection) -> bool:
    """Tell whether a server has the resource `tool_descriptions`. A server that fails to say has not."""
    try:
        return any(
            resource.name == RESOURCE_NAME or resource.uri.partition("?")[0] == RESOURCE_URI
            for resource in await connection.list_resources()
        )
    except (MCPError, ValidationError, RuntimeError):
        return False


async def read_descriptions(connection: Connection, listed: Sequence[ToolSpec]) -> dict[str, ToolSpec]:
    """Return the full definitions of tools, by name; those that the server does not describe are left out.

    A tool that it lists and answers to with an error has no other definition than the one that it listed: the tools
    of the disclosure itself are often so.

    Raises:
        MCPError: The server answered with an error, or the connection ended.
    """
    found: dict[str, ToolSpec] = {}
    for start in range(0, len(listed), MOST_TOOLS):
        batch = {spec.name: spec for spec in listed[start : start + MOST_TOOLS]}
        texts = await connection.read_resource(uri_of(list(batch)))
        for name, said in _entries(texts, list(batch)):
            held = batch[name]
            spec = held if "error" in said else spec_of(held.server, {**_with_guidance(said), "name": name})
            if isinstance(spec, ToolSpec):
                found[name] = spec
    return found


async def _taken(send: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
    try:
        result = await send()
    except MCPError as error:
        if not error_wants_description(error):
            raise
        raise NotTakenError(error_message(error.error.data) or error.error.message) from None
    if wants_description(result):
        raise NotTakenError(next(filter(None, map(error_message, _said(result))), ""))
    return result


def wants_description(answer: Any) -> bool:
    """Tell whether a result of `tools/call` says that the tool was not executed for want of its description."""
    if not isinstance(answer, dict) or answer.get("isError") is not True:
        return False
    return any(error_code(one) == DESCRIPTION_REQUIRED for one in _said(answer))


def _said(answer: dict[str, Any]) -> list[Any]:
    content = answer.get("content")
    blocks = content if isinstance(content, list) else []
    return [answer.get("structuredContent"), *(_decoded(b.get("text")) for b in blocks if isinstance(b, dict))]


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
            if isinstance(entry, dict):
                yield name, entry


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
