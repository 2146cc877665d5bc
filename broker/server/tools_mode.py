"""Mode `tools`: the tools themselves, listed with a line each, for clients that write no scripts.

The server role of the extension in disclosure/tool_descriptions.py. Above: app.py, resources.py and announcing.py.
Below: offered_names.py, and sessions, which describe tools and make calls. The listing has the same three tools at its
head, whatever is connected; tools of lazy servers are reached through them, so that it does not change when such a
server comes or goes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from broker.calls.json_schema import TOO_LARGE, first_fault
from broker.disclosure.tool_descriptions import (
    MAX_TOOLS,
    SCRIPTS_WORKFLOW,
    SYSTEM_PROMPT,
    WORKFLOW,
    Selection,
    description_required,
    minimal,
    missing_selection,
    too_many_fetches,
    unknown_entry,
)
from broker.disclosure.tool_details import definition, described, hints_of
from broker.errors import UnavailableError, UnknownToolError
from broker.search.cursors import cursor_at, offset_of
from broker.server.offered_names import OfferedNames
from broker.surface.definitions import DETAILS, INPUT_SCHEMAS, SEARCH
from broker.texts import tool_texts
from codegen.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mcp.shared.dispatcher import ProgressFnT

    from broker.broker import Broker
    from broker.calls.direct_calls import DirectResult
    from broker.sessions import Session
    from broker.tools.catalog import CatalogEntry

CALL = "call_tool"

PAGE_TOOLS = 1_000
"""How many tools one page of the listing has."""

SETTLE_SECONDS = 15.0
"""How long a client waits for servers that are still connecting."""

_HEAD = (SEARCH, DETAILS, CALL)
_LISTING = "tools-listing"
_MESSAGE_CHARACTERS = 200
_CALL_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}, "session": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}

OWN_SCHEMAS = {CALL: _CALL_SCHEMA, DETAILS: INPUT_SCHEMAS[DETAILS]}
"""What the tools take that are answered here, and are no server's."""


