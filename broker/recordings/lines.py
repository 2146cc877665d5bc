"""Reads the lines of a recording as events, and explains a line that cannot be read.

Above: recording.py, files.py. Below: events.py.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pydantic import ValidationError

from broker.errors import RecordingError
from broker.recordings.events import EVENT, VERSION
from codegen.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker.recordings.events import Event

_PLACE_CHARACTERS = 100
_FAULT_CHARACTERS = 400


def read_events(lines: Iterable[str]) -> Iterator[Event]:
    """Read lines one after the other.

    Raises:
        RecordingError: A line is none of ours; the text names it.
    """
    for number, line in enumerate(lines, start=1):
        try:
            yield EVENT.validate_json(line)
        except ValidationError as error:
            raise RecordingError(f"line {number}: {explain(line, error)}") from None


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
