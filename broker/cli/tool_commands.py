"""The commands below `tools` as the command line accepts them.

Above: app.py, which adds them. Below: the module of each command, imported when it is called.
"""

# Typer reads the annotations while the program runs.
# ruff: noqa: PLC0415, TC001

from __future__ import annotations

from typing import Annotated, Literal

import typer

from broker.cli.command_names import group
from broker.cli.completed_names import complete_server
from broker.cli.options import AsJson, ConfigFile, LogJson, Verbose
from broker.cli.start import start

tools = group("Look at the tools of the configured servers.")


@tools.command("list")
def list_tools(
    *, config: ConfigFile = None, as_json: AsJson = False, verbose: Verbose = False, log_json: LogJson = False
) -> None:
    """List every tool, each with a line about what it does.

    \b
    Example:
      codemode tools list --config mcp.json
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import tools as command

    start(command.list_tools, command.ListRequest(config, as_json), verbose=verbose, log_json=log_json)


@tools.command("servers")
def list_servers(
    *,
    config: ConfigFile = None,
    connect: Annotated[bool, typer.Option("--connect", help="Connect the lazy servers too.")] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
    log_json: LogJson = False,
) -> None:
    """List the servers and the state of each.

    Shows how many tools each offers, and which were left out.

    A lazy server is asleep until somebody searches its tools, fetches a description or calls one.

    \b
    Example:
      codemode tools servers --connect --config mcp.json
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import servers as command

    start(command.list_servers, command.ServersRequest(config, connect, as_json), verbose=verbose, log_json=log_json)


@tools.command("search")
def search_tools(  # noqa: PLR0913 - one for each option
    query: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUERY", help="Words to look for in names and descriptions; none lists all."),
    ] = None,
    *,
    config: ConfigFile = None,
    server: Annotated[
        list[str] | None,
        typer.Option(
            "--server",
            "-s",
            metavar="NAME",
            help="Only tools of this server; repeatable.",
            autocompletion=complete_server,
        ),
    ] = None,
    category: Annotated[str | None, typer.Option(metavar="NAME", help="Only tools of this category.")] = None,
    read_only: Annotated[
        bool | None, typer.Option("--read-only/--no-read-only", help="Only tools that their server marks so.")
    ] = None,
    destructive: Annotated[
        bool | None, typer.Option("--destructive/--no-destructive", help="Only tools that their server marks so.")
    ] = None,
    mode: Annotated[
        Literal["auto", "keyword", "regex", "embedding", "hybrid"],
        typer.Option(help="How to search; auto goes by words, and by meaning too if an embedder is configured."),
    ] = "auto",
    detail: Annotated[
        Literal["name", "brief", "full", "detailed"],
        typer.Option(help="Names, a line each, or whole stubs; `detailed` is `full`."),
    ] = "brief",
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", help="Tools on a page, 1 to 200.")] = 20,
    cursor: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The next page's cursor, as the last search printed it.")
    ] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
    log_json: LogJson = False,
) -> None:
    """Find tools by words, best first.

    \b
    Examples:
      codemode tools search commit history --config mcp.json
      codemode tools search "delete" --destructive --server azure
      codemode tools search 'git_(log|diff)' --mode regex --detail full
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import tools as command
    from broker.search import Detail, Filters, Mode, SearchRequest

    filters = Filters(
        servers=tuple(server) if server else None, category=category, read_only=read_only, destructive=destructive
    )
    search = SearchRequest(
        query=" ".join(query or ()),
        mode=Mode(mode),
        detail=Detail.parse(detail),
        filters=filters,
        limit=limit,
        cursor=cursor,
    )
    start(command.find_tools, command.FindRequest(config, search, as_json), verbose=verbose, log_json=log_json)


@tools.command("show")
def show_tool(
    name: Annotated[str, typer.Argument(metavar="SERVER.TOOL", help="A name as `tools list` prints it.")],
    *,
    config: ConfigFile = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
    log_json: LogJson = False,
) -> None:
    """Show one tool: description, hints, stub.

    \b
    Example:
      codemode tools show git.git_log --config mcp.json
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import tools as command

    start(command.show_tool, command.ShowRequest(config, name, as_json), verbose=verbose, log_json=log_json)
