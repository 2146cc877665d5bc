"""What `codemode run` and `codemode resume` write about a run: its output, its calls, how it ended.

Above: run.py, runs.py. Below: call_table.py.
"""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import anyio

from broker.cli.call_table import call_table
from broker.cli.exit_codes import ExitCode
from broker.cli.next_command import whole
from broker.cli.terminal import note, report_problem, write_result, write_to
from codegen.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from broker import CallRecord, ExecutionResult
    from broker.cli.run import RunRequest
    from broker.cli.runs import ResumeRequest

_DISPLAYED_CHARACTERS = 200

_ADVICE = {
    "wall_seconds": "--timeout S allows more; does the script wait for something that never comes?",
    "cpu_seconds": "Leave heavy work to a tool, or allow more with sandbox.limits.cpu_seconds in the config.",
    "memory_bytes": "--memory MB allows more.",
    "output_bytes": "Print a summary; write long results through a tool.",
    "value_bytes": "Return a summary; write long results through a tool.",
    "open_bytes": "Make fewer calls at the same time, or pass less to each.",
    "recording_bytes": "Ask for less in each call, or allow more with recordings.max_run_mib in the config.",
    "calls": "Ask for more in each call, or split the script.",
    "stack": "Nest and recurse less.",
    "depth": "Return and pass values that are nested less deep, or their text by json.dumps.",
    "values": "Return a summary, and pass less to each call.",
    "steps": "It waits too often: sleep longer each time, or split the script.",
    "argument_bytes": "Pass less to one call.",
    "worker": "The script brought its worker process down; nothing else was hurt.",
}


def show_output(stream: str, text: str) -> None:
    """Pass on what a script prints."""
    write_to(sys.stderr if stream == "stderr" else sys.stdout, text)


@contextmanager
def reported_if_ended(
    request: object, open_runs: Callable[[], Iterable[str]]
) -> Iterator[Callable[[CallRecord, int, int], None]]:
    """If the command is ended inside the block, say which calls the run has made, and how to continue it.

    Nothing is said about a run without calls: it may not have begun, and can simply be run again.

    Args:
        request: The arguments of the command, for the command that continues the run.
        open_runs: Returns the run for `codemode resume`; none if its content is not recorded.
    """
    calls: list[CallRecord] = []
    try:
        yield lambda record, _ended, _made: calls.append(record)
    except anyio.get_cancelled_exc_class():
        if calls:
            note("")
            note(call_table(calls))
            for run in open_runs():
                note(whole(f"`codemode resume {run}` continues the run; answered calls are not repeated.", request))
        raise


def conclude(result: ExecutionResult, request: RunRequest | ResumeRequest) -> ExitCode:
    """Write how a run ended, as the command was asked to, and return its exit code."""
    if request.as_json:
        write_result(result.model_dump_json())
    else:
        _report(result, request)
    return _exit_code(result)


def _report(result: ExecutionResult, request: object) -> None:
    """Write the value of a script to stdout; how it ended and what it called to stderr.

    `request` has the arguments of the command, for the command that continues the run.
    """
    if result.value is not None:
        write_result(json.dumps(result.value, indent=2, ensure_ascii=False))
    if result.error is not None:
        write_to(sys.stderr, result.error.traceback.rstrip("\n") + "\n")
    if result.displayed:
        kinds = one_line(", ".join(map(_kind, result.displayed)), _DISPLAYED_CHARACTERS)
        note(f"displayed, for clients and not on a terminal: {kinds}")
    if result.stopped is not None:
        stopped = result.stopped
        where = f" at line {stopped.line}" if stopped.line else ""
        report_problem(f"stopped: the limit {stopped.reached} was reached{where}", _ADVICE.get(stopped.limit, ""))
    if result.outcome == "parked":
        note(whole(_parked(result), request))
    if result.calls:
        note("")
        note(call_table(result.calls))


def _parked(result: ExecutionResult) -> str:
    resume = f"codemode resume {result.run_id}"
    if any(call.status == "outcome_unknown" for call in result.calls):
        return (
            "parked: it waits for somebody to say whether a call of unknown outcome is sent again; "
            f"`{resume}` asks at a terminal, `{resume} --unknown fail` and `--unknown repeat` do not"
        )
    return f"parked: it waits for somebody to allow its calls; `{resume}` asks"


def _kind(block: dict[str, Any]) -> str:
    return str(block.get("mimeType") or block.get("resource", {}).get("mimeType") or block["type"])


def _exit_code(result: ExecutionResult) -> ExitCode:
    """Return the exit code for how a script ended."""
    match result.outcome:
        case "completed":
            return ExitCode.COMPLETED
        case "raised":
            return ExitCode.REFUSED if result.is_refused else ExitCode.RAISED
        case "stopped":
            return ExitCode.STOPPED
        case "parked":
            return ExitCode.REFUSED
