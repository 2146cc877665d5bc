"""The commands around a script as the command line accepts them: `run`, `check`, `serve`, `stubs`, `doctor`.

Above: app.py, which adds them. Below: the module of each command, imported when it is called.
"""

# Typer reads the annotations while the program runs.
# ruff: noqa: PLC0415, TC001

from __future__ import annotations

from typing import Annotated, Literal

import typer

from broker.cli.options import Allow, AsJson, ConfigFile, Isolation, LogJson, Verbose
from broker.cli.start import start


def run(  # noqa: PLR0913  # one parameter for each option
    script: Annotated[str, typer.Argument(metavar="SCRIPT", help="A Python file, or - for stdin.")],
    *,
    config: ConfigFile = None,
    allow: Allow = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            "-t",
            metavar="S",
            help="Wall-clock seconds the script may take, instead of the config's, or of 30.",
        ),
    ] = None,
    memory: Annotated[
        int | None,
        typer.Option(
            "--memory", "-m", metavar="MB", help="Memory the script may use, instead of the config's, or of 256."
        ),
    ] = None,
    check: Annotated[
        Literal["error", "warn", "off"],
        typer.Option(
            "--check",
            help="What to do about mistakes in the use of tools: `error` does not start the script, `warn` prints "
            "them, `off` does not look.",
        ),
    ] = "error",
    isolation: Isolation = None,
    park: Annotated[
        bool,
        typer.Option("--park", help="Without a terminal: park the run at a question; `codemode resume` continues it."),
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

    The script sees no files, network or environment. A call is made only if the policy of the config, an --allow
    pattern or your yes at the terminal allows it; otherwise it is refused. Printed text goes to stdout, the table
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
        is_recorded=True,
    )


def check_script(
    script: Annotated[str, typer.Argument(metavar="SCRIPT", help="A Python file, or - for stdin.")],
    *,
    config: ConfigFile = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
    log_json: LogJson = False,
) -> None:
    """Check how a script uses its tools, without running it.

    Compares it with the stubs of the tools that it names, and reports what would fail in every run: a wrong,
    missing or ill-typed argument, an unknown key of a result, a missing await, an unknown tool.

    \b
    Example:
      codemode check report.py --config mcp.json

    \b
    Exit codes: 0 no mistakes, 1 mistakes, 2 wrong usage or config,
    or a server that the script names is down.
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import check as command

    start(command.check_script, command.CheckRequest(script, config, as_json), verbose=verbose, log_json=log_json)


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
    """Serve MCP clients: search, describe, run a script.

    Through these three tools, clients reach all tools of the configured servers. Serves stdio; with --http,
    streamable HTTP at /mcp and a health check at /health. HTTP requires a bearer token if CODEMODE_TOKEN or `serve`
    in the config says so; without one it is served on this machine only.

    \b
    Examples:
      codemode serve --config mcp.json --allow 'git.*'
      export CODEMODE_TOKEN=$(openssl rand -hex 16)
      codemode serve --config mcp.json --http 127.0.0.1:8000
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import serve as command

    start(command.serve, command.ServeRequest(config, http, tuple(allow or ())), verbose=verbose, log_json=log_json)


def stubs(
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="Tools as server.tool; * and ? match.")],
    *,
    config: ConfigFile = None,
    verbose: Verbose = False,
    log_json: LogJson = False,
) -> None:
    """Print the typed Python stubs of the tools that match.

    \b
    Example:
      codemode stubs 'git.*' --config mcp.json > git.pyi
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import stubs as command

    start(command.print_stubs, command.StubsRequest(config, pattern), verbose=verbose, log_json=log_json)


def doctor(
    *, config: ConfigFile = None, as_json: AsJson = False, verbose: Verbose = False, log_json: LogJson = False
) -> None:
    """Check image, cache, confinement, store, config and servers.

    Prints a line for each, and for each part of the policy that has no effect. Says what to do about what is wrong.

    \b
    Example:
      codemode doctor --config mcp.json

    Exit codes: 0 all is well, 2 something is wrong.
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import doctor as command

    start(command.examine, command.DoctorRequest(config, as_json), verbose=verbose, log_json=log_json)
