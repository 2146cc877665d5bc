"""The pages of a server's `tools/list` to tool specifications, each tool judged alone.

Above: listed_tools.py, remote_descriptions.py. Below: one connection's pages. Everything in a page was written by the
server: a malformed tool is left out and named, the others are used; endless pages, and those that go in circles, are
cut. Other tasks have their turn between two tools.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map

from broker.authorization.patterns import has_wildcards
from broker.errors import ReplyError
from broker.upstreams.definition_size import INTEGER_BITS, has_large_integer, is_deeper, size_of
from broker.upstreams.guidance import examples_of, with_guidance
from codegen import ToolAnnotations, ToolSpec
from codegen.near_names import near_name
from codegen.plain_text import one_line
from codegen.tool_spec import HINTS
from sandbox.pace import PACE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker.upstreams.connection import Connection
    from broker.upstreams.server_config import ServerConfig

NAME_CHARACTERS = 256
DEPTH = 200
"""How deep a definition may be nested: about what parsers of JSON commonly take."""

LISTING_BYTES = 64 * 1024 * 1024
"""What the definitions of one server may take in memory together, or more where more than a thousand are allowed."""

DEFINITION_BYTES = 8 * 1024 * 1024
"""What one definition may take in memory: while it is read, no other task has its turn."""

MAX_LEFT_OUT = 1_000
"""How many entries may be of no use before the rest of a listing is not looked at."""

_TOOL_BYTES = 64 * 1024
_MAX_PROBLEMS = 20
_READ = ("title", "description", "inputSchema", "outputSchema")


@dataclass(frozen=True, slots=True)
class Listing:
    """The usable tools of one server.

    Attributes:
        tools: Their definitions.
        problems: What was wrong with the others, a sentence each.
        incomplete: Names of tools of which the server has listed no more than a line.
    """

    tools: tuple[ToolSpec, ...]
    problems: tuple[str, ...]
    incomplete: frozenset[str] = frozenset()


async def list_tools(connection: Connection, server: str, settings: ServerConfig) -> Listing:
    """Read a server's whole listing within the bounds of its settings.

    Raises:
        ReplyError: A page is not a listing.
        MCPError: The server answered with an error, or the connection ended.
    """
    reading = _Reading(server, settings, repeats_arguments=connection.repeats_arguments)
    cut = await _read_pages(connection, reading)
    connection.repeat_arguments(reading.headers)
    problems = reading.problems if cut else [*reading.mistyped(), *reading.problems]
    if len(problems) > _MAX_PROBLEMS:
        problems[_MAX_PROBLEMS:] = [f"and {len(problems) - _MAX_PROBLEMS} more problems of its listing"]
    return Listing(tuple(reading.tools.values()), (*problems, cut) if cut else tuple(problems))


async def _read_pages(connection: Connection, reading: _Reading) -> str:
    """Read page after page; return why the listing was cut, or an empty text."""
    cursor: str | None = None
    seen: set[str] = set()
    max_pages = reading.settings.max_pages
    for _ in range(max_pages):
        page = await connection.list_page(cursor)
        if not isinstance(page.entries, list):
            raise ReplyError(reading.server, f"{reading.server} answered tools/list without a list of tools.")
        if cut := await reading.take(page.entries):
            return cut
        # An empty text is a cursor like any other.
        if page.cursor is None:
            return ""
        if not is_writable(page.cursor):
            return "its next page of tools has a cursor that cannot be sent back; the listing was cut there"
        if page.cursor in seen:
            return "its pages of tools go round; the listing was cut there"
        cursor = page.cursor
        seen.add(cursor)
    return f"more than {max_pages} pages of tools are offered; raise max_pages to use the others"


@dataclass(slots=True)
class _Reading:
    """A listing as far as it was read.

    Attributes:
        tools: The usable tools.
        headers: Of those, the headers of their calls, where they have some.
        problems: What was wrong with the others.
        not_listed: The names in the config's patterns of tools that no entry has had yet.
    """

    server: str
    settings: ServerConfig
    repeats_arguments: bool
    tools: dict[str, ToolSpec] = field(default_factory=dict)
    headers: dict[str, dict[tuple[str, ...], str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    size: int = 0
    not_listed: set[str] = field(init=False)

    def __post_init__(self) -> None:
        patterns = (*(self.settings.allow_tools or ()), *self.settings.hide_tools)
        self.not_listed = {pattern for pattern in patterns if not has_wildcards(pattern)}

    def mistyped(self) -> Iterator[str]:
        """Yield a sentence for each name in the config that the server does not list: a tool stays that was to go."""
        settings = self.settings
        for key, names in (("allow_tools", settings.allow_tools or ()), ("hide_tools", settings.hide_tools)):
            for name in filter(self.not_listed.__contains__, names):
                near = near_name(name, self.tools)
                hint = f"; did you mean {one_line(near, 80)!r}?" if near else ""
                yield f"{key} names {one_line(name, 80)!r}, which it does not list{hint}"

    async def take(self, entries: Iterable[Any]) -> str:
        """Take the tools of a page; return why the rest of the listing is not looked at, or an empty text."""
        for index, entry in enumerate(entries):
            if PACE.is_due:
                await PACE.give_way()
            name = entry.get("name") if isinstance(entry, dict) else None
            if isinstance(name, str):
                self.not_listed.discard(name)
                if not self.settings.offers(name):
                    continue
            spec = self._usable(entry, name, index)
            if isinstance(spec, str):
                self.problems.append(f"left out {spec}")
                if len(self.problems) > MAX_LEFT_OUT:
                    return f"more than {MAX_LEFT_OUT} entries of its listing are of no use; the listing was cut there"
            elif cut := self._add(spec):
                return cut
        return ""

    def _usable(self, entry: Any, name: Any, index: int) -> ToolSpec | str:
        """Return the specification of an entry, or which entry is of no use and why."""
        shown = one_line(name, 80)
        if isinstance(name, str) and name in self.tools:
            return f"a second tool named {shown!r}"
        spec = spec_of(self.server, entry)
        if isinstance(spec, str):
            return f"the tool {shown!r}: {spec}" if shown else f"tool {index + 1} of a page: {spec}"
        if self.repeats_arguments and find_invalid_x_mcp_header(spec.input_schema) is not None:
            return f"the tool {shown!r}: its x-mcp-header is not valid"
        return spec

    def _add(self, spec: ToolSpec) -> str:
        """Add a tool; return why the listing is cut instead, or an empty text."""
        max_tools = self.settings.max_tools
        most_bytes = max(LISTING_BYTES, max_tools * _TOOL_BYTES)
        self.size += size_of(
            [spec.title, spec.description, spec.input_schema, spec.output_schema, spec.examples], most_bytes
        )
        if self.size > most_bytes:
            return f"its tools take more than {most_bytes >> 20} MiB; the listing was cut there"
        if len(self.tools) == max_tools:
            return f"more than {max_tools} tools are offered; raise max_tools to use the others"
        self.tools[spec.name] = spec
        if self.repeats_arguments and (headers := x_mcp_header_map(spec.input_schema)):
            self.headers[spec.name] = headers
        return ""


def spec_of(server: str, tool: Any) -> ToolSpec | str:
    """Return the specification of a tool as received, or what is wrong with it."""
    if fault := _fault_of(tool):
        return fault
    hints = tool.get("annotations")
    hints = hints if isinstance(hints, dict) else {}
    title = tool.get("title") or hints.get("title")
    description = tool.get("description")
    return ToolSpec(
        server=server,
        name=tool["name"],
        title=title if isinstance(title, str) else None,
        description=with_guidance(description if isinstance(description, str) else "", tool),
        input_schema=tool["inputSchema"],
        output_schema=tool.get("outputSchema"),
        annotations=ToolAnnotations(
            **{attribute: hint for key, attribute in HINTS.items() if isinstance(hint := hints.get(key), bool)}
        ),
        examples=examples_of(tool),
    )


def _fault_of(tool: Any) -> str:
    if not isinstance(tool, dict):
        return "it is not a JSON object"
    if fault := _fault_of_name(tool.get("name")):
        return fault
    for schema in ("inputSchema", "outputSchema"):
        if not isinstance(tool.get(schema), dict) and (schema == "inputSchema" or tool.get(schema) is not None):
            return f"its {schema} is not a JSON object"
    if size_of(read := [tool.get(key) for key in _READ], DEFINITION_BYTES) > DEFINITION_BYTES:
        return f"its definition takes more than {DEFINITION_BYTES >> 20} MiB"
    if is_deeper(read, DEPTH):
        return f"it is nested deeper than {DEPTH} levels"
    return f"it has an integer of more than {INTEGER_BITS} bits" if has_large_integer(read) else ""


def _fault_of_name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        return "it has no name"
    if not is_writable(name):
        return "its name holds half of a surrogate pair"
    return f"its name is longer than {NAME_CHARACTERS} characters" if len(name) > NAME_CHARACTERS else ""


def is_writable(text: Any) -> bool:
    """Tell whether what a server sent is a text without half of a surrogate pair, so that it can be sent back."""
    return isinstance(text, str) and (text.isascii() or text == text.encode("utf-8", "replace").decode())
