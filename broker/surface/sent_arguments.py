"""Corrects the arguments of the broker's own tools that models send in another form than the schema's.

Above: dispatch.py and, for mode `tools`, app.py; they are then checked. Below: nothing. Read otherwise is only what
nothing else can be meant by: JSON as text, null or an empty text for what is left out, names in one text where a list
is wanted, numbers in quotes, a choice in capitals. The arguments of tools of servers are checked elsewhere, and taken
as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_WHOLE = re.compile(r"[0-9]{1,9}")
_DECIMAL = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")


def plain_arguments(arguments: Mapping[str, Any] | str | None, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return arguments with what their schema wants in place of what was written for it; None if they are no object."""
    sent = _decoded(arguments) if isinstance(arguments, str) else arguments
    if sent is None or sent == "":
        return {}
    if not isinstance(sent, Mapping):
        return None
    wanted, required = schema["properties"], schema.get("required", ())
    return {
        name: _meant(value, wanted.get(name, {})) if isinstance(value, str) else value
        for name, value in sent.items()
        if value is not None and not (value == "" and name in wanted and name not in required)
    }


def _meant(text: str, wanted: Mapping[str, Any]) -> Any:
    """Return what a text stands for where its property has another type; the text itself where that is not clear."""
    stripped, kind = text.strip(), wanted.get("type")
    if "enum" in wanted:
        return stripped.lower()
    if kind == "array":
        return _names(stripped)
    if kind == "object":
        return _decoded(text)
    if kind == "integer" and _WHOLE.fullmatch(stripped):
        return int(stripped)
    if kind == "number" and _DECIMAL.fullmatch(stripped):
        return float(stripped)
    return text


def _names(text: str) -> list[str]:
    """Return the names in a text that should have been a list: JSON of one, or names with commas."""
    decoded = _decoded(text)
    if isinstance(decoded, list) and all(isinstance(one, str) for one in decoded):
        return decoded
    return [name for part in text.split(",") if (name := part.strip())]


def _decoded(text: str) -> Any:
    """Return what a model wrote as JSON, also with ends of lines inside its texts; what is no JSON is no object."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text
