"""`codemode recordings`: what is recorded, in and out of the store."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from broker.cli.exit_codes import ExitCode
from broker.cli.next_command import whole
from broker.cli.stored import STYLES, as_json, open_recordings, when
from broker.cli.terminal import Problem, note, report_problem, write_result, write_table
from broker.errors import RecordingError
from broker.recordings.events import json_schema
from broker.recordings.showing.picture import spelled_seconds
from codegen.plain_text import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.recordings.keeping.entries import RecordingEntry

_NAME_CHARACTERS = 40
_MAX_LISTED = 10**9  # of more, SQLite takes no number


@dataclass(frozen=True)
class ListRequest:
    """The arguments of `recordings list`."""

    limit: int
    as_json: bool


@dataclass(frozen=True)
class FilesRequest:
    """The arguments of `recordings export`, `import` and `rm`."""

    names: tuple[str, ...]
    output: str | None = None


async def list_recordings(request: ListRequest) -> ExitCode:
    """Print the recordings, newest first."""
    with open_recordings() as recordings:
        one_more = recordings.list(limit=min(request.limit, _MAX_LISTED) + 1)
    found = one_more[: request.limit]
    if request.as_json:
        write_result(json.dumps([as_json(entry) for entry in found], indent=2))
    elif found:
        columns = ("run", "began", "script", "state", "calls", "took")
        write_table(columns, [_row(entry) for entry in found], right={"calls", "took"}, whole={"run", "began"})
        if len(one_more) > len(found):
            note(f"there are older ones; `codemode recordings list -n {2 * request.limit}` shows more")
    else:
        note("nothing is recorded yet")
    return ExitCode.COMPLETED


async def export_recordings(request: FilesRequest) -> ExitCode:
    """Write recordings to files, or one to stdout."""
    with open_recordings() as recordings:
        if request.output is None and len(request.names) == 1:
            write_result("".join(recordings.lines(request.names[0])))
            return ExitCode.COMPLETED
        target = request.output or "."
        entries = [recordings.find(name) for name in request.names]
        if len(entries) > 1 and not _is_folder(target):
            raise Problem(
                f"{target} is not a folder", "Several recordings are written to a folder that is there, one file each."
            )
        for entry in entries:
            note(f"{recordings.export(entry.run_id, target)}: {counted(entry.calls, 'call')}")
    return ExitCode.COMPLETED


async def import_recordings(request: FilesRequest) -> ExitCode:
    """Take recordings over from files: all that can be, so that the command can be repeated for the others."""
    code = ExitCode.COMPLETED
    with open_recordings(makes_store=True) as recordings:
        for name in request.names:
            try:
                found = recordings.import_file(name)
            except RecordingError as error:
                report_problem(whole(str(error), request))
                code = ExitCode.USAGE
                continue
            cut = f"; the file {found.cut}" if found.cut else ""
            note(f"{found.run_id}: {counted(len(found.calls), 'call')}, {found.state}{cut}")
    return code


async def remove_recordings(request: FilesRequest) -> ExitCode:
    """Remove recordings, and what no other one uses of their values."""
    with open_recordings() as recordings:
        note(f"removed {recordings.remove(*request.names)}")
    return ExitCode.COMPLETED


async def print_schema(_: None) -> ExitCode:
    """Print the JSON Schema of a line."""
    write_result(json.dumps(json_schema(), indent=2))
    return ExitCode.COMPLETED


def _is_folder(name: str) -> bool:
    return Path(name).is_dir()


def _row(entry: RecordingEntry) -> Sequence[str | Text]:
    imported = " (imported)" if entry.is_imported else ""
    return (
        entry.run_id,
        when(entry.began),
        one_line(entry.filename, _NAME_CHARACTERS),
        Text(entry.state + imported, STYLES.get(entry.state, "")),
        f"{entry.calls}",
        "" if entry.seconds is None else spelled_seconds(entry.seconds),
    )
