"""Reads the lines of a recording as events, and explains a line that cannot be read.

Above: reading.py, files.py, and keeping/ for lines in the store. Below: events.py.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pydantic import ValidationError

from broker.errors import RecordingError
from broker.recordings.events import EVENT, VERSION
from broker.value_count import values_in
from codegen.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker.recordings.events import Event

MAX_LINE_BYTES = 64 * 1024 * 1024
MAX_LINE_VALUES = 2_000_000
"""How many values a line may hold, or a value that is kept; more than a script may be given or give at once."""
MAX_VALUES = 20_000_000
"""How many values all events together may hold: they are in memory at once."""

_PLACE_CHARACTERS = 100
_FAULT_CHARACTERS = 400


def read_events(lines: Iterable[str]) -> Iterator[Event]:
    """Read lines one after the other.

    Raises:
        RecordingError: A line is none of ours, or holds too much; the text names it.
    """
    room = MAX_VALUES
    for number, line in enumerate(lines, start=1):
        room -= counted_values(line.encode(), f"line {number}")
        if room < 0:
            raise RecordingError(f"it has more than the {MAX_VALUES:,} values that are allowed")
        try:
            yield EVENT.validate_json(line)
        except ValidationError as error:
            raise RecordingError(f"line {number}: {explain(line, error)}") from None


def check_size(size: int, where: str) -> None:
    """Refuse a line, or a value that is kept, before it is read.

    Raises:
        RecordingError: It has too many bytes; the text names `where` they are.
    """
    if size > MAX_LINE_BYTES:
        raise RecordingError(f"{where}: it has {size} bytes, and {MAX_LINE_BYTES} are allowed")


def counted_values(text: bytes, where: str) -> int:
    """Return about how many values a text holds, before it is decoded.

    Raises:
        RecordingError: They are too many; the text names `where` they are.
    """
    count = values_in(text, MAX_LINE_VALUES)
    if count > MAX_LINE_VALUES:
        raise RecordingError(f"{where}: it has more than the {MAX_LINE_VALUES:,} values that are allowed")
    return count


def explain(line: str, error: ValidationError) -> str:
    """Say what is wrong with a line, without its values; names that it makes up are made inert."""
    try:
        decoded = json.loads(line)
    except (ValueError, RecursionError):
        return "it is not JSON"
    if not isinstance(decoded, dict):
        return "it is not a JSON object"
    version = decoded.get("version")
    if isinstance(version, int) and version > VERSION:
        return f"it is of a newer codemode (format {version}, known is {VERSION}); install that"
    first = error.errors(include_input=False, include_url=False)[0]
    place = one_line(".".join(str(part) for part in first["loc"]), _PLACE_CHARACTERS)
    fault = one_line(first["msg"].lower(), _FAULT_CHARACTERS)
    return f"{place}: {fault}" if place else fault
