"""`codemode run`: one script to its outcome."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from broker.cli.configured import load_config, open_broker, report_no_config, report_servers
from broker.cli.consent import TerminalAnswerer
from broker.cli.given_grants import grants_of, report_idle, report_unlisted
from broker.cli.run_report import conclude, reported_if_ended, show_output
from broker.cli.script_file import name_in_tracebacks, read_script
from broker.cli.terminal import Problem, can_ask
from sandbox.limits import LEAST_MEMORY_BYTES, MIB

if TYPE_CHECKING:
    from pathlib import Path

    from broker import CheckMode
    from broker.cli.exit_codes import ExitCode
    from sandbox import Isolation, Limits

_LACKS_TOOLS = {"ScriptCheckError", "NameError", "ImportError", "ModuleNotFoundError"}


@dataclass(frozen=True)
class RunRequest:
    """The arguments of `codemode run`, as given."""

    script: str
    config: Path | None
    allow: tuple[str, ...]
    timeout_seconds: float | None
    memory_mib: int | None
    check: CheckMode
    isolation: Isolation | None
    as_json: bool
    park: bool = False


async def run_script(request: RunRequest) -> ExitCode:
    """Run the script, write its result and return what it ended with."""
    script = read_script(request.script)
    grants = grants_of(request.allow)
    config = load_config(request.config, needed=False)
    report_idle(grants, config)
    limits = _limits(request, config.sandbox.limits)
    if request.park and config.recordings.mode != "full":
        raise Problem("--park needs runs that are recorded in full", "Set recordings.mode in the config to full.")
    answerer = TerminalAnswerer() if can_ask() else None
    async with open_broker(config, runs_scripts=True, isolation=request.isolation) as broker:
        session = broker.session(grants=grants, answerer=answerer, parks=request.park)
        with reported_if_ended(request, lambda: session.open_runs) as on_call:
            result = await session.execute_code(
                script,
                filename=name_in_tracebacks(request.script),
                limits=limits,
                on_output=None if request.as_json else show_output,
                on_call=on_call,
                describe_references=True,
                check=request.check,
            )
        report_servers(broker, request)
        report_unlisted(grants, broker.catalog)
    code = conclude(result, request)
    if result.error is not None and result.error.type in _LACKS_TOOLS:
        report_no_config(request.config)
    return code


def _limits(request: RunRequest, configured: Limits) -> Limits:
    least = LEAST_MEMORY_BYTES // MIB
    if request.memory_mib is not None and request.memory_mib < least:
        raise Problem(f"--memory must be at least {least} (the interpreter itself), not {request.memory_mib}")
    given: dict[str, float | int] = {}
    if request.timeout_seconds is not None:
        given["wall_seconds"] = request.timeout_seconds
    if request.memory_mib is not None:
        given["memory_bytes"] = request.memory_mib * MIB
    try:
        return replace(configured, **given)  # type: ignore[arg-type]  # Limits checks each field itself
    except ValueError as error:
        raise Problem(str(error).replace("wall_seconds", "--timeout")) from None
