"""The commands about recorded runs as the command line accepts them: `recordings`, `show`, `replay`, `runs`, `resume`.

Above: app.py, which adds them. Below: the module of each command, imported when it is called.
"""

# Typer reads the annotations while the program runs.
# ruff: noqa: PLC0415, TC001

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from broker.cli.command_names import group
from broker.cli.completed_names import complete_open_run, complete_run
from broker.cli.options import Allow, AsJson, ConfigFile, Isolation, LogJson, Verbose
from broker.cli.start import start

recordings = group("List, export, import and remove recorded runs.")

Names = Annotated[
    list[str],
    typer.Argument(metavar="RUN", help="Ids of runs, or their beginnings, or `last`.", autocompletion=complete_run),
]
Files = Annotated[list[Path], typer.Argument(metavar="FILE", help="Files that `recordings export` wrote.")]
Output = Annotated[
    str | None,  # a Path loses the slash at the end
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="A file, or a folder that is there; stdout if left out.",
    ),
]


@recordings.command("list")
def list_recordings(
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="How many.")] = 30,
    as_json: AsJson = False,
    verbose: Verbose = False,
    log_json: LogJson = False,
) -> None:
    """List the recorded runs, newest first.

    \b
    Example:
      codemode recordings list -n 5
    """  # noqa: D301  # \b keeps click from refilling the lines
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
    """Write recordings to self-contained JSONL files.

    For other machines, CI or `codemode replay`.

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
    """Import recordings from files. What was allowed in them is not allowed here.

    \b
    Example:
      codemode recordings import report.jsonl

    \b
    Exit codes: 0 all are imported, 2 one or more are not.
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import recordings as command

    request = command.FilesRequest(tuple(str(file) for file in files))
    start(command.import_recordings, request, verbose=verbose, log_json=log_json)


@recordings.command("rm")
def remove_recordings(names: Names, *, verbose: Verbose = False, log_json: LogJson = False) -> None:
    """Remove recordings, also of runs that were interrupted.

    \b
    Example:
      codemode recordings rm last run_4f5a
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import recordings as command

    start(command.remove_recordings, command.FilesRequest(tuple(names)), verbose=verbose, log_json=log_json)


@recordings.command("schema")
def print_schema() -> None:
    """Print the JSON Schema of a line of an exported recording.

    \b
    Example:
      codemode recordings schema > recording.schema.json
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import recordings as command

    start(command.print_schema, None)


def list_runs(*, as_json: AsJson = False, verbose: Verbose = False, log_json: LogJson = False) -> None:
    """List the runs that are not over.

    They are running, interrupted or parked. Of each it shows the calls that have no answer yet.

    \b
    Example:
      codemode runs
      codemode resume run_4f5a --config mcp.json
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import runs as command

    start(command.list_runs, command.RunsRequest(as_json), verbose=verbose, log_json=log_json)


def resume_run(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN", help="Its id, or the beginning of it, or `last`.", autocompletion=complete_open_run
        ),
    ],
    *,
    config: ConfigFile = None,
    allow: Allow = None,
    unknown: Annotated[
        Literal["fail", "ask", "repeat"] | None,
        typer.Option(
            "--unknown",
            help="What to do about a call that was sent and whose answer is not known: `fail` it in the script, `ask` "
            "you whether to send it again, or `repeat` it if a trusted server marks the tool idempotent or read-only. "
            "Without this option the config decides.",
        ),
    ] = None,
    isolation: Isolation = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
    log_json: LogJson = False,
) -> None:
    """Continue a run that was interrupted or is parked. Calls that were answered are not repeated.

    What --allow granted the run still holds, for the tools as they were defined then. If a question comes up and you
    are not at a terminal, the run is parked again.

    \b
    Example:
      codemode runs
      codemode resume run_4f5a --config mcp.json

    \b
    Exit codes: those of `codemode run`.
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import runs as command

    request = command.ResumeRequest(run, config, tuple(allow or ()), unknown, isolation, as_json)
    start(command.resume_run, request, verbose=verbose, log_json=log_json, is_recorded=True)


def replay_recordings(  # noqa: PLR0913  # options
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|RUN", help="Files, folders of them, runs, or `last`.", autocompletion=complete_run
        ),
    ],
    *,
    script: Annotated[
        str | None, typer.Option("--script", metavar="NEW.py", help="Run this script on the recorded answers.")
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Send calls to the real servers; with --script, those not recorded.")
    ] = False,
    policy: Annotated[
        Path | None,
        typer.Option(
            "--policy", metavar="FILE", help="Show what this policy would decide about the recorded calls; run nothing."
        ),
    ] = None,
    step: Annotated[bool, typer.Option("--step", help="Go forward and back through the run.")] = False,
    config: ConfigFile = None,
    allow: Allow = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore",
            metavar="POINTER",
            help="Ignore a field in comparisons, as in /result/updated_at or /outcome/completed/total, or what was "
            "printed: /printed.",
        ),
    ] = None,
    junit: Annotated[
        str | None, typer.Option("--junit", metavar="FILE", help="Write the results as JUnit XML.")
    ] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
    log_json: LogJson = False,
) -> None:
    """Run recorded scripts again and compare every step.

    Needs only the recording: no server, no config. Shows the first difference as a diff. Can also try another
    script, another policy, or the servers as they are now.

    \b
    Examples:
      codemode replay tests/recordings --junit replay.xml
      codemode replay last --script report.py
      codemode replay last --live --config mcp.json --allow 'git.*' --ignore /result/updated_at
      codemode replay last --policy stricter.json
      codemode replay last --step

    \b
    Exit codes: 0 all the same, 1 differences, 2 what cannot be replayed.
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import replay as command

    request = command.ReplayRequest(
        tuple(targets), script, live, policy, step, config, tuple(allow or ()), tuple(ignore or ()), junit, as_json
    )
    start(command.replay_recordings, request, verbose=verbose, log_json=log_json)


def show_run(
    target: Annotated[
        str, typer.Argument(metavar="FILE|RUN", help="A file, a run, or `last`.", autocompletion=complete_run)
    ],
    *,
    html: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="Write one self-contained page instead.")
    ] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
    log_json: LogJson = False,
) -> None:
    """Show a run: its end, its calls over time, its script.

    Shows beside each line of the script what it cost.

    A bar is a call: `░` until it was sent, `?` while somebody was asked, `█` until it was answered.

    \b
    Examples:
      codemode show last
      codemode show last --html run.html
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import show as command

    start(command.show_run, command.ShowRequest(target, html, as_json), verbose=verbose, log_json=log_json)


def infer_results(
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="Tools as server.tool; * and ? match.")],
    *,
    keep: Annotated[
        bool, typer.Option("--store", help="Use these types in the stubs of tools that declare none.")
    ] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Remove the types that were stored.")] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
    log_json: LogJson = False,
) -> None:
    """Infer what tools return from recorded results.

    Prints types, optional fields and counts.

    A stored type belongs to one definition of a tool and is marked as inferred in its stub. Scripts still get every
    result, whether it fits the type or not.

    \b
    Example:
      codemode tools infer 'git.*' --store
    """  # noqa: D301  # \b keeps click from refilling the lines
    from broker.cli import infer as command

    request = command.InferRequest(pattern, keep, forget, as_json)
    start(command.infer_results, request, verbose=verbose, log_json=log_json)
