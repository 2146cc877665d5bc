"""What the command line accepts: commands, options, help. What the commands do is in the module of each.

Those modules are imported when their command is called: `codemode --help` and shell completion need neither
wasmtime nor the MCP SDK.
"""

# Typer reads the annotations while the program runs.
# ruff: noqa: PLC0415, FBT002

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Literal

import typer

from broker.cli import authorization_app, recorded
from broker.cli.start import start

app = typer.Typer(
    name="codemode",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
tools = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look at the tools of the configured servers.")
app.add_typer(tools, name="tools")
image = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Guest images with further Python packages.")
app.add_typer(image, name="image")
app.add_typer(authorization_app.policy, name="policy")
app.add_typer(authorization_app.grants, name="grants")
app.add_typer(authorization_app.mcp, name="mcp")
app.command("audit")(authorization_app.audit)

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        envvar="CODEMODE_CONFIG",
        help="Config with the MCP servers, in the `mcpServers` JSON form.",
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Log to stderr what the broker does.")]
LogJson = Annotated[bool, typer.Option("--log-json", help="Log to stderr as one JSON object a line.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value on stdout.")]


def _print_version(asked: bool) -> None:  # noqa: FBT001  # typer's callback signature
    if asked:
        typer.echo(f"codemode {version('codemode-broker')}")
        raise typer.Exit


@app.callback()
def codemode(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Run Python scripts in a WebAssembly sandbox; their tool calls go to MCP servers, each one authorized.

    \b
    Start here:
      codemode doctor --config mcp.json          does everything work?
      codemode tools list --config mcp.json      what can a script call?
      codemode run script.py --config mcp.json --allow 'git.*'
    """  # noqa: D301  # \b keeps click from refilling the lines


@app.command()
def run(  # noqa: PLR0913  # one parameter for each option
    script: Annotated[str, typer.Argument(metavar="SCRIPT", help="A Python file, or - for stdin.")],
    *,
    config: ConfigFile = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow",
            "-a",
            metavar="PATTERN",
            help="Allow calls to the tools that match, as server.tool; * and ? match. Repeat for more.",
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", "-t", metavar="S", help="Wall-clock seconds the script may take."),
    ] = None,
    memory: Annotated[
        int | None, typer.Option("--memory", "-m", metavar="MB", help="Memory the script may use.")
    ] = None,
    check: Annotated[
        Literal["error", "warn", "off"],
        typer.Option(
            "--check", help="What mistakes in the use of tools do: stop the script before it starts, warn, nothing."
        ),
    ] = "error",
    isolation: Annotated[
        Literal["process", "thread"],
        typer.Option(
            "--isolation",
            help="Where the script runs: in a confined process of its own, or in this one, with one wall less.",
        ),
    ] = "process",
    park: Annotated[
        bool,
        typer.Option("--park", help="Without a terminal: put the run aside at a question, for `codemode resume`."),
    ] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
    log_json: LogJson = False,
) -> None:
    """Run a script.

    In the script, each server is a module and each tool an async function with keyword arguments:

    \b
      from tools import git
      print(await git.git_log(repo_path=".", max_count=3))

    The script sees no files, network or environment. A call is made only if an --allow pattern matches it or
    you say yes when asked at the terminal; without either it is refused. Printed text goes to stdout, the table
    of calls to stderr. A last expression or a returned value that is not None is printed as JSON.

    \b
    Examples:
      codemode run report.py --config mcp.json --allow 'git.git_log' --allow 'memory.*'
      codemode run notes.py --config mcp.json --allow 'files.write {"/path": {"path": "notes/*"}}'
      echo 'sum(range(10))' | codemode run -
      codemode run report.py --json | jq .calls

    \b
    Exit codes: 0 completed, 1 the script raised, 2 wrong usage or config,
    3 stopped by a limit, 4 refused or waiting for an answer.
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import run as command

    start(
        command.run_script,
        command.RunRequest(script, config, tuple(allow or ()), timeout, memory, check, isolation, as_json, park),
        verbose=verbose,
        log_json=log_json,
    )


@app.command("check")
def check_script(
    script: Annotated[str, typer.Argument(metavar="SCRIPT", help="A Python file, or - for stdin.")],
    *,
    config: ConfigFile = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
    log_json: LogJson = False,
) -> None:
    """Check a script against the stubs of the tools that it names, without running it.

    Found is what would fail in every run: a wrong, missing or ill-typed argument, an unknown key of a result,
    a missing await, an unknown tool.

    \b
    Example:
      codemode check report.py --config mcp.json

    \b
    Exit codes: 0 no mistakes, 1 mistakes, 2 wrong usage or config, or a server that the script names is down.
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import check as command

    start(command.check_script, command.CheckRequest(script, config, as_json), verbose=verbose, log_json=log_json)


@app.command()
def serve(
    *,
    config: ConfigFile = None,
    http: Annotated[
        str | None,
        typer.Option("--http", metavar="HOST:PORT", help="Serve streamable HTTP there instead of stdio."),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", "-a", metavar="PATTERN", help="Allow calls to the tools that match, in every session."),
    ] = None,
    verbose: Verbose = False,
    log_json: LogJson = False,
) -> None:
    """Serve the configured servers to an MCP client as three tools: search, describe, run a script.

    Over stdio unless --http is given. HTTP is at /mcp, with /health beside it; it wants a bearer token when
    CODEMODE_TOKEN or `serve` in the config sets one, and has to where other machines can reach it.

    \b
    Examples:
      codemode serve --config mcp.json --allow 'git.*'
      CODEMODE_TOKEN=$(openssl rand -hex 16) codemode serve --http 127.0.0.1:8000
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import serve as command

    start(command.serve, command.ServeRequest(config, http, tuple(allow or ())), verbose=verbose, log_json=log_json)


@tools.command("list")
def list_tools(
    *, config: ConfigFile = None, as_json: AsJson = False, verbose: Verbose = False, log_json: LogJson = False
) -> None:
    """List every tool: its name for --allow, and one line on what it does."""
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
    """List the servers: how each is doing, how many tools it offers, and what was left out.

    A lazy server is asleep until somebody searches in it, fetches a description from it or calls it.

    \b
    Example:
      codemode tools servers --connect --config mcp.json
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import servers as command

    start(command.list_servers, command.ServersRequest(config, connect, as_json), verbose=verbose, log_json=log_json)


@tools.command("search")
def search_tools(  # noqa: PLR0913 - one for each option
    query: Annotated[str, typer.Argument(help="Words to look for in names and descriptions; none lists all.")] = "",
    *,
    config: ConfigFile = None,
    server: Annotated[
        list[str] | None, typer.Option("--server", "-s", metavar="NAME", help="Only tools of this server; repeatable.")
    ] = None,
    category: Annotated[str | None, typer.Option(metavar="NAME", help="Only tools of this category.")] = None,
    read_only: Annotated[
        bool | None, typer.Option("--read-only/--no-read-only", help="Only tools whose server says just that.")
    ] = None,
    destructive: Annotated[
        bool | None, typer.Option("--destructive/--no-destructive", help="Only tools whose server says just that.")
    ] = None,
    mode: Annotated[
        Literal["auto", "keyword", "regex", "embedding", "hybrid"],
        typer.Option(help="How to look; auto is by words, and by meaning too where an embedder is configured."),
    ] = "auto",
    detail: Annotated[
        Literal["name", "brief", "full", "detailed"], typer.Option(help="Names, a line each, or whole stubs.")
    ] = "brief",
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", help="Tools on a page, 1 to 200.")] = 20,
    cursor: Annotated[str | None, typer.Option(metavar="TEXT", help="Where the next page begins, as told.")] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
    log_json: LogJson = False,
) -> None:
    """Find tools by words, best first.

    \b
    Examples:
      codemode tools search "commit history" --config mcp.json
      codemode tools search "delete" --destructive --server azure
      codemode tools search 'git_(log|diff)' --mode regex --detail full
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import tools as command
    from broker.search import Detail, Filters, Mode

    filters = Filters(
        servers=tuple(server) if server else None, category=category, read_only=read_only, destructive=destructive
    )
    request = command.FindRequest(
        config=config,
        query=query,
        mode=Mode(mode),
        detail=Detail.parse(detail),
        filters=filters,
        limit=limit,
        cursor=cursor,
        as_json=as_json,
    )
    start(command.find_tools, request, verbose=verbose, log_json=log_json)


@tools.command("show")
def show_tool(
    name: Annotated[str, typer.Argument(metavar="SERVER.TOOL", help="A name as `tools list` prints it.")],
    *,
    config: ConfigFile = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
    log_json: LogJson = False,
) -> None:
    """Show one tool in full: description, hints, and the stub that a script calls.

    \b
    Example:
      codemode tools show git.git_log --config mcp.json
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import tools as command

    start(command.show_tool, command.ShowRequest(config, name, as_json), verbose=verbose, log_json=log_json)


@app.command()
def stubs(
    pattern: Annotated[str, typer.Argument(help="Tools as server.tool; * and ? match.")],
    *,
    config: ConfigFile = None,
    verbose: Verbose = False,
    log_json: LogJson = False,
) -> None:
    """Print the typed Python stubs of the tools that match, as a script's author reads them.

    \b
    Example:
      codemode stubs 'git.*' --config mcp.json > git.pyi
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import stubs as command

    start(command.print_stubs, command.StubsRequest(config, pattern), verbose=verbose, log_json=log_json)


@app.command()
def doctor(*, config: ConfigFile = None, verbose: Verbose = False, log_json: LogJson = False) -> None:
    """Check the guest image, its cache, what confines scripts, and every server.

    One line each, with what to do about what is wrong.
    Ends with exit code 0 if all is well, 2 otherwise.
    """
    from broker.cli import doctor as command

    start(command.examine, command.DoctorRequest(config), verbose=verbose, log_json=log_json)


@image.command("build")
def build_image(
    *,
    packages: Annotated[
        list[str] | None,
        typer.Option(
            "--with", metavar="PACKAGE", help="A package as pip takes it, like 'jinja2>=3.1'. Repeat for more."
        ),
    ] = None,
    name: Annotated[str, typer.Option("--name", "-n", metavar="NAME", help="What the image is called.")] = "default",
    lock: Annotated[
        Path | None, typer.Option("--lock", metavar="FILE", help="Build from the lock of an earlier build instead.")
    ] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
    log_json: LogJson = False,
) -> None:
    """Build a guest image with further pure-Python packages.

    Wheels are fetched with pip; none of their code runs on this machine. They are imported inside WebAssembly while
    the image is made, and scripts import them from there. A lock beside the image keeps exact versions and hashes.
    Needs `pip install 'codemode-broker[images]'`.

    \b
    Examples:
      codemode image build --with pyyaml --with python-dateutil --name data
      codemode image build --lock packages.lock --name data

    Scripts run on it with "image": "data" in the config.
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import image as command

    start(
        command.build,
        command.BuildRequest(name, tuple(packages or ()), lock, as_json),
        verbose=verbose,
        log_json=log_json,
    )


@image.command("list")
def list_images(*, as_json: AsJson = False, verbose: Verbose = False, log_json: LogJson = False) -> None:
    """List the images that were built, with their packages."""
    from broker.cli import image as command

    start(command.show_images, command.ImagesRequest(as_json), verbose=verbose, log_json=log_json)


@image.command("rm")
def remove_image(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As `image list` prints it.")],
    *,
    verbose: Verbose = False,
    log_json: LogJson = False,
) -> None:
    """Remove an image and its lock."""
    from broker.cli import image as command

    start(command.remove, command.RemoveRequest(name), verbose=verbose, log_json=log_json)


# Last, so that the help begins with running a script.
recorded.register(app, tools)
