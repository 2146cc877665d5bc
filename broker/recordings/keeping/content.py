"""The lines of recordings in the store, and the large values that they name.

Above: recordings.py, which says whose lines they are; appender.py, which writes them. Below: store.py, lines.py. A
value is kept once, however many recordings name it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.errors import RecordingError
from broker.recordings.files import MAX_FILE_BYTES
from broker.recordings.lines import MAX_LINE_BYTES, check_size, counted_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from broker.store import Store


class RecordedContent:
    """What is in the recordings of one store; a recording is named by its number there."""

    def __init__(self, store: Store) -> None:
        """Take a store that has the tables of recordings."""
        self._store = store

    def append(self, recording: int, number: int, line: str, values: Mapping[str, str]) -> None:
        """Write a line, and the values that it names. They are on disk, for all that a process can do, afterwards."""
        if not values:
            self._store.execute("INSERT INTO recording_line VALUES (?, ?, ?)", (recording, number, line))
            return
        with self._store.transaction():
            for sha256, text in values.items():
                self._store.execute("INSERT INTO recording_value VALUES (?, ?) ON CONFLICT DO NOTHING", (sha256, text))
                self._store.execute(
                    "INSERT INTO recording_value_use VALUES (?, ?) ON CONFLICT DO NOTHING", (recording, sha256)
                )
            self._store.execute("INSERT INTO recording_line VALUES (?, ?, ?)", (recording, number, line))

    def lines(self, recording: int, *, most: int = -1) -> Iterator[str]:
        """Return the lines of a recording in order, the first `most` of them if that is not negative.

        Raises:
            RecordingError: They are more than a file may have; nothing of them was read.
        """
        found, parameters = "FROM recording_line WHERE recording = ? ORDER BY number LIMIT ?", (recording, most)
        rows = self._store.execute(f"SELECT length(CAST(line AS BLOB)) {found}", parameters)
        sizes = [int(size) for (size,) in rows]
        for number, size in enumerate(sizes, start=1):
            check_size(size, f"line {number}")
        if sum(sizes) > MAX_FILE_BYTES:
            raise RecordingError(f"it has more than the {MAX_FILE_BYTES} bytes that are allowed")
        return (line for (line,) in self._store.execute(f"SELECT line {found}", parameters))

    def line_count(self, recording: int) -> int:
        """Return how many lines a recording has."""
        [[last]] = self._store.execute("SELECT max(number) FROM recording_line WHERE recording = ?", (recording,))
        return 0 if last is None else int(last) + 1

    def size(self, recording: int) -> int:
        """Return how many characters a recording has, with the values that it names."""
        [[size]] = self._store.execute(
            "SELECT (SELECT coalesce(sum(length(line)), 0) FROM recording_line WHERE recording = ?) + "
            "(SELECT coalesce(sum(length(text)), 0) FROM recording_value_use JOIN recording_value USING (sha256) "
            "WHERE recording = ?)",
            (recording, recording),
        )
        return int(size)

    def value(self, sha256: str) -> str | None:
        """Return the JSON text of a value that is kept by digest.

        Raises:
            RecordingError: It is larger than one in a file may be.
        """
        rows = self._store.execute(
            "SELECT length(CAST(text AS BLOB)), CASE WHEN length(CAST(text AS BLOB)) <= ? THEN text END "
            "FROM recording_value WHERE sha256 = ?",
            (MAX_LINE_BYTES, sha256),
        )
        if not rows:
            return None
        [[length, text]], where = rows, f"the value {sha256[:12]}…"
        check_size(int(length), where)
        counted_values(str(text).encode(), where)
        return str(text)

    def digests(self, recording: int) -> list[str]:
        """Return the digests of the values that a recording names."""
        rows = self._store.execute("SELECT sha256 FROM recording_value_use WHERE recording = ?", (recording,))
        return [str(digest) for (digest,) in rows]
