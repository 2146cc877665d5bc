"""Runs the coroutine of a command and turns whatever ends it into an exit code and, at most, an error text."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, TypeVar

import anyio
import structlog
import typer

from broker.cli.exit_codes import ExitCode
from broker.cli.logs import configure_logs
from broker.cli.signals import SignalReceived, run_until_signal
from broker.cli.streams import lost_output
from broker.cli.terminal import Problem, note, report_problem
from broker.errors import RunInterruptedError, StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Request = TypeVar("Request")


def start(
    command: Callable[[Request], Awaitable[ExitCode]], request: Request, *, verbose: bool, log_json: bool
) -> NoReturn:
    """Run a command and leave with its exit code. No Python traceback of ours reaches the terminal."""
    configure_logs(verbose=verbose, as_json=log_json)
    try:
        code = anyio.run(run_until_signal, command, request)
    except KeyboardInterrupt:
        note("")  # the terminal has just shown ^C
        report_problem("interrupted")
        code = ExitCode.INTERRUPTED
    except SignalReceived as ended:
        report_problem(f"ended by {ended.number.name}")
        code = ExitCode(128 + ended.number)
    except Exception as error:  # noqa: BLE001  # the edge of the program
        code = _report(error)
    if fault := lost_output():
        report_problem(
            f"stdout cannot be written: {fault}", "What a script printed is in its recording: `codemode show last`."
        )
        code = code or ExitCode.FAULT  # not USAGE: scripts that see that may run it again
    raise typer.Exit(code)


def _report(error: Exception) -> ExitCode:
    from sandbox import ImageError, WorkerError  # noqa: PLC0415  # wasmtime is not loaded for --help

    cause = _only_cause(error)
    if isinstance(cause, Problem):
        report_problem(cause.what, cause.what_to_do)
        return ExitCode.USAGE
    if isinstance(cause, ImageError):
        report_problem(str(cause))
        return ExitCode.USAGE
    if isinstance(cause, WorkerError):
        report_problem(
            str(cause), "`codemode run --isolation thread` runs scripts in this process, with one wall less."
        )
        return ExitCode.USAGE
    if isinstance(cause, RunInterruptedError):
        report_problem(str(cause), cause.what_to_do)
        return ExitCode.FAULT  # not USAGE, which says that nothing was run
    if isinstance(cause, StoreError):
        report_problem(str(cause), "Nothing was run.")
        return ExitCode.USAGE
    structlog.get_logger().debug("fault", exc_info=error)
    report_problem(
        f"codemode failed: {type(cause).__name__}: {cause}",
        "This is a fault of codemode, not of the script. --verbose logs where it happened.",
    )
    return ExitCode.FAULT


def _only_cause(error: Exception) -> Exception:
    """Take an exception out of the groups that task groups put around it."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
