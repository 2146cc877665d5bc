"""`codemode runs` and `codemode resume`: lists unfinished runs, and continues one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from broker.cli.configured import load_config, open_broker, report_servers
from broker.cli.consent import TerminalAnswerer
from broker.cli.exit_codes import ExitCode
from broker.cli.given_grants import grants_of, report_idle, report_unlisted
from broker.cli.prompts import said_yes
from broker.cli.run_report import conclude, reported_if_ended, show_output
from broker.cli.stored import STYLES, as_json, open_kept, when
from broker.cli.terminal import can_ask, note, results, write_result
from broker.errors import RecordingError
from broker.recordings.keeping.recordings import OPEN
from broker.recordings.keeping.transfer import load, load_beginning
from codegen.plain_text import counted, one_line

if TYPE_CHECKING:
    from pathlib import Path

    from broker.recordings.call_story import CallStory
    from broker.recordings.journal.resuming import UnknownCall
    from broker.recordings.keeping.entries import RecordingEntry
    from broker.recordings.recording import Recording
    from broker.recordings.settings import UnknownOutcome
    from sandbox import Isolation

_ARGUMENT_CHARACTERS = 100
_MAX_CALLS = 10


@dataclass(frozen=True)
class RunsRequest:
    """The arguments of `codemode runs`."""

    as_json: bool


@dataclass(frozen=True)
class ResumeRequest:
    """The arguments of `codemode resume`."""

    run: str
    config: Path | None
    allow: tuple[str, ...]
    unknown: UnknownOutcome | None
    isolation: Isolation | None
    as_json: bool


async def list_runs(request: RunsRequest) -> ExitCode:
    """Print the runs that are running, interrupted or parked, and what they wait for."""
    with open_kept() as recordings:
        found = []
        for entry in recordings.entries(states=("running", *OPEN)):
            try:
                found.append((entry, _waiting(load(recordings, entry))))
            except RecordingError as error:
                found.append((entry, [str(error)]))
    if request.as_json:
        write_result(json.dumps([as_json(entry) | {"waits_for": waits} for entry, waits in found], indent=2))
    elif found:
        results().print(Group(*(_text(entry, waits) for entry, waits in found)), soft_wrap=True)
        if any(entry.state != "running" for entry, _ in found):
            note("`codemode resume RUN` continues one; `codemode recordings rm RUN` removes it")
    else:
        note("no run is open")
    return ExitCode.COMPLETED


async def resume_run(request: ResumeRequest) -> ExitCode:
    """Continue a run, and print what it does from there."""
    with open_kept() as recordings:
        entry = recordings.find_open(request.run)
        begun = load_beginning(recordings, entry)
    # An imported recording only says whose it is.
    name, principal = ("", "") if entry.is_imported else (begun.session, begun.principal)
    config = load_config(request.config)
    grants = grants_of(request.allow)
    report_idle(grants, config)
    answerer = TerminalAnswerer() if can_ask() else None
    parks = config.recordings.mode == "full"
    async with open_broker(config, runs_scripts=True, isolation=request.isolation) as broker:
        session = broker.session(name=name, principal=principal, grants=grants, answerer=answerer, parks=parks)
        with reported_if_ended(request, lambda: session.open_runs) as on_call:
            result = await session.resume(
                entry.run_id,
                any_principal=True,
                on_output=None if request.as_json else show_output,
                on_call=on_call,
                unknown=request.unknown,
                ask_unknown=_ask_again if answerer is not None else None,
            )
        report_servers(broker, request)
        report_unlisted(grants, broker.catalog)
    return conclude(result, request)


async def _ask_again(call: UnknownCall) -> bool:
    arguments = one_line(json.dumps(call.arguments, ensure_ascii=False), _ARGUMENT_CHARACTERS)
    hint = " Its server says that a repetition changes nothing more." if call.is_idempotent else ""
    name = one_line(call.name, _ARGUMENT_CHARACTERS)
    note(f"{name} {arguments} was sent at {when(call.sent_at)}; whether it took effect is not known.{hint}")
    return await said_yes("Send it again?")


def _waiting(recording: Recording) -> list[str]:
    """Return what an open run waits for, as sentences."""
    open_calls = [story for story in recording.calls.values() if not story.is_over]
    said = [f"{_name(recording, story)}: {_state(story)}" for story in open_calls[:_MAX_CALLS]]
    more = len(open_calls) - len(said)
    return said + ([f"and {counted(more, 'more call')}"] if more else [])


def _state(story: CallStory) -> str:
    if story.sent is not None:
        return "was sent, its outcome is not known"
    return "waits for somebody to allow it" if story.asked is not None else "not sent yet"


def _name(recording: Recording, story: CallStory) -> str:
    arguments = ""
    if recording.has_content:
        arguments = f" {json.dumps(story.arguments, ensure_ascii=False)}"
    return one_line(f"line {story.line}: {story.function}{arguments}", _ARGUMENT_CHARACTERS)


def _text(entry: RecordingEntry, waits: list[str]) -> Text:
    text = Text.assemble(entry.run_id, "  ", (entry.state, STYLES.get(entry.state, "")), "  ", when(entry.began))
    text.append(f"  {one_line(entry.filename, _ARGUMENT_CHARACTERS)}, {counted(entry.calls, 'call')}")
    for sentence in waits:
        text.append(f"\n  {sentence}")
    return text
