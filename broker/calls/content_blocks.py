"""Content blocks of one run that are not text: the host keeps them, and the script gets small handles to display.

Above: tool_results.py puts results of tools here, script_functions.py hands them out. Below: redaction. Bounded in
bytes and number; what is over a bound has a handle without an id, which cannot be displayed or read.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker.redaction import Redactor

KEPT_CHARACTERS = 64 * 1024 * 1024
KEPT_BLOCKS = 1_000
DISPLAYED_CHARACTERS = 8 * 1024 * 1024
DISPLAYED_BLOCKS = 20
_SHOWN = ("mimeType", "text", "blob")
_MOST_DIGITS = 9
_MIME_TYPE = re.compile(r"[\w.+-]{1,64}/[!-~ ]{1,100}")
"""What servers send may have parameters."""


class ContentBlocks:
    """The blocks of one run, as MCP writes them."""

    def __init__(self, redact: Redactor) -> None:
        """Start empty; `redact` takes secrets out of what is kept."""
        self._redact = redact
        self._displayed: dict[int, dict[str, Any]] = {}
        self.left_out = 0
        """How many displayed blocks were over a bound, or broken."""
        self._last = 0
        self._new: list[str] = []
        self._kept: dict[str, dict[str, Any]] = {}
        self._characters = self._displayed_characters = 0

    def keep(self, block: Any) -> str | None:
        """Keep what a client can show of a server's block; return its id, or None if nothing is kept."""
        name = f"block_{self._last + 1}"
        if not self._put(name, block):
            return None
        self._last += 1
        self._new.append(name)
        return name

    def take_new(self) -> dict[str, dict[str, Any]]:
        """Return the blocks that were kept since the last call of this, by id."""
        new, self._new = self._new, []
        return {name: self._kept[name] for name in new}

    def put_back(self, name: str, block: Any) -> None:
        """Keep a block that the run had before it was resumed."""
        number = name.removeprefix("block_")
        if number.isascii() and number.isdecimal() and self._put(name, block):
            self._last = max(self._last, int(number[:_MOST_DIGITS]))

    def _put(self, name: str, block: Any) -> bool:
        sent = showable(block)
        if sent is None:
            return False
        shown: dict[str, Any] = self._redact.value(sent)
        size = len(base64_of(shown) or shown.get("resource", {}).get("text", ""))
        if len(self._kept) >= KEPT_BLOCKS or self._characters + size > KEPT_CHARACTERS:
            return False
        self._characters += size
        self._kept[name] = shown
        return True

    def find(self, name: Any) -> dict[str, Any] | None:
        """Return a kept block."""
        return self._kept.get(name) if isinstance(name, str) else None

    @property
    def displayed(self) -> list[dict[str, Any]]:
        """What is shown with the run's result, in the script's order."""
        return [self._displayed[order] for order in sorted(self._displayed)]

    def display(self, block: dict[str, Any], order: int) -> None:
        """Show a block with the run's result, where there is room for it; tasks reach this point in any order."""
        size = len(base64_of(block) or "") or len(str(block.get("resource", "")))
        is_over = self._displayed_characters + size > DISPLAYED_CHARACTERS
        if is_over or len(self._displayed) >= DISPLAYED_BLOCKS:
            self.left_out += 1
            return
        self._displayed_characters += size
        self._displayed[order] = block


def showable(block: Any) -> dict[str, Any] | None:
    """Return the part of a block that a client can show, or None."""
    match block:
        case {"type": "image" | "audio" as kind, "data": str() as data, "mimeType": str() as mime_type}:
            return {"type": kind, "data": data, "mimeType": mime_type}
        case {"type": "resource", "resource": {"uri": str() as uri, **resource}}:
            shown = {key: value for key in _SHOWN if isinstance(value := resource.get(key), str)}
            if "text" in shown or "blob" in shown:
                return {"type": "resource", "resource": {"uri": uri, **shown}}
    return None


def is_whole(block: dict[str, Any]) -> bool:
    """Tell whether a block is what it says: a client that hands a broken image to its model may never get rid of it."""
    data = base64_of(block)
    return _MIME_TYPE.fullmatch(mime_type_of(block)) is not None and (data is None or decodes(data))


def decodes(data: str) -> bool:
    """Tell whether a text is base64."""
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def base64_of(block: dict[str, Any]) -> str | None:
    """Return the base64 data of a block; None where it has none."""
    resource = block.get("resource")
    data = resource.get("blob") if isinstance(resource, dict) else block.get("data")
    return data if isinstance(data, str) else None


def mime_type_of(block: dict[str, Any]) -> str:
    """Return the type of a block; a resource without one is plain bytes or text."""
    resource = block.get("resource")
    if isinstance(resource, dict):
        return str(resource.get("mimeType") or "application/octet-stream")
    return str(block.get("mimeType"))


def block_of(mime_type: str, data: str) -> dict[str, Any]:
    """Return the block for base64 data that a script made."""
    kind = mime_type.partition("/")[0]
    if kind in {"image", "audio"}:
        return {"type": kind, "data": data, "mimeType": mime_type}
    resource = {"uri": "resource:///displayed", "mimeType": mime_type, "blob": data}
    return {"type": "resource", "resource": resource}
