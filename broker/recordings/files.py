"""A recording as one self-contained JSONL file: written from the store, read back and checked.

Above: the command line, replay. Below: events. Each line is an event, in the order of the run. A large value comes on
a line of its own before the first line that names it; the last line seals the file with a digest of all before it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from broker.errors import RecordingError
from broker.named_file import read_named
from broker.recordings.events import EVENT, FORMAT, LINE, Ended, Kept, KeptValue, Sealed, Stepped
from broker.recordings.lines import check_size, counted_values, explain
from broker.recordings.parts import ByDigest
from broker.recordings.reading import recording_of_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from broker.recordings.events import Event
    from broker.recordings.parts import Stored
    from broker.recordings.recording import Recording

MAX_FILE_BYTES = 1024 * 1024 * 1024


@dataclass
class RecordingFile:
    """What is in a file.

    Attributes:
        lines: The events, as they are written.
        values: Large values by digest.
        cut: What says that the file is cut short; empty where it is whole.
    """

    lines: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    cut: str = ""


def export_lines(lines: Iterable[str], value: Callable[[str], str | None]) -> Iterator[str]:
    """Return the lines of a file, each with its newline, for the events of a recording.

    Raises:
        RecordingError: Where values are looked for that a line names, it is none of ours; the text names it.
    """
    seal = hashlib.sha256()
    written: set[str] = set()
    for number, line in enumerate(lines, start=1):
        for digest in _digests(line, number):
            text = value(digest)
            if digest not in written and text is not None:
                written.add(digest)
                yield _hashed(_compact({"event": "value", "sha256": digest, "text": text}), seal)
        yield _hashed(line, seal)
    yield _compact({"event": "sealed", "sha256": seal.hexdigest()}) + "\n"


def read_file(path: Path) -> RecordingFile:
    """Read a file; one that is cut short is read up to there.

    Raises:
        RecordingError: It cannot be read, is none of ours, or was changed; the text names file and line.
    """
    try:
        data = read_named(path, MAX_FILE_BYTES + 1)
    except IsADirectoryError:
        raise RecordingError(f"{path}: is a directory; name a file in it") from None
    except OSError as error:
        raise RecordingError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
    if len(data) > MAX_FILE_BYTES:
        raise RecordingError(f"{path}: it has more than the {MAX_FILE_BYTES} bytes that are allowed")
    try:
        return _read(data)
    except RecordingError as error:
        raise RecordingError(f"{path}: {error}") from None


def read_recording(path: Path | str) -> Recording:
    """Read the recording in a file that `codemode recordings export` or `RecordedRuns.export` wrote.

    Of a file that was cut short it has what there is, and says so in `cut`.

    Raises:
        RecordingError: It cannot be read, was changed, or what it says makes no sense; the text names file and line.
    """
    path = Path(path)
    return recording_of(read_file(path), path)


def recording_of(file: RecordingFile, path: Path) -> Recording:
    """Return the recording in a file that was read.

    Raises:
        RecordingError: What it says makes no sense.
    """
    try:
        recording = recording_of_lines(file.lines, file.values.get, is_imported=True)
    except RecordingError as error:
        raise RecordingError(f"{path}: {error}") from None
    recording.cut = file.cut
    return recording


def _read(data: bytes) -> RecordingFile:
    file = RecordingFile()
    *whole, rest = data.split(b"\n")
    if not whole or b'"begun"' not in _beginning(whole):
        raise RecordingError(f"is not a recording (no line of it begins a {FORMAT})")
    seal = hashlib.sha256()
    is_sealed = False
    for number, line in enumerate(whole, start=1):
        if is_sealed:
            raise RecordingError(f"line {number}: follows the seal, so the file was changed after it was exported")
        is_sealed = _take(line, number, file, seal)
        seal.update(line + b"\n")
    if not is_sealed:
        file.cut = f"is cut short in line {len(whole) + 1}" if rest else f"is cut short after line {len(whole)}"
    return file


def _beginning(lines: list[bytes]) -> bytes:
    """Return the first line that is an event: values that the first event names come before it."""
    return next((line[:200] for line in lines if not line.startswith(b'{"event":"value"')), b"")


def _take(line: bytes, number: int, file: RecordingFile, seal: hashlib._Hash) -> bool:
    """Take one line; returns whether it is the seal."""
    where = f"line {number}"
    check_size(len(line), where)
    counted_values(line, where)
    text = line.decode("utf-8", "replace")
    try:
        read = LINE.validate_json(text)
    except ValidationError as error:
        raise RecordingError(f"line {number}: {explain(text, error)}") from None
    match read:
        case Sealed():
            if read.sha256 != seal.hexdigest():
                raise RecordingError("its seal does not fit: it was changed after it was exported")
            return True
        case KeptValue():
            if hashlib.sha256(read.text.encode()).hexdigest() != read.sha256:
                raise RecordingError(f"line {number}: the value does not fit its digest, so it was changed")
            counted_values(read.text.encode(), where)
            file.values[read.sha256] = read.text
        case _:
            file.lines.append(text)
    return False


def _digests(line: str, number: int) -> Iterator[str]:
    """Return the digests that a line names, without reading values that it holds."""
    if '"sha256":' not in line:
        return
    counted_values(line.encode(), f"line {number}")
    try:
        event = EVENT.validate_json(line)
    except ValidationError as error:  # somebody has written into the store, or it is damaged
        raise RecordingError(f"line {number}: {explain(line, error)}") from None
    for stored in _stored(event):
        if isinstance(stored, ByDigest):
            yield stored.sha256


def _stored(event: Event) -> Iterator[Stored]:
    for name in ("script", "manifest", "policy", "result", "outcome"):
        stored = getattr(event, name, None)
        if stored is not None:
            yield stored
    if isinstance(event, Stepped):
        yield from (call.arguments for call in event.calls)
    if isinstance(event, Kept):
        yield from event.blocks.values()
    if isinstance(event, Stepped | Ended):
        yield from (printed.text for printed in event.printed)


def _hashed(line: str, seal: hashlib._Hash) -> str:
    seal.update(f"{line}\n".encode())
    return f"{line}\n"


def _compact(line: dict[str, str]) -> str:
    return json.dumps(line, separators=(",", ":"))
