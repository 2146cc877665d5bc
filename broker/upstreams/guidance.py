"""Examples, usage and error guidance that a server gives beside a tool's definition: as text, and its examples.

Above: listing.py. The protocol has no fields for them; servers put them beside its own, or into `_meta`. All of it was
written by the server, and is bounded.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from broker.upstreams.definition_size import has_large_integer, is_deeper, size_of
from codegen.plain_text import paragraph

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TITLES = {
    "examples": "Examples",
    "usage": "Usage",
    "usage_guidance": "Usage",
    "usageGuidance": "Usage",
    "error_guidance": "Errors",
    "errorGuidance": "Errors",
    "error_handling": "Errors",
    "errorHandling": "Errors",
}
"""Where a server may put them, with the words that go before the text."""

GUIDANCE_CHARACTERS = 4_000
GUIDANCE_BYTES = 64 * 1024
"""What the value of one field may take in memory; of a longer list, as many of the first elements are kept."""

_LEVELS = 50


def with_guidance(description: str, tool: Mapping[str, Any]) -> str:
    """Return a description with the guidance below it, which is what a model reads and a digest covers."""
    parts = [description] if description else []
    for key, value in _given(tool):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        part = f"{TITLES[key]}: {paragraph(text, GUIDANCE_CHARACTERS)}"
        # A broker that relays a tool gives its examples beside a description that has them already.
        if not any(part in one for one in parts):
            parts.append(part)
    return "\n\n".join(parts)


def examples_of(tool: Mapping[str, Any]) -> list[Any] | None:
    """Return the examples as they were given, if that was in a list."""
    return next((value for key, value in _given(tool) if key == "examples" and isinstance(value, list)), None)


def _given(tool: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each field with its value within bounds; what stands beside the definition goes before `_meta`."""
    meta = tool.get("_meta")
    for key in TITLES:
        for place in (tool, meta if isinstance(meta, dict) else {}):
            if value := _within_bounds(place.get(key)):
                yield key, value
                break


def _within_bounds(value: Any) -> Any:
    """Return a text, list or object that is small enough, or what of a list is; None for anything else."""
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, list):
        kept, left = [], GUIDANCE_BYTES
        for one in value:
            left -= size_of(one, left)
            if left < 0 or not _can_be_kept(one):
                break
            kept.append(one)
        return kept
    is_small = isinstance(value, dict) and size_of(value, GUIDANCE_BYTES) <= GUIDANCE_BYTES
    return value if is_small and _can_be_kept(value) else None


def _can_be_kept(value: Any) -> bool:
    return not is_deeper(value, _LEVELS) and not has_large_integer(value)
