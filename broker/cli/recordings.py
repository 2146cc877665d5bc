"""`codemode recordings`: what is recorded, in and out of the store."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from broker.cli.exit_codes import ExitCode
from broker.cli.terminal import Problem, local_time, note, write_result, write_table
from broker.errors import BrokerError, RecordingError
from broker.recordings.events import json_schema
from broker.recordings.files import export_lines, read_recording
from broker.recordings.keeping.recordings import Recordings
from broker.recordings.keeping.transfer import export, import_file, load_whole
from broker.recordings.showing.picture import spelled_seconds
from broker.store import Store
from codegen.plain_text import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker.recordings.keeping.entries import Entry
    from broker.recordings.recording import Recording

STYLES = {"completed": "green", "raised": "red", "stopped": "red", "parked": "yellow", "interrupted": "yellow"}
_NAME_CHARACTERS = 40


@dataclass(frozen=True)
class ListRequest:
    """The arguments of `recordings list`."""

    limit: int
    as_json: bool


@dataclass(frozen=True)
class FilesRequest:
    """The arguments of `recordings export`, `import` and `rm`."""

    names: tuple[str, ...]
    output: Path | None = None


@contextmanager
def open_recordings(*, makes_store: bool = False) -> Iterator[Recordings]:
    """Open the user's recordings; where there is no store there are none, unless the command `makes_store`.

    Raises:
        Problem: They cannot be used, or what the block asks of them cannot be done.
    """
    try:
        with Store.in_user_folder(for_reading=not makes_store) as store, Recordings(store) as recordings:
            yield recordings
    except BrokerError as error:
        raise Problem(str(error)) from None


async def list_recordings(request: ListRequest) -> ExitCode:
    """Print the recordings, newest first."""
    with open_recordings() as recordings:
        found = recordings.entries(request.limit)
    if request.as_json:
        write_result(json.dumps([as_json(entry) for entry in found], indent=2))
    elif found:
        columns = ("run", "began", "script", "state", "calls", "took")
        write_table(columns, [_row(entry) for entry in found], right={"calls", "took"}, whole={"run", "began"})
    else:
        note("nothing is recorded yet")
    return ExitCode.COMPLETED


async def export_recordings(request: FilesRequest) -> ExitCode:
    """Write recordings to files, or one to stdout."""
    with open_recordings() as recordings:
        entries = [recordings.find(name) for name in request.names]
        if request.output is None and len(entries) == 1:
            write_result("".join(export_lines(recordings.lines(entries[0].id), recordings.value)))
            return ExitCode.COMPLETED
        target = request.output or Path()
        if len(entries) > 1 and not target.is_dir():
            raise Problem(f"{target} is not a folder", "Several recordings are written to a folder, one file each.")
        for entry in entries:
            path = target / f"{entry.run_id}.jsonl" if target.is_dir() else target
            export(recordings, entry, path)
            note(f"{path}: {counted(entry.calls, 'call')}")
    return ExitCode.COMPLETED


async def import_recordings(request: FilesRequest) -> ExitCode:
    """Take recordings over from files."""
    with open_recordings(makes_store=True) as recordings:
        for name in request.names:
            entry, cut = import_file(recordings, Path(name))
            note(f"{entry.run_id}: {counted(entry.calls, 'call')}, {entry.state}{f'; the file {cut}' if cut else ''}")
    return ExitCode.COMPLETED


async def remove_recordings(request: FilesRequest) -> ExitCode:
    """Remove recordings, and what no other one uses of their values."""
    with open_recordings() as recordings:
        entries = [recordings.find(name) for name in request.names]
        running = [entry.run_id for entry in entries if entry.state == "running"]
        if running:
            raise Problem(f"{running[0]} is running", "It can be removed when it has ended.")
        recordings.remove([entry.id for entry in entries])
    note(f"removed {len(entries)}")
    return ExitCode.COMPLETED


async def print_schema(_: None) -> ExitCode:
    """Print the JSON Schema of a line."""
    write_result(json.dumps(json_schema(), indent=2))
    return ExitCode.COMPLETED


def read_target(name: str) -> Recording:
    """Read a recording from a file or the store."""
    if Path(name).exists() or name.endswith(".jsonl"):
        return read_recording(Path(name))
    with open_recordings() as recordings:
        return load_whole(recordings, recordings.find(name))


def whole_id(store: Store, name: str) -> str:
    """Return the id of a recorded run that is named by its beginning or as `last`; any other name as it is."""
    with Recordings(store) as recordings:
        try:
            return recordings.find(name).run_id
        except RecordingError:
            return name


def as_json(entry: Entry) -> dict[str, object]:
    """Return what is listed of a recording; its number is the store's own."""
    return {key: value for key, value in asdict(entry).items() if key != "id"}


def _row(entry: Entry) -> Sequence[str | Text]:
    imported = " (imported)" if entry.is_imported else ""
    return (
        entry.run_id,
        when(entry.began),
        one_line(entry.filename, _NAME_CHARACTERS),
        Text(entry.state + imported, STYLES.get(entry.state, "")),
        f"{entry.calls}",
        "" if entry.ended is None else spelled_seconds(max(0, entry.ended - entry.began) / 1e9),
    )


def when(nanoseconds: int) -> str:
    """Return a time of a recording as people here read it."""
    return local_time(datetime.fromtimestamp(nanoseconds / 1e9, UTC))
