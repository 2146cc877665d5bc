"""`codemode tools`: what the configured servers offer."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from broker import UnknownToolError
from broker.cli.configured import load_config, open_broker, refuse_disabled, report_servers
from broker.cli.exit_codes import ExitCode
from broker.cli.terminal import Problem, note, results, write_result
from broker.errors import SearchError
from broker.search import Detail
from broker.search.pages import summary_of
from codegen.plain_text import one_line, paragraph

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from broker.search import SearchRequest
    from broker.tools.catalog import CatalogEntry
    from codegen import ToolAnnotations

NAME_CHARACTERS = 130
TITLE_CHARACTERS = 200
DESCRIPTION_CHARACTERS = 20_000
NOTE_CHARACTERS = 400


@dataclass(frozen=True)
class ListRequest:
    """The arguments of `tools list`."""

    config: Path | None
    as_json: bool


@dataclass(frozen=True)
class FindRequest:
    """The arguments of `tools search`."""

    config: Path | None
    search: SearchRequest
    as_json: bool


@dataclass(frozen=True)
class ShowRequest:
    """The arguments of `tools show`."""

    config: Path | None
    name: str
    as_json: bool


async def list_tools(request: ListRequest) -> ExitCode:
    """Print all tools, those of lazy servers too."""
    async with open_broker(load_config(request.config)) as broker:
        await broker.need_servers()
        found = broker.catalog.tools
        report_servers(broker, request)
    if not _print(found, as_json=request.as_json):
        note("there are no tools")
    return ExitCode.COMPLETED


async def find_tools(request: FindRequest) -> ExitCode:
    """Print the tools that a search finds, best first."""
    async with open_broker(load_config(request.config)) as broker:
        session = broker.session()
        try:
            page = await session.search(request.search)
        except SearchError as error:
            raise Problem(str(error)) from None
        found = broker.catalog.entries_of(page.tools)
        details = await session.get_tool_details(page.to_describe) if page.to_describe else None
    for text in page.notes:
        if text not in page.unknown:
            note(one_line(text, NOTE_CHARACTERS))
    if page.unknown:
        raise Problem(one_line(" ".join(page.unknown), NOTE_CHARACTERS))
    if details is not None and not request.as_json:
        write_result(details.source)
    elif not _print(found, as_json=request.as_json, detail=request.search.detail):
        note(_nothing(request.search, page.excluded_by))
    if page.next_cursor is not None:
        note(f"more with --cursor {page.next_cursor}")
    return ExitCode.COMPLETED


def _nothing(search: SearchRequest, excluded_by: Sequence[str]) -> str:
    """Return why a search found nothing; `excluded_by` names the filters without which it finds something."""
    if search.cursor is not None:
        return "the list ended before this cursor, since the tools have changed; search again without --cursor"
    nothing = f"no tool matches {one_line(search.query, 100)!r}"
    options = {"annotations": "--read-only and --destructive", "category": "--category", "server": "--server"}
    filters = ", ".join(options[name] for name in excluded_by)
    return f"{nothing}; some do without {filters}" if filters else nothing


def _print(found: Sequence[CatalogEntry], *, as_json: bool, detail: Detail = Detail.BRIEF) -> bool:
    """Print tools; tell whether that said anything."""
    if as_json:
        form = _details if detail is Detail.FULL else _summary
        write_result(json.dumps([form(tool) for tool in found], indent=2))
    elif found and detail is Detail.NAME:
        write_result("\n".join(one_line(tool.qualified_name, NAME_CHARACTERS) for tool in found))
    elif found and results().is_terminal:
        results().print(_table(found))
    elif found:
        # One line a tool, whole, for grep and cut.
        write_result(
            "\n".join(f"{one_line(tool.qualified_name, NAME_CHARACTERS)}\t{summary_of(tool.spec)}" for tool in found)
        )
    return bool(found) or as_json


async def show_tool(request: ShowRequest) -> ExitCode:
    """Print everything about one tool."""
    async with open_broker(load_config(request.config)) as broker:
        await broker.session().get_tool_details([request.name])  # connects its server, where that is lazy
        try:
            tool = broker.catalog.lookup(request.name)
        except UnknownToolError as error:
            report_servers(broker, request)
            refuse_disabled(broker.catalog, request.name)
            raise Problem(str(error), "`codemode tools list` has all names.") from None
    if request.as_json:
        write_result(json.dumps(_details(tool), indent=2))
        return ExitCode.COMPLETED
    spec = tool.spec
    lines = [one_line(spec.qualified_name, NAME_CHARACTERS)]
    lines += [one_line(spec.title, TITLE_CHARACTERS)] if spec.title else []
    lines += ["", paragraph(spec.description, DESCRIPTION_CHARACTERS)] if spec.description else []
    lines += ["", f"The server says: {_hints(spec.annotations)}", "", f"from tools import {tool.namespace}", ""]
    write_result("\n".join(lines) + tool.stub().source)
    return ExitCode.COMPLETED


def _table(tools: Sequence[CatalogEntry]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for tool in tools:
        name = one_line(tool.qualified_name, NAME_CHARACTERS)
        table.add_row(Text(name, style="bold"), Text(summary_of(tool.spec)))
    return table


def _summary(tool: CatalogEntry) -> dict[str, Any]:
    return {
        "name": tool.qualified_name,
        "function": tool.python_name,
        "summary": summary_of(tool.spec),
    }


def _details(tool: CatalogEntry) -> dict[str, Any]:
    spec = tool.spec
    return _summary(tool) | {
        "title": spec.title,
        "description": spec.description,
        "digest": spec.digest,
        "input_schema": spec.input_schema,
        "output_schema": spec.output_schema,
        "annotations": asdict(spec.annotations),
        "examples": spec.examples,
    }


def _hints(annotations: ToolAnnotations) -> str:
    said = {
        "reads only": annotations.read_only,
        "destructive": annotations.destructive,
        "idempotent": annotations.idempotent,
        "reaches other systems": annotations.open_world,
    }
    return (
        ", ".join(f"{what}: {'yes' if hint else 'no'}" for what, hint in said.items() if hint is not None) or "nothing"
    )