class ToolsMode:
    """The listing, the resource and the calls of mode `tools`. The resource is there in mode `code` as well."""

    def __init__(self, broker: Broker, head: Iterable[dict[str, Any]] | None) -> None:
        """Offer the tools of an entered broker, below `head`: what the server itself lists, the three when None."""
        self._broker = broker
        self._head = {tool["name"]: tool for tool in (map(_head_tool, _HEAD) if head is None else head)}
        self._is_in_scripts = head is not None
        self.workflow = SCRIPTS_WORKFLOW if self._is_in_scripts else WORKFLOW
        """How tools get from the resource to a call, as its description says."""
        self._names = OfferedNames(broker.catalog, self._head)

    @property
    def instructions(self) -> str:
        """What the server tells its clients at first."""
        return SYSTEM_PROMPT + (tool_texts.DESCRIBED_FROM_THE_START if self._broker.serving.may_describe_all else "")

    async def listing(self, cursor: str | None) -> tuple[list[dict[str, Any]], str | None]:
        """Return a page of `tools/list`, and the cursor of the next.

        Raises:
            SearchError: The cursor cannot be used.
        """
        start = 0 if cursor is None else offset_of(cursor, _LISTING)
        await self._broker.wait_until_settled(SETTLE_SECONDS)
        head = list(self._head.values()) if start == 0 else []
        end = start + PAGE_TOOLS
        return head + self.listed(start, end), cursor_at(end, _LISTING) if end < len(self._entries()) else None

    def listed(self, start: int = 0, end: int | None = None) -> list[dict[str, Any]]:
        """Return what `tools/list` has after the head."""
        names = self._names.by_tool()
        is_open = self._broker.describes_all
        return [
            _well_formed(definition(entry.spec, names[entry.qualified_name]))
            if is_open and not entry.is_listed_by_line
            else minimal(entry.spec, names[entry.qualified_name], hints_of(entry.spec))
            for entry in self._entries()[start:end]
        ]

    def _entries(self) -> list[CatalogEntry]:
        lazy = self._broker.serving.lazy_servers
        return [entry for entry in self._broker.catalog.tools if entry.spec.server not in lazy]

    async def read(self, session: Session, selection: Selection) -> dict[str, Any]:
        """Describe the tools that a read asks for and return the document of the resource: an entry for each name."""
        await self._broker.wait_until_settled(SETTLE_SECONDS)
        await self._wake(selection.tools)
        wanted = self._told_apart(selection.tools)
        await self._wake(wanted)
        # Where scripts call the tools, searches and stubs name them by their qualified names.
        offered = {} if self._is_in_scripts else self._names.by_tool()
        available = [offered.get(tool.qualified_name, tool.qualified_name) for tool in self._broker.catalog.tools]
        if not wanted:
            return missing_selection(available)
        asked = wanted[:MAX_TOOLS]
        own = {name: self._head[name] for name in asked if name in self._head}
        meant = {name: self._names.qualified(name) for name in asked if name not in own}
        details = await session.get_tool_details(
            list(meant.values()), with_definitions=True, exactly=True, within_a_page=True
        )
        if details.retry_after_seconds:
            return too_many_fetches(details.retry_after_seconds)
        document: dict[str, Any] = dict.fromkeys(asked) | own
        for name, qualified in meant.items():
            if self._names.entry(name) is not None and qualified in details.definitions:
                document[name] = described(details.definitions[qualified], name)
            elif qualified in details.left:
                document[name] = {"error": tool_texts.READ_NEXT}
            elif qualified in details.unavailable:
                document[name] = {"error": details.unavailable[qualified], "available_tools": []}
            else:
                near = details.ambiguous.get(qualified) or details.unknown.get(qualified, ())
                document[name] = unknown_entry(
                    name,
                    [offered.get(one, one) for one in near],
                    available,
                    is_ambiguous=qualified in details.ambiguous,
                    is_withdrawn=qualified in details.withdrawn,
                )
        return document | {name: {"error": tool_texts.READ_NEXT} for name in wanted[MAX_TOOLS:]}

    async def _wake(self, names: Sequence[str]) -> None:
        """Connect the lazy servers whose tools names may be, if no tool of theirs is known: it tells what is meant."""
        unknown = [name for name in names[:MAX_TOOLS] if name not in self._head and self._names.entry(name) is None]
        servers = {server for name in unknown for server in self._names.servers_behind(name)}
        unseen = {server for server in servers if not self._broker.catalog.of_server(server)}
        await self._broker.need_servers(unseen & self._broker.serving.lazy_servers, SETTLE_SECONDS)

    def _told_apart(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the names, with those in one text apart: clients that fill in the template write `%2C` for a comma.

        A text that is a tool's name, commas included, is that tool's.
        """
        apart: list[str] = []
        for name in names:
            is_tool = "," not in name or self._names.entry(name) is not None
            apart += [name] if is_tool else [part for piece in name.split(",") if (part := piece.strip())]
        return tuple(dict.fromkeys(apart))

    async def answer(
        self,
        session: Session,
        name: str,
        arguments: dict[str, Any],
        handle: str | None,
        on_progress: ProgressFnT | None = None,
    ) -> dict[str, Any]:
        """Answer a call of a listed tool, of `call_tool` or of `get_tool_details`, with a `CallToolResult`.

        Args:
            session: Whose descriptions and grants count.
            name: As the client wrote it.
            arguments: As the client wrote them; those of `OWN_SCHEMAS` in plain form.
            handle: The name of the session where the caller does not know it yet.
            on_progress: Is told how far the server says it is.

        Raises:
            UnknownToolError: There is no tool of this name; nothing was sent.
        """
        if name in OWN_SCHEMAS and (fault := self._fault_of(name, arguments)):
            return _text(fault, is_error=True)
        if name == DETAILS:
            names = tuple(dict.fromkeys(arguments["tools"]))
            answer = _text(json.dumps(await self.read(session, Selection(names, None)), ensure_ascii=False))
            return answer if handle is None else _with_session(answer, handle)
        if name == CALL:
            name, arguments = arguments["name"], arguments.get("arguments", {})
        await self._broker.wait_until_settled(SETTLE_SECONDS)
        try:
            result = await self._call(session, name, arguments, _inert(on_progress))
        except UnavailableError as error:
            return _text(str(error), is_error=True)
        except ValueError as error:
            return _text(tool_texts.wrong_arguments(one_line(name, 200), str(error)), is_error=True)
        if result.failed is not None and result.failed.kind == "ToolDescriptionRequired":
            qualified = self._names.qualified(name)
            # Its offered name is short, whatever the client has called it by.
            offered = self._names.by_tool().get(qualified, name)
            return _required(description_required(offered, handle, session.lapsed.get(qualified, "")))
        return _answer(result)

    def _fault_of(self, name: str, arguments: dict[str, Any]) -> str:
        """Return what is wrong with a call of one of `OWN_SCHEMAS`; empty if nothing is."""
        fault = first_fault(arguments, OWN_SCHEMAS[name], unchecked=TOO_LARGE)
        if fault is not None:
            return tool_texts.wrong_arguments(name, fault)
        is_of_head = name == CALL and arguments["name"] in self._head
        return tool_texts.called_by_itself(arguments["name"], CALL) if is_of_head else ""

    async def _call(
        self, session: Session, name: str, arguments: dict[str, Any], on_progress: ProgressFnT | None
    ) -> DirectResult:
        await self._wake([name])
        qualified = self._names.qualified(name)
        try:
            return await session.call_directly(qualified, arguments, on_progress=on_progress)
        except UnknownToolError as error:
            # A lazy server may have been connected for this, and now it is known what it calls its tools.
            if (now := self._names.qualified(name)) == qualified:
                raise UnknownToolError(
                    name, error.suggestions, is_ambiguous=error.is_ambiguous, is_withdrawn=error.is_withdrawn
                ) from None
            return await session.call_directly(now, arguments, on_progress=on_progress)

    def unknown(self, error: UnknownToolError) -> str:
        """Return what a call of a name that no tool has gets."""
        offered = self._names.by_tool()
        near = [offered.get(one, one) for one in error.suggestions]
        if error.is_ambiguous:
            return tool_texts.several_offered(error.name, near)
        return tool_texts.not_offered(error.name, near, is_withdrawn=error.is_withdrawn)


def _head_tool(name: str) -> dict[str, Any]:
    if name == CALL:
        return {"name": CALL, "description": tool_texts.CALL_TOOL, "inputSchema": _CALL_SCHEMA}
    described = tool_texts.TOOLS_MODE_DESCRIPTIONS[name]
    return {
        "name": name,
        "description": described,
        "inputSchema": INPUT_SCHEMAS[name],
        "annotations": {"readOnlyHint": True},
    }


def _well_formed(said: dict[str, Any]) -> dict[str, Any]:
    """Make a definition one that every client takes: the protocol wants schemas of objects."""
    output = said.get("outputSchema")
    if not (isinstance(output, dict) and output.get("type") == "object"):
        said.pop("outputSchema", None)
    return {**said, "inputSchema": {**said["inputSchema"], "type": "object"}}


def _answer(result: DirectResult) -> dict[str, Any]:
    if result.answer is not None:
        return {"content": [], **result.answer}
    if result.failed is None:
        raise RuntimeError("a direct call has an answer or has failed")
    return _text(result.failed.message, is_error=True)


def for_older_clients(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without structured content that is no object, which clients until 2025-11-25 do not take."""
    value = answer.get("structuredContent")
    if value is None or isinstance(value, dict):
        return answer
    kept = {key: one for key, one in answer.items() if key != "structuredContent"}
    text = json.dumps(value, ensure_ascii=False)
    return kept if kept["content"] else {**kept, "content": [{"type": "text", "text": text}]}


def _required(document: dict[str, Any]) -> dict[str, Any]:
    return _text(json.dumps(document, ensure_ascii=False), is_error=True) | {"structuredContent": document}


def _text(text: str, *, is_error: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def _with_session(answer: dict[str, Any], handle: str) -> dict[str, Any]:
    """Tell the model of its session as well: many clients do not pass on what they are told in `_meta`."""
    told = {"type": "text", "text": tool_texts.session_of_calls(handle, CALL)}
    return {**answer, "content": [*answer["content"], told]}


def _inert(on_progress: ProgressFnT | None) -> ProgressFnT | None:
    """Return the same listener, told the server's words on one short line."""
    if on_progress is None:
        return None

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        await on_progress(progress, total, None if message is None else one_line(message, _MESSAGE_CHARACTERS))

    return tell
