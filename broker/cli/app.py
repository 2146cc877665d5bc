"""The command line as a whole: its commands in the order in which `--help` lists them.

What each accepts is in the `*_commands.py`; what it does is in a module of its own, imported when it is called:
`codemode --help` and shell completion need neither wasmtime nor the MCP SDK.
"""

from __future__ import annotations

from typing import Annotated

import typer

from broker.cli import authorization_commands, recording_commands, script_commands
from broker.cli.command_names import AtAnAddress, Commands
from broker.cli.completion import complete_at_once
from broker.cli.exit_codes import ExitCode
from broker.cli.image_commands import image
from broker.cli.mcp_commands import mcp
from broker.cli.terminal import report_problem
from broker.cli.tool_commands import tools
from broker.shortage import too_little

app = typer.Typer(
    name="codemode",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:  # noqa: FBT001  # typer's callback signature
    if asked:
        from importlib.metadata import version  # noqa: PLC0415  # not needed for --help

        typer.echo(f"codemode {version('codemode-broker')}")
        raise typer.Exit


@app.callback()
def codemode(
    *,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Run Python scripts in a WebAssembly sandbox; their tool calls go to MCP servers, each one authorized.

    \b
    Start here:
      codemode mcp import                        which servers do other clients have?
      codemode doctor --config mcp.json          does everything work?
      codemode tools list --config mcp.json      what can a script call?
      codemode run script.py --config mcp.json --allow 'git.*'
    """  # noqa: D301  # \b keeps click from refilling the lines
    if problem := too_little():
        report_problem(*problem)
        raise typer.Exit(ExitCode.USAGE)


complete_at_once()
app.command("run")(script_commands.run)
app.command("check")(script_commands.check_script)
app.command("serve", cls=AtAnAddress)(script_commands.serve)
app.command("stubs")(script_commands.stubs)
app.command("doctor")(script_commands.doctor)
app.command("show")(recording_commands.show_run)
app.command("replay")(recording_commands.replay_recordings)
app.command("runs")(recording_commands.list_runs)
app.command("resume")(recording_commands.resume_run)
app.add_typer(tools, name="tools")
tools.command("infer")(recording_commands.infer_results)
app.add_typer(recording_commands.recordings, name="recordings")
app.add_typer(image, name="image")
app.add_typer(authorization_commands.policy, name="policy")
app.add_typer(authorization_commands.grants, name="grants")
app.add_typer(authorization_commands.audit, name="audit")
app.add_typer(mcp, name="mcp")
