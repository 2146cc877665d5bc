"""`codemode replay`: recordings replayed offline, with another script, live, or under another policy."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from broker import Broker
from broker.cli.compile_progress import compile_progress
from broker.cli.diffs import print_diff
from broker.cli.exit_codes import ExitCode
from broker.cli.junit import junit_xml
from broker.cli.next_command import whole
from broker.cli.replay_live import compared, judged
from broker.cli.replay_steps import walk
from broker.cli.stored import read_target
from broker.cli.terminal import Problem, note, notes, write_file, write_result
from broker.errors import RecordingError
from broker.recordings.replay.compare import is_compared
from codegen.plain_text import one_line
from sandbox import Sandbox

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.recordings.recording import Recording

_BELONGS_TO = {
    "--allow": ("--live",),
    "--ignore": ("--live", "--script"),
    "--json": ("--live", "--script", "--policy", ""),
    "--junit": ("",),
    "--script": ("--live",),
}
"""The ways to replay in which an option is looked at; the empty one stands for a replay without any of them."""

_NAME_CHARACTERS = 60


@dataclass(frozen=True)
class ReplayRequest:
    """The arguments of `codemode replay`."""

    targets: tuple[str, ...]
    script: str | None
    live: bool
    policy: Path | None
    step: bool
    config: Path | None
    allow: tuple[str, ...]
    ignored: tuple[str, ...]
    junit: str | None
    as_json: bool


@dataclass(frozen=True, slots=True)
class ReplayedTarget:
    """What became of one target.

    Attributes:
        name: As the user wrote it, or the file in the folder.
        result: `same`, `different`, or `unusable` for what is no recording.
        detail: The difference, or why it cannot be used.
        notes: What should be known beside that.
        calls: Calls that the recording has.
        seconds: What the replay took.
    """

    name: str
    result: str
    detail: str = ""
    notes: tuple[str, ...] = ()
    calls: int = 0
    seconds: float = 0.0


async def replay_recordings(request: ReplayRequest) -> ExitCode:
    """Replay as the options say, and report what came out differently."""
    _check(request)
    targets = _targets(request.targets)
    if request.step:
        return await walk(_only(targets))
    if request.policy is not None:
        return judged([(name, read_target(name)) for name in targets], request)
    if request.live or request.script is not None:
        return await compared(_only(targets), request)
    replayed = await _replay_all(targets)
    if request.junit is not None:
        write_file(request.junit, junit_xml(replayed))
    if request.as_json:
        write_result(json.dumps([asdict(target) for target in replayed], indent=2))
    else:
        _report(replayed)
    if any(target.result == "unusable" for target in replayed):
        return ExitCode.USAGE
    return ExitCode.COMPLETED if all(target.result == "same" for target in replayed) else ExitCode.DIFFERENT


def _check(request: ReplayRequest) -> None:
    """Refuse options that would have no effect.

    Raises:
        Problem: An option would have none.
    """
    ways = {
        "--step": request.step,
        "--policy": request.policy is not None,
        "--live": request.live,
        "--script": request.script is not None,
    }
    way = next((name for name, is_given in ways.items() if is_given), "")
    options = {
        "--allow": bool(request.allow),
        "--ignore": bool(request.ignored),
        "--json": request.as_json,
        "--junit": request.junit is not None,
    }
    for option, is_given in {**ways, **options}.items():
        places = _BELONGS_TO.get(option, ())
        if is_given and option != way and way not in places:
            named = [place for place in places if place]
            belongs = f"It belongs to {' or '.join(named)}." if named and not way else "Leave one of them out."
            raise Problem(f"{option} has no effect {f'with {way}' if way else 'here'}", belongs)
    for pointer in request.ignored:
        if not is_compared(pointer):
            raise Problem(
                f"--ignore: {one_line(pointer, _NAME_CHARACTERS)!r} is nothing that is compared",
                "Write /result/…, /arguments/…, /outcome/… or /printed.",
            )


async def _replay_all(targets: Sequence[str]) -> list[ReplayedTarget]:
    replayed: dict[str, ReplayedTarget] = {}
    limiter = anyio.CapacityLimiter(max(1, os.cpu_count() or 1))
    columns = (TextColumn("replaying"), BarColumn(), MofNCompleteColumn())
    console = notes()
    is_shown = len(targets) > 1 and console.is_terminal  # elsewhere a bar leaves an empty line behind
    with Progress(*columns, console=console, transient=True, disable=not is_shown) as progress:
        bar = progress.add_task("", total=len(targets))
        # The first recording that can be read opens the sandbox: where there is none, nothing is compiled.
        sandbox = Sandbox(compiling=compile_progress)
        async with Broker(sandbox=sandbox, opens_sandbox=False) as broker, anyio.create_task_group() as tasks:

            async def one(name: str) -> None:
                async with limiter:
                    replayed[name] = await _replay_one(broker, name)
                progress.advance(bar)

            for name in targets:
                tasks.start_soon(one, name)
    return [replayed[name] for name in targets]


async def _replay_one(broker: Broker, name: str) -> ReplayedTarget:
    began = anyio.current_time()
    try:
        recording = await anyio.to_thread.run_sync(read_target, name)
        found = await broker.replay(recording)
    except (RecordingError, Problem) as error:
        return ReplayedTarget(name, "unusable", whole(str(error), None))
    seconds = round(anyio.current_time() - began, 3)
    if found.difference is None:
        return ReplayedTarget(name, "same", "", found.notes, found.calls, seconds)
    place = f"line {found.difference.line}: " if found.difference.line else ""
    detail = f"{place}{found.difference.what} came out differently\n{found.difference.diff}"
    return ReplayedTarget(name, "different", detail, found.notes, found.calls, seconds)


def _report(replayed: Sequence[ReplayedTarget]) -> None:
    for target in replayed:
        for line in (*target.notes, *([target.detail] if target.detail else [])):
            print_diff(notes(), line if line.startswith(target.name) else f"{target.name}: {line}")
    table = Table(box=None, pad_edge=False)
    for column in ("recording", "result", "calls", "s"):
        table.add_column(column, header_style="dim", justify="right" if column in {"calls", "s"} else "left")
    for target in replayed:
        style = "green" if target.result == "same" else "red"
        name = Text(one_line(target.name, _NAME_CHARACTERS))
        table.add_row(name, Text(target.result, style), f"{target.calls}", f"{target.seconds:.2f}")
    note(table)


def _targets(given: Sequence[str]) -> list[str]:
    """Return files and runs; a folder stands for the recordings in it.

    Raises:
        Problem: A folder has none.
    """
    targets: list[str] = []
    for name in given:
        if name and Path(name).is_dir():
            found = sorted(str(path) for path in Path(name).rglob("*.jsonl"))
            if not found:
                raise Problem(f"there is no recording in {name}", "Recordings are files that end with .jsonl.")
            targets += found
        else:
            targets.append(name)
    return list(dict.fromkeys(targets))


def _only(targets: Sequence[str]) -> Recording:
    if len(targets) != 1:
        raise Problem("this works on one recording at a time", "Name one file or run.")
    return read_target(targets[0])
