"""`codemode replay --script`, `--live` and `--policy`: compares a recording with a run of today."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError
from rich.text import Text

from broker.authorization.policy import Policy
from broker.authorization.policy_config import PolicyConfig
from broker.authorization.policy_problems import policy_problems
from broker.cli.compile_progress import compile_progress
from broker.cli.configured import load_config, open_broker, report_servers
from broker.cli.consent import TerminalAnswerer
from broker.cli.diffs import print_diff
from broker.cli.exit_codes import ExitCode
from broker.cli.given_grants import grants_of, report_idle, report_unlisted
from broker.cli.script_file import name_in_tracebacks, read_script
from broker.cli.stored import open_recordings
from broker.cli.terminal import Problem, can_ask, note, notes, print_table, write_result
from broker.config.text import decoded, read_text
from broker.errors import ConfigError
from broker.recordings.replay.compare import compare_recordings
from broker.recordings.replay.policy_replay import judge_recording
from broker.recordings.replay.rerun import RecordedAnswers, rerun
from codegen.plain_text import counted, one_line
from sandbox import Raised, Sandbox

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.cli.replay import ReplayRequest
    from broker.recordings.recording import Recording
    from broker.recordings.replay.compare import Comparison
    from broker.recordings.replay.policy_replay import JudgedCall

_TEXT_CHARACTERS = 200
_STYLES = {"added": "green", "removed": "red", "changed": "yellow"}


async def compared(recording: Recording, request: ReplayRequest) -> ExitCode:
    """Run the recorded script, or another one, again and compare."""
    script = recording.script if request.script is None else read_script(request.script)
    if request.live:
        again = await _live(recording, script, request)
    else:
        async with Sandbox(compiling=compile_progress) as sandbox:
            again = await rerun(sandbox, recording, script, _filename(recording, request))
    found = compare_recordings(recording, again, request.ignored)
    if request.live:
        note(f"{recording.begun.run_id} ran again as {again.begun.run_id}, which `last` means from now on")
    if request.as_json:
        write_result(json.dumps(asdict(found), indent=2))
    else:
        _report(found)
    if not request.live and _lacks_description(again):
        note("the recording has no description of this tool; --live fetches it, and sends the call")
    return ExitCode.DIFFERENT if found else ExitCode.COMPLETED


def _filename(recording: Recording, request: ReplayRequest) -> str:
    return recording.begun.filename if request.script is None else name_in_tracebacks(request.script)


def _lacks_description(again: Recording) -> bool:
    return isinstance(again.outcome, Raised) and again.outcome.type == "ToolDescriptionRequired"


async def _live(recording: Recording, script: str, request: ReplayRequest) -> Recording:
    """Run against the real servers; with another script, what the recording answers is not sent."""
    answers = None if request.script is None else RecordedAnswers(recording).take
    config, grants = load_config(request.config), grants_of(request.allow)
    report_idle(grants, config)
    if config.recordings.mode != "full":
        raise Problem("the config does not record runs in full", "Set recordings.mode to full.")
    async with open_broker(config, runs_scripts=True) as broker:
        session = broker.session(grants=grants, answerer=TerminalAnswerer() if can_ask() else None)
        result = await session.execute_code(
            script,
            filename=_filename(recording, request),
            limits=recording.limits,
            describe_references=True,
            check="off",
            known_answers=answers,
        )
        report_servers(broker, request)
        report_unlisted(grants, broker.catalog)
    with open_recordings() as recordings:
        return recordings.get(result.run_id)


def judged(recordings: Sequence[tuple[str, Recording]], request: ReplayRequest) -> ExitCode:
    """Print what another policy would have decided."""
    policy = _policy(request.policy or Path())
    found = {name: judge_recording(recording, policy) for name, recording in recordings}
    if request.as_json:
        rows = {name: [asdict(one) for one in calls] for name, calls in found.items()}
        write_result(json.dumps(rows, indent=2))
    else:
        for name, calls in found.items():
            _print_judged(name, calls)
    is_same = all(one.is_same for calls in found.values() for one in calls)
    return ExitCode.COMPLETED if is_same else ExitCode.DIFFERENT


def _policy(path: Path) -> Policy:
    """Read the `policy` section, alone or in a whole config."""
    try:
        document = decoded(read_text(path), str(path), '{"rules": […]}')
    except ConfigError as error:
        raise Problem(str(error)) from None
    section = document.get("policy", {}) if "mcpServers" in document or "policy" in document else document
    try:
        return Policy(PolicyConfig.model_validate(section))
    except ValidationError as error:
        problems = list(policy_problems(error, section, PolicyConfig))
        raise Problem(str(ConfigError(str(path), problems))) from None


def _report(found: Comparison) -> None:
    console = notes()
    for change in found.changes:
        line = f"line {change.line}: " if change.line else ""
        function = one_line(change.function, _TEXT_CHARACTERS)
        console.print(Text.assemble((change.kind, _STYLES[change.kind]), f"  {line}{function}"), soft_wrap=True)
        for field in change.fields:
            place, then, now = (one_line(text, _TEXT_CHARACTERS) for text in field)
            console.print(Text(f"  {place}: {then} -> {now}"), soft_wrap=True)
    for other in found.others:
        print_diff(console, f"{other.what} is different\n{other.diff}")
    for text in found.notes:
        note(text)
    note(counted(len(found.changes) + len(found.others), "difference") if found else "no differences")


def _print_judged(name: str, calls: Sequence[JudgedCall]) -> None:
    console = notes()
    console.print(Text(one_line(name, _TEXT_CHARACTERS), "bold"), soft_wrap=True)
    rows = [
        (
            one_line(one.name, _TEXT_CHARACTERS),
            str(one.call),
            str(one.line),
            one.then,
            Text(one.now, "" if one.is_same else "bold red"),
            one_line(one.basis, _TEXT_CHARACTERS),
        )
        for one in calls
    ]
    columns = ("tool", "call", "line", "then", "now", "because of")
    print_table(console, columns, rows, right={"call", "line"}, whole={"tool"})
