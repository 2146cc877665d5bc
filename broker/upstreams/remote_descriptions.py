"""Full definitions from a server that lists its tools with a line each (the client role of tool_descriptions.py).

Above: listed_tools.py, when a description is asked for, and again after a reconnect; calls.py, for a call that the
server refuses for want of one. Below: one connection. Reading a description is also what makes the server take calls of
that tool in its session. Everything in an answer was written by the server.
"""

from __future__ import annotations

import json
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import anyio
from mcp import MCPError
from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map
from mcp.types import CONNECTION_CLOSED, METHOD_NOT_FOUND

from broker.disclosure.tool_descriptions import (
    DESCRIPTION_REQUIRED,
    MAX_TOOLS,
    RESOURCE_NAME,
    RESOURCE_URI,
    error_code,
    error_message,
    in_one_read,
    uri_of,
)
from broker.errors import UnavailableError
from broker.texts import call_texts
from broker.upstreams.listing import is_writable, spec_of
from codegen import ToolSpec
from codegen.schemas.keywords import properties_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from broker.upstreams.connection import Connection
    from broker.upstreams.listing import Listing
    from broker.upstreams.server_config import ServerConfig


_MARGIN_SECONDS = 0.1
_URI_CHARACTERS = 1_000


class NotTakenError(Exception):
    """A server did not execute a call for want of its tool's description; the text is the server's, not bounded."""


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """One read of a tool that the server wanted before a call; `found` is None if the tool was not described."""

    found: ToolSpec | None


