"""What the command line accepts about runs that were recorded; as app.py, which it is a part of.

Above: app.py. Below: the module of each command, imported when it is called.
"""

# Typer reads the annotations while the program runs.
# ruff: noqa: PLC0415

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from broker.cli.start import start

recordings = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Look at what is recorded; move it in and out."
)

Names = Annotated[list[str], typer.Argument(metavar="RUN…", help="Ids of runs, beginnings of them, or `last`.")]
Files = Annotated[list[Path], typer.Argument(metavar="FILE…", help="Files that `recordings export` wrote.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="A file, or a folder; stdout if left out.")
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Log to stderr what the broker does.")]
LogJson = Annotated[bool, typer.Option("--log-json", help="Log to stderr as one JSON object a line.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value on stdout.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.add_typer(recordings, name="recordings")


@recordings.command("list")
def list_recordings(
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many, newest first.")] = 30,
    as_json: AsJson = False,
    verbose: Verbose = False,
    log_json: LogJson = False,
) -> None:
    """List the recorded runs, newest first."""
    from broker.cli import recordings as command

    start(command.list_recordings, command.ListRequest(limit, as_json), verbose=verbose, log_json=log_json)


@recordings.command("export")
def export_recordings(
    names: Names,
    *,
    output: Output = None,
    verbose: Verbose = False,
    log_json: LogJson = False,
) -> None:
    """Write recordings to self-contained JSONL files, for other machines, CI or `codemode replay`.

    \b
    Example:
      codemode recordings export last -o tests/recordings/report.jsonl
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import recordings as command

    start(command.export_recordings, command.FilesRequest(tuple(names), output), verbose=verbose, log_json=log_json)


@recordings.command("import")
def import_recordings(
    files: Files,
    *,
    verbose: Verbose = False,
    log_json: LogJson = False,
) -> None:
    """Take recordings over from files. What they say was allowed counts for nothing here."""
    from broker.cli import recordings as command

    request = command.FilesRequest(tuple(str(file) for file in files))
    start(command.import_recordings, request, verbose=verbose, log_json=log_json)


@recordings.command("rm")
def remove_recordings(names: Names, *, verbose: Verbose = False, log_json: LogJson = False) -> None:
    """Remove recordings, also of runs that were interrupted."""
    from broker.cli import recordings as command

    start(command.remove_recordings, command.FilesRequest(tuple(names)), verbose=verbose, log_json=log_json)


@recordings.command("schema")
def print_schema() -> None:
    """Print the JSON Schema of a line of an exported recording."""
    from broker.cli import recordings as command

    start(command.print_schema, None, verbose=False, log_json=False)
