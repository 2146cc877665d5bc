"""The texts among the blocks that a script displayed: taken out to be cut, and put back.

Above: replies.py. Below: nothing. Images, audio and bytes are no texts; what they take is bounded where they are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def texts_of(blocks: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return the texts of blocks by their names in kept output, `displayed.1` for the first block."""
    found = {f"displayed.{number}": _text_of(block) for number, block in enumerate(blocks, 1)}
    return {name: text for name, text in found.items() if text is not None}


def with_texts(blocks: Sequence[dict[str, Any]], texts: Mapping[str, str]) -> tuple[dict[str, Any], ...]:
    """Return the blocks with other texts, each given by its name."""
    return tuple(
        {**block, "resource": {**block["resource"], "text": texts[name]}} if name in texts else block
        for name, block in ((f"displayed.{number}", block) for number, block in enumerate(blocks, 1))
    )


def text_blocks(blocks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the blocks that have texts."""
    return [block for block in blocks if _text_of(block) is not None]


def _text_of(block: dict[str, Any]) -> str | None:
    resource = block.get("resource")
    text = resource.get("text") if isinstance(resource, dict) else None
    return text if isinstance(text, str) else None