class RemoteDescriptions:
    """What one server has been asked to describe, over all of its connections."""

    def __init__(self, server: str, settings: ServerConfig, on_change: Callable[[], None]) -> None:
        """Start with nothing read; `on_change` is called when the tools have to be listed again.

        A tool was found to be different than it was, or the server to speak the extension or not.
        """
        self._server = server
        self._settings = settings
        self._on_change = on_change
        self._is_spoken: bool | None = None
        """Whether the server speaks the extension; None while it has not listed its resources."""
        self._uri = RESOURCE_URI
        self._listed: dict[str, ToolSpec] = {}
        self._read: dict[str, ToolSpec] = {}
        self._last_readings: dict[str, _Reading] = {}
        self._reading: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)

    async def complete(self, connection: Connection, listing: Listing) -> Listing:
        """Return a new listing with the definitions that were read before, read again, and the others as incomplete.

        They may have changed, and a new session of the server does not know what was read in the one before. One that
        the server does not describe now is as it was read before if its line is the same. While the server does not
        list its resources, tools that were listed without parameters are incomplete.

        Raises:
            MCPError: The server answered with an error, or the connection ended.
        """
        if problem := await self._ask(connection):
            listing = replace(listing, problems=(*listing.problems, problem))
        if self._is_spoken is False:
            return listing
        listed = {spec.name: spec for spec in listing.tools}
        before = self._read.copy()
        now, problem = await self._read_again(connection, [spec for name, spec in listed.items() if name in before])
        if problem:
            listing = replace(listing, problems=(*listing.problems, problem))
        kept = {
            name: spec
            for name, spec in self._read.items()
            if name in listed and (self._is_listed_as(listed[name]) or spec is not before.get(name))
        }
        self._listed, self._read = listed, kept | now
        for name in self._reading.keys() - listed.keys():
            del self._reading[name]
            self._last_readings.pop(name, None)
        tools = tuple(self._read.get(spec.name, spec) for spec in listing.tools)
        partial = [spec for spec in tools if self._is_spoken or not properties_of(spec.input_schema)]
        return replace(listing, tools=tools, incomplete=frozenset(spec.name for spec in partial) - self._read.keys())

    async def _read_again(self, connection: Connection, listed: Sequence[ToolSpec]) -> tuple[dict[str, ToolSpec], str]:
        """Return what the server now says of tools that were read before, or why it could not be read."""
        try:
            with anyio.fail_after(self._settings.connect_timeout_seconds / 4):
                return await read_descriptions(connection, listed, self._uri), ""
        except (MCPError, RuntimeError, ValueError, TimeoutError) as error:
            if isinstance(error, MCPError) and error.code == CONNECTION_CLOSED:
                raise
            return {}, f"its descriptions could not be read again ({_why(error)})"

    def _is_listed_as(self, spec: ToolSpec) -> bool:
        """Tell whether the listing before had the same line of a tool."""
        return spec.name in self._listed and self._listed[spec.name].digest == spec.digest

    async def _ask(self, connection: Connection) -> str:
        """Find out whether the server speaks the extension; return why it could not be told, or an empty text."""
        try:
            # The tools are still to be of use in the time that there is for a connection.
            with anyio.fail_after(self._settings.connect_timeout_seconds / 2):
                uri = await _listed_uri(connection, self._settings.max_pages)
            self._is_spoken, self._uri = uri is not None, uri or RESOURCE_URI
        except (MCPError, RuntimeError, ValueError, TimeoutError) as error:
            is_unknown = isinstance(error, MCPError) and error.code == METHOD_NOT_FOUND
            if is_unknown and not connection.states_capabilities:
                self._is_spoken = False
                return ""
            self._is_spoken = self._is_spoken or None
            return _not_known(error)
        return ""

    async def read(self, connection: Connection, names: Sequence[str]) -> list[ToolSpec]:
        """Return the full definitions of tools that were listed with a line; those that cannot be read are left out.

        A server that did not list its resources is asked again. Where it still does not, and nothing can be read, or
        where it turns out to describe no tools, a tool is what it was listed as.

        Raises:
            MCPError: The server answered with an error, or the connection ended.
        """
        if self._is_spoken is None and not await self._ask(connection):
            self._on_change()
        listed = [self._listed[name] for name in names if name in self._listed]
        if self._is_spoken is False:
            return listed
        if self._is_spoken is None and not await self._describes(connection, listed):
            return listed
        found = await read_descriptions(connection, listed, self._uri)
        self._read |= found
        return list(found.values())

    async def _describes(self, connection: Connection, listed: Sequence[ToolSpec]) -> bool:
        """Tell whether a server that does not list its resources describes one of these tools all the same."""
        try:
            found = await read_descriptions(connection, listed[:MAX_TOOLS], self._uri)
        except (MCPError, RuntimeError, ValueError):
            return False
        if all(found.get(spec.name, spec) is spec for spec in listed):
            return False
        self._is_spoken = True
        self._on_change()
        return True

    def may_be_wanted(self, name: str) -> bool:
        """Tell whether the server may want a description to be read before a call, so that `call` has to send it."""
        return self._is_spoken is not False and (name in self._read or name in self._listed)

    async def call(
        self, connection: Connection, name: str, send: Callable[[], Awaitable[dict[str, Any]]]
    ) -> dict[str, Any]:
        """Send a call; once more after its description was read, if the server says that it executed nothing.

        Raises:
            UnavailableError: The tool has changed since it was described, or is not described now; nothing was
                executed.
            NotTakenError: The server says so again, though its description was read.
            MCPError: The server answered with an error, or the connection ended.
        """
        known = self._read.get(name) or self._listed[name]
        last = self._last_readings.get(name)
        try:
            return await _taken(send)
        except NotTakenError:
            self._is_spoken = True
        self._read.setdefault(name, known)
        now = None
        # What ends the time of the call ends the read a little before, which executes nothing.
        with anyio.CancelScope(deadline=anyio.current_effective_deadline() - _MARGIN_SECONDS):
            now = await self._read_after(last, connection, self._listed.get(name, known))
        if now is None:
            raise UnavailableError(self._server, call_texts.not_described_now(self._server, name))
        if now.digest != known.digest:
            self._on_change()  # the tools are listed again, and with that lapses what was described
            raise UnavailableError(self._server, call_texts.changed_at_server(self._server, name))
        return await _taken(send)

    async def _read_after(self, last: _Reading | None, connection: Connection, listed: ToolSpec) -> ToolSpec | None:
        """Return what was read of a tool after `last`: calls that were refused together need one read."""
        name = listed.name
        async with self._reading[name]:
            reading = self._last_readings.get(name)
            if reading is None or reading is last:
                found: dict[str, ToolSpec] = {}
                # An error is none of the call, which was not executed.
                with suppress(MCPError, RuntimeError, ValueError):
                    found = await read_descriptions(connection, [listed], self._uri)
                reading = self._last_readings[name] = _Reading(found.get(name))
            return reading.found


