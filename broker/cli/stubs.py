"""`codemode stubs`: the stub text of the tools that match a pattern."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from broker.cli.configured import load_config, open_broker, refuse_disabled, report_servers
from broker.cli.exit_codes import ExitCode
from broker.cli.terminal import Problem, write_result
from broker.disclosure.tool_details import stub_text

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class StubsRequest:
    """The arguments of `codemode stubs`."""

    config: Path | None
    pattern: str


async def print_stubs(request: StubsRequest) -> ExitCode:
    """Print one module text for each server that has a matching tool."""
    async with open_broker(load_config(request.config)) as broker:
        found = [tool for tool in broker.catalog.tools if fnmatchcase(tool.qualified_name, request.pattern)]
        report_servers(broker, request)
    if not found:
        refuse_disabled(broker.catalog, request.pattern)
        raise Problem(
            f"no tool matches {request.pattern!r}", "Patterns are server.tool, as in 'git.*'; `codemode tools list`."
        )
    write_result(stub_text(found))
    return ExitCode.COMPLETED
