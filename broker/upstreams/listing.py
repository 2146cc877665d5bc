"""The pages of a server's `tools/list` to tool specifications, each tool judged alone.

Above: listed_tools.py. Below: one connection's pages. Everything in a page was written by the server: a malformed
tool is left out and named, the others are used; endless pages, and those that go in circles, are cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from broker.errors import ReplyError
from codegen import ToolAnnotations, ToolSpec
from codegen.plain_text import one_line
from codegen.tool_spec import HINTS

if TYPE_CHECKING:
    from broker.upstreams.connection import Connection, Page
    from broker.upstreams.server_config import ServerConfig

NAME_CHARACTERS = 256
DEPTH = 200
"""How deep a definition may be nested: about what parsers of JSON commonly take."""

LISTING_BYTES = 64 * 1024 * 1024
"""What the definitions of one server may take in memory together, or more where more than a thousand are allowed."""

_TOOL_BYTES = 64 * 1024
_VALUE_BYTES = 64
_MOST_PROBLEMS = 20


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
    tools: dict[str, ToolSpec] = {}
    problems: list[str] = []
    max_pages, max_tools = settings.max_pages, settings.max_tools
    cursor: str | None = None
    seen: set[str] = set()
    room = most_bytes = max(LISTING_BYTES, max_tools * _TOOL_BYTES)
    for _ in range(max_pages):
        page = await connection.list_page(cursor)
        before = len(tools)
        _take(page, server, settings, tools, problems)
        for spec in list(tools.values())[before:]:
            room -= _size(spec)
            if room < 0:
                del tools[spec.name]
        if room < 0:
            problems.append(f"its tools take more than {most_bytes >> 20} MiB; the listing was cut there")
            break
        if len(tools) > max_tools:
            problems.append(f"more than {max_tools} tools are offered; raise max_tools to use the others")
            break
        # An empty text is a cursor like any other.
        if page.cursor is None:
            break
        if not isinstance(page.cursor, str) or page.cursor in seen:
            problems.append("its pages of tools go round; the listing was cut there")
            break
        cursor = page.cursor
        seen.add(cursor)
    else:
        problems.append(f"more than {max_pages} pages of tools are offered; raise max_pages to use the others")
    if len(problems) > _MOST_PROBLEMS:
        problems[_MOST_PROBLEMS:] = [f"and {len(problems) - _MOST_PROBLEMS} more problems of its listing"]
    return Listing(tuple(tools.values())[:max_tools], tuple(problems))


def _take(page: Page, server: str, settings: ServerConfig, tools: dict[str, ToolSpec], problems: list[str]) -> None:
    if not isinstance(page.tools, list):
        raise ReplyError(server, f"{server} answered tools/list without a list of tools.")
    for index, tool in enumerate(page.tools):
        name = tool.get("name") if isinstance(tool, dict) else None
        if isinstance(name, str) and not settings.offers(name):
            continue
        spec = spec_of(server, tool)
        if isinstance(spec, str):
            shown = one_line(name, 80)
            problems.append(f"left out {f'the tool {shown!r}' if shown else f'tool {index + 1} of a page'}: {spec}")
        elif spec.name in page.forbidden:
            problems.append(f"left out the tool {one_line(spec.name, 80)!r}: its x-mcp-header is not valid")
        elif spec.name in tools:
            problems.append(f"left out a second tool named {one_line(spec.name, 80)!r}")
        else:
            tools[spec.name] = spec


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
        description=description if isinstance(description, str) else "",
        input_schema=tool["inputSchema"],
        output_schema=tool.get("outputSchema"),
        annotations=ToolAnnotations(
            **{attribute: hint for key, attribute in HINTS.items() if isinstance(hint := hints.get(key), bool)}
        ),
    )


def _fault_of(tool: Any) -> str:
    if not isinstance(tool, dict):
        return "it is not a JSON object"
    name = tool.get("name")
    if not isinstance(name, str) or not name:
        return "it has no name"
    if not name.isascii() and name != name.encode("utf-8", "replace").decode():
        return "its name holds half of a surrogate pair"
    if len(name) > NAME_CHARACTERS:
        return f"its name is longer than {NAME_CHARACTERS} characters"
    for schema in ("inputSchema", "outputSchema"):
        if not isinstance(tool.get(schema), dict) and (schema == "inputSchema" or tool.get(schema) is not None):
            return f"its {schema} is not a JSON object"
    return f"it is nested deeper than {DEPTH} levels" if _is_deeper(tool, DEPTH) else ""


def _is_deeper(value: Any, levels: int) -> bool:
    """Tell whether lists and objects are nested deeper than so many levels, without recursion."""
    level = [value]
    for _ in range(levels):
        inside = [list(one.values()) if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        level = [one for many in inside for one in many]
        if not level:
            return False
    return True


def _size(spec: ToolSpec) -> int:
    """Return about how many bytes a definition takes in memory."""
    size, waiting = 0, [spec.title, spec.description, spec.input_schema, spec.output_schema]
    while waiting:
        value: Any = waiting.pop()
        size += _VALUE_BYTES
        if isinstance(value, str):
            size += len(value)
        elif isinstance(value, dict):
            size += sum(_VALUE_BYTES + len(key) for key in value)
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return size
