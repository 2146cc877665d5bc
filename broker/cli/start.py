"""Runs the coroutine of a command and turns whatever ends it into an exit code and, at most, an error text."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, NoReturn, TypeVar

import anyio
import typer

from broker.cli.exit_codes import ExitCode
from broker.cli.next_command import whole
from broker.cli.signals import SignalReceived, run_until_signal
from broker.cli.streams import lost_output
from broker.cli.terminal import Problem, note, report_problem
from broker.errors import RecordingError, RunInterruptedError, StoreError, UnavailableError
from broker.shortage import instead_of_workers, raise_limits, shortage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Request = TypeVar("Request")

_RECORDED = "What the script printed is in its recording: `codemode show last`."


def start(
    command: Callable[[Request], Awaitable[ExitCode]],
    request: Request,
    *,
    verbose: bool = False,
    log_json: bool = False,
    is_recorded: bool = False,
) -> NoReturn:
    """Run a command and exit with its exit code. No Python traceback of ours reaches the terminal.

    If it `is_recorded`, its output on stdout is a script's, and is in the recording of the run too.
    """
    from broker.cli.logs import configure_logs  # noqa: PLC0415  # --help loads neither structlog nor codegen

    configure_logs(verbose=verbose, as_json=log_json)
    try:
        code = anyio.run(run_until_signal, command, request)
    except KeyboardInterrupt:
        code = _ended_by(signal.SIGINT)
    except SignalReceived as ended:
        code = _ended_by(ended.number)
    except Exception as error:  # noqa: BLE001  # the edge of the program
        code = _report(error, request)
    if fault := lost_output():
        lost = _RECORDED if is_recorded else "Only this output is lost: free some space, or write it to another place."
        report_problem(f"stdout cannot be written: {fault}", whole(lost, request))
        code = code or ExitCode.FAULT  # not USAGE: scripts that see that may run it again
    raise typer.Exit(code)


def _ended_by(number: signal.Signals) -> ExitCode:
    if number is signal.SIGINT:
        note("")  # the terminal has just shown ^C
        report_problem("interrupted")
    else:
        report_problem(f"ended by {number.name}")
    return ExitCode(128 + number)


def _report(error: Exception, request: object) -> ExitCode:
    import structlog  # noqa: PLC0415  # as above

    from sandbox import ImageError, SystemLimitError, WorkerError  # noqa: PLC0415  # wasmtime is not loaded for --help

    cause = _cause(error)
    what, what_to_do, code = str(cause), "", ExitCode.USAGE
    match cause:
        case Problem():
            what, what_to_do = cause.what, cause.what_to_do
        case ImageError() | SystemLimitError() | RecordingError() | UnavailableError():
            pass
        case WorkerError():
            what_to_do = instead_of_workers()
        case RunInterruptedError():
            what_to_do, code = cause.what_to_do, ExitCode.FAULT  # not USAGE, which says that nothing was run
        case StoreError():
            what_to_do = "Nothing was run."
        case _ if missing := shortage(cause):
            what, what_to_do = f"the system gives codemode no more {missing}: {cause}", raise_limits()
            code = ExitCode.FAULT
        case _:
            structlog.get_logger().debug("fault", exc_info=error)
            what = f"codemode failed: {type(cause).__name__}: {cause}"
            what_to_do = "This is a fault of codemode, not of the script. --verbose logs where it happened."
            code = ExitCode.FAULT
    report_problem(whole(what, request), whole(what_to_do, request))
    return code


def _cause(error: Exception) -> Exception:
    """Return the exception inside the groups of task groups; of several, one that the system caused."""
    if not isinstance(error, ExceptionGroup):
        return error
    causes = [_cause(one) for one in error.exceptions]
    if len(causes) == 1:
        return causes[0]
    return next((cause for cause in causes if shortage(cause)), error)
