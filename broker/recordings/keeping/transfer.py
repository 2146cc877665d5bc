"""Recordings between the store and files: export, import, and reading one from wherever it is.

Above: the command line. Below: recordings.py, files.py.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from broker.errors import RecordingError
from broker.recordings.files import export_lines, read_file
from broker.recordings.keeping.entries import Times
from broker.recordings.lines import read_events
from broker.recordings.recording import Recording, beginning_of
from broker.recordings.writing import state_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker.recordings.events import Begun
    from broker.recordings.keeping.entries import Entry
    from broker.recordings.keeping.recordings import Recordings


def load(recordings: Recordings, entry: Entry) -> Recording:
    """Read a recording of the store.

    Raises:
        RecordingError: It makes no sense.
    """
    with _named(entry.run_id):
        return Recording.read(
            recordings.lines(entry.id),
            recordings.value,
            entry_id=entry.id,
            is_imported=entry.is_imported,
            is_running=entry.state == "running",
        )


def load_whole(recordings: Recordings, entry: Entry) -> Recording:
    """Read a recording of the store with its large values, for use when the store is closed.

    Raises:
        RecordingError: It makes no sense.
    """
    recording = load(recordings, entry)
    recording.value = {digest: recordings.value(digest) for digest in recordings.digests(entry.id)}.get
    return recording


def load_beginning(recordings: Recordings, entry: Entry) -> Begun:
    """Read what a run of the store began with, which is its first line alone.

    Raises:
        RecordingError: It makes no sense.
    """
    with _named(entry.run_id):
        return beginning_of(read_events(recordings.lines(entry.id, most=1)))


def export(recordings: Recordings, entry: Entry, path: Path) -> None:
    """Write a recording to a file, which is there whole or not at all; a device or a pipe is written to as it is.

    Raises:
        RecordingError: The file cannot be written.
    """
    lines = export_lines(recordings.lines(entry.id), recordings.value)
    try:
        if path.exists() and not path.is_file():  # the name of a device, which a file must not take
            with path.open("w", encoding="utf-8", newline="\n") as device:
                device.writelines(lines)
        else:
            _write_whole(Path(os.path.realpath(path)), lines)  # a link stays, and what it names is written
    except FileNotFoundError:
        raise RecordingError(f"{path}: there is no folder {path.parent}") from None
    except OSError as error:
        raise RecordingError(f"{path}: {(error.strerror or 'cannot be written').lower()}") from None


def _write_whole(path: Path, lines: Iterable[str]) -> None:
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}", suffix=".partial")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(lines)
        Path(partial).replace(path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise


def import_file(recordings: Recordings, path: Path) -> tuple[Entry, str]:
    """Take a recording over from a file; returns it, and where the file was cut short.

    Raises:
        RecordingError: It cannot be read, makes no sense, or is here already.
        StoreError: It cannot be written down.
    """
    file = read_file(path)
    with _named(str(path)):
        recording = Recording.read(file.lines, file.values.get)
    begun = recording.begun
    number = recordings.begin(begun.run_id, begun.mode, begun.filename, is_imported=True)
    try:
        for index, line in enumerate(file.lines):
            values = file.values if index == 0 else {}
            recordings.append(number, index, line, values)
    except BaseException:
        recordings.remove([number])
        raise
    outcome = recording.outcome
    state = "interrupted" if outcome is None else state_of(outcome)
    times = Times(begun.at, recording.last_at, recording.lain)
    recordings.settle(number, state, len(recording.calls), times)
    return recordings.find(begun.run_id), file.cut


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Name in an error of a block what it is about."""
    try:
        yield
    except RecordingError as error:
        raise RecordingError(f"{what}: {error}") from None
