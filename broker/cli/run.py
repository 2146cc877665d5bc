"""`codemode run`: one script to its outcome."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import anyio

from broker import Grant, PatternError
from broker.authorization.patterns import has_wildcards, literal, matcher
from broker.cli.call_table import call_table
from broker.cli.configured import load_config, open_broker, report_no_config, report_servers
from broker.cli.consent import TerminalAnswerer
from broker.cli.exit_codes import ExitCode
from broker.cli.next_command import whole
from broker.cli.script_file import name_in_tracebacks, read_script
from broker.cli.terminal import Problem, can_ask, note, report_problem, write_result, write_to
from codegen.plain_text import one_line
from sandbox.limits import LEAST_MEMORY_BYTES, MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from broker import CallRecord, CheckMode, Config, ExecutionResult
    from broker.tools.catalog import Catalog
    from sandbox import Isolation, Limits


_DISPLAYED_CHARACTERS = 200
_UNLISTED_CHARACTERS = 400

_ADVICE = {
    "wall_seconds": "--timeout S allows more; does the script wait for something that never comes?",
    "cpu_seconds": "Leave heavy work to a tool, or allow more with sandbox.limits.cpu_seconds in the config.",
    "memory_bytes": "--memory MB allows more.",
    "output_bytes": "Print a summary; write long results through a tool.",
    "value_bytes": "Return a summary; write long results through a tool.",
    "calls": "Ask for more in each call, or split the script.",
    "stack": "Nest and recurse less.",
    "worker": "The script brought its worker process down; nothing else was hurt.",
}

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
    answerer = TerminalAnswerer() if can_ask() else None
    async with open_broker(config, runs_scripts=True, isolation=request.isolation) as broker:
        with reported_if_ended(request, "last" if config.recordings.mode == "full" else "") as on_call:
            result = await broker.session(grants=grants, answerer=answerer, parks=request.park).execute_code(
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
    if request.as_json:
        write_result(result.model_dump_json())
    else:
        report(result, request)
    if result.error is not None and result.error.type in _LACKS_TOOLS:
        report_no_config(request.config)
    return exit_code(result)


def grants_of(patterns: tuple[str, ...]) -> list[Grant]:
    """Return the grants that `--allow` options give.

    Raises:
        Problem: A pattern can match nothing.
    """
    try:
        return [Grant.parse(pattern) for pattern in patterns]
    except PatternError as error:
        raise Problem(f"--allow: {error}") from None


def report_idle(grants: Iterable[Grant], config: Config) -> None:
    """Name on stderr the grants for servers that the config does not have: a typing error, mostly."""
    for grant in grants:
        server = grant.pattern.partition(".")[0]
        if config.servers and server not in config.servers and not has_wildcards(server):
            note(f"--allow {grant.pattern}: the config has no server {server!r}; it has {', '.join(config.servers)}")


def report_unlisted(grants: Iterable[Grant], catalog: Catalog) -> None:
    """Name on stderr the grants that match no tool of their server, where it has said which it has."""
    for grant in grants:
        tools = catalog.of_server(grant.pattern.partition(".")[0])
        matches = matcher(grant.pattern)
        if tools and not any(matches(tool.qualified_name) for tool in tools):
            near = catalog.suggest(literal(grant.pattern))
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            note(one_line(f"--allow {grant.pattern}: there is no such tool{hint}", _UNLISTED_CHARACTERS))


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


def show_output(stream: str, text: str) -> None:
    """Pass on what a script prints."""
    write_to(sys.stderr if stream == "stderr" else sys.stdout, text)


@contextmanager
def reported_if_ended(request: object, run: str) -> Iterator[Callable[[CallRecord, int, int], None]]:
    """Tell of the calls that a run has made, and how to go on with it, where the command is ended meanwhile.

    One without calls has perhaps not begun, and repeats nothing if it is run again: of it nothing is told.

    Args:
        request: As of `report`.
        run: What `codemode resume` is given to go on with it; empty where it is not recorded with its content.
    """
    calls: list[CallRecord] = []
    try:
        yield lambda record, _ended, _made: calls.append(record)
    except anyio.get_cancelled_exc_class():
        if calls:
            note("")
            note(call_table(calls))
        if calls and run:
            note(whole(f"`codemode resume {run}` continues the run; answered calls are not repeated.", request))
        raise


def report(result: ExecutionResult, request: object) -> None:
    """Write the value of a script to stdout; how it ended and what it called to stderr.

    `request` is what the command was given, for another one that goes on with the run.
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
        waits = f"parked: it waits for somebody to allow its calls; `codemode resume {result.run_id}` asks"
        note(whole(waits, request))
    if result.calls:
        note("")
        note(call_table(result.calls))


def _kind(block: dict[str, Any]) -> str:
    return str(block.get("mimeType") or block.get("resource", {}).get("mimeType") or block["type"])


def exit_code(result: ExecutionResult) -> ExitCode:
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