class _NotListedError(ValueError):
    """A server's resources could not be listed to their end; the text says why."""


async def _listed_uri(connection: Connection, max_pages: int) -> str | None:
    """Return the URI at which a server lists `tool_descriptions`, if it does. Malformed entries are passed over.

    Raises:
        ValueError: It has resources and does not list them properly, or not on so many pages.
        MCPError: It answered with an error, or the connection ended.
    """
    if not connection.has_resources:
        return None
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(max_pages):
        page = await connection.list_resource_page(cursor)
        if not isinstance(page.entries, list):
            raise _NotListedError("a page is not a listing")
        if found := next(filter(None, map(_descriptions_uri, page.entries)), None):
            return found
        if page.cursor is None:
            return None
        if not is_writable(page.cursor):
            raise _NotListedError("the cursor of the next page cannot be sent back")
        if page.cursor in seen:
            raise _NotListedError("the pages go round")
        cursor = page.cursor
        seen.add(cursor)
    raise _NotListedError(f"there are more than {max_pages} pages; raise max_pages to look at the others")


def _descriptions_uri(resource: Any) -> str | None:
    """Return the URI of a listed resource without its query or template, if it is the one of descriptions."""
    uri = resource.get("uri") if isinstance(resource, dict) else None
    if not isinstance(uri, str) or not 0 < len(uri) <= _URI_CHARACTERS:
        return None
    plain = uri.partition("?")[0].partition("{")[0]
    return plain if plain == RESOURCE_URI or resource.get("name") == RESOURCE_NAME else None


def _not_known(error: Exception) -> str:
    """Return what an operator is told of a server whose resources could not be listed."""
    return (
        f"its resources could not be listed ({_why(error)}), so it is not known whether it describes its tools in "
        f"{RESOURCE_NAME}; it is asked again when a tool without parameters is described"
    )


def _why(error: Exception) -> str:
    """Return what went wrong with a read or a listing, in the middle of a sentence."""
    if isinstance(error, MCPError):
        return call_texts.json_rpc_error(error.code)
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    return str(error) if isinstance(error, _NotListedError) else "it did not answer properly"


async def read_descriptions(connection: Connection, listed: Sequence[ToolSpec], uri: str) -> dict[str, ToolSpec]:
    """Return the full definitions of tools from the resource of a URI, by name; those that are not there are left out.

    A tool that it lists and does not know here has no other definition than the one that it listed: the tools of the
    disclosure itself are often so. A server that has described some of the tools may leave others to the next read.

    Raises:
        MCPError: The server answered with an error, or the connection ended.
    """
    found: dict[str, ToolSpec] = {}
    waiting = {spec.name: spec for spec in listed}
    while waiting:
        batch = {name: waiting.pop(name) for name in in_one_read(list(waiting))}
        texts = await connection.read_resource(uri_of(list(batch), resource_uri=uri))
        answers = dict(_entries(texts, list(batch)))
        errors = {name: said for name, said in answers.items() if "error" in said}
        described = {
            name: spec
            for name, said in answers.items()
            if name not in errors and isinstance(spec := spec_of(batch[name].server, {**said, "name": name}), ToolSpec)
        }
        if connection.repeats_arguments:
            described = {
                name: spec for name, spec in described.items() if find_invalid_x_mcp_header(spec.input_schema) is None
            }
            for name, spec in described.items():
                connection.repeat_arguments_of(name, x_mcp_header_map(spec.input_schema))
        later = [name for name, said in errors.items() if described and "available_tools" not in said]
        unknown = {name for name, said in errors.items() if name not in later and said.get("available_tools") != []}
        found |= described | {name: batch[name] for name in unknown}
        waiting = {name: batch[name] for name in later} | waiting
    return found


async def _taken(send: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
    try:
        result = await send()
    except MCPError as error:
        if not _error_wants_description(error):
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


def _error_wants_description(error: MCPError) -> bool:
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


def _decoded(text: Any) -> Any:
    if not isinstance(text, str) or not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
