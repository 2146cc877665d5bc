"""Recordings between the store and files: export, import, and reading one from wherever it is.

Above: the command line. Below: recordings.py, files.py.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from broker.errors import RecordingError
from broker.recordings.files import export_lines, read_file, recording_of
from broker.recordings.keeping.entries import Times
from broker.recordings.lines import read_events
from broker.recordings.reading import beginning_of, recording_of_lines
from broker.whole_file import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from broker.recordings.events import Begun
    from broker.recordings.keeping.entries import RecordingEntry
    from broker.recordings.keeping.recordings import Recordings
    from broker.recordings.recording import Recording


def load(recordings: Recordings, entry: RecordingEntry) -> Recording:
    """Read a recording of the store.

    Raises:
        RecordingError: It makes no sense.
    """
    return _load(recordings, entry, recordings.content.value)


def load_whole(recordings: Recordings, entry: RecordingEntry) -> Recording:
    """Read a recording of the store with its large values, for use when it is removed or the store is closed.

    Raises:
        RecordingError: It makes no sense.
    """
    content = recordings.content
    return _load(recordings, entry, {digest: content.value(digest) for digest in content.digests(entry.id)}.get)


def _load(recordings: Recordings, entry: RecordingEntry, value: Callable[[str], str | None]) -> Recording:
    with _named(entry.run_id):
        lines = recordings.content.lines(entry.id)
        return recording_of_lines(lines, value, entry_id=entry.id, is_imported=entry.is_imported, listed=entry.state)


def load_beginning(recordings: Recordings, entry: RecordingEntry) -> Begun:
    """Read what a run of the store began with, which is its first line alone.

    Raises:
        RecordingError: It makes no sense.
    """
    with _named(entry.run_id):
        return beginning_of(read_events(recordings.content.lines(entry.id, most=1)))


def exported(recordings: Recordings, entry: RecordingEntry) -> Iterator[str]:
    """Yield the lines of the file that `export` writes.

    Raises:
        RecordingError: A line that names a value is none of ours.
    """
    with _named(entry.run_id):
        yield from export_lines(recordings.content.lines(entry.id), recordings.content.value)


def export(recordings: Recordings, entry: RecordingEntry, path: Path) -> None:
    """Write a recording to a file, which is there whole or not at all; a device or a pipe is written to as it is.

    Raises:
        RecordingError: The file cannot be written, or the recording makes no sense.
    """
    lines = exported(recordings, entry)
    try:
        if path.exists() and not path.is_file():  # the name of a device, which a file must not take
            with path.open("w", encoding="utf-8", newline="\n") as device:
                device.writelines(lines)
        else:
            write_whole(path, lines)
    except FileNotFoundError:
        raise RecordingError(f"{path}: there is no folder {path.parent}") from None
    except OSError as error:
        raise RecordingError(f"{path}: {(error.strerror or 'cannot be written').lower()}") from None


def import_file(recordings: Recordings, path: Path) -> Recording:
    """Take a recording over from a file; returns it as it is in the file.

    Raises:
        RecordingError: It cannot be read, makes no sense, or is here already.
        StoreError: It cannot be written down.
    """
    file = read_file(path)
    recording = recording_of(file, path)
    begun = recording.begun
    with _named(str(path)):
        state = recording.state
    times = Times(begun.at, None if state == "interrupted" else recording.last_at, recording.lain)
    # All of it or nothing, also where the process is killed.
    with recordings.together():
        number = recordings.begin(begun.run_id, begun.mode, begun.filename, is_imported=True)
        for index, line in enumerate(file.lines):
            values = file.values if index == 0 else {}
            recordings.content.append(number, index, line, values)
        recordings.settle(number, state, len(recording.calls), times)
    return recording


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Name in an error of a block what it is about."""
    try:
        yield
    except RecordingError as error:
        raise RecordingError(f"{what}: {error}") from None
