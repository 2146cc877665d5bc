"""Content blocks of one run that are not text: the host keeps them, and the script gets small handles to display.

Above: tool_results.py puts results of tools here, script_functions.py hands them out. Below: redaction, call_texts.py.
Bounded in bytes and number; what is over a bound has a handle without an id, which cannot be displayed or read.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Any

from broker.texts import call_texts
from sandbox import inert_text

if TYPE_CHECKING:
    from broker.redaction import Redactor

KEPT_CHARACTERS = 64 * 1024 * 1024
KEPT_BLOCKS = 1_000
DISPLAYED_CHARACTERS = 8 * 1024 * 1024
DISPLAYED_BLOCKS = 20
_SHOWN = ("mimeType", "text", "blob")
_URI_CHARACTERS = 500
_MAX_DIGITS = 9
_MIME_TYPE = re.compile(r"[\w.+-]{1,64}/[!-~ ]{1,100}")
"""What servers send may have parameters."""
_TEXT_TYPE = re.compile(r"(?:text/[^;]+|application/json|image/svg\+xml)(?:; *charset=\"?utf-8\"?)?", re.IGNORECASE)
_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", b"", "image/png"),
    (b"\xff\xd8\xff", b"", "image/jpeg"),
    (b"GIF8", b"", "image/gif"),
    (b"RIFF", b"WEBP", "image/webp"),
)
"""The images that models take: what they begin with, what follows behind the eighth byte, and their type."""

_FIRST_CHARACTERS = 16


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
        self._servers: dict[str, str] = {}
        self._characters = self._displayed_characters = 0

    def keep(self, block: Any, server: str) -> str | None:
        """Keep what a client can show of a server's block; return its id, or None if nothing is kept."""
        name = f"block_{self._last + 1}"
        if not self._put(name, block, server):
            return None
        self._last += 1
        self._new.append(name)
        return name

    def take_new(self) -> dict[str, dict[str, Any]]:
        """Return the blocks that were kept since the last call of this, by id."""
        new, self._new = self._new, []
        return {name: self._kept[name] for name in new}

    def put_back(self, name: str, block: Any, server: str) -> None:
        """Keep a block that the run had before it was resumed."""
        number = name.removeprefix("block_")
        if number.isascii() and number.isdecimal() and self._put(name, block, server):
            self._last = max(self._last, int(number[:_MAX_DIGITS]))

    def _put(self, name: str, block: Any, server: str) -> bool:
        sent = showable(block)
        if sent is None:
            return False
        shown: dict[str, Any] = self._redact.value(sent)
        size = len(base64_of(shown) or shown.get("resource", {}).get("text", ""))
        if len(self._kept) >= KEPT_BLOCKS or self._characters + size > KEPT_CHARACTERS:
            return False
        self._characters += size
        self._kept[name] = shown
        self._servers[name] = server
        return True

    def find(self, name: Any) -> dict[str, Any] | None:
        """Return a kept block."""
        return self._kept.get(name) if isinstance(name, str) else None

    @property
    def displayed(self) -> list[dict[str, Any]]:
        """What is shown with the run's result, in the script's order."""
        return [self._displayed[order] for order in sorted(self._displayed)]

    def server_of(self, name: Any) -> str | None:
        """Return which server sent a kept block."""
        return self._servers.get(name) if isinstance(name, str) else None

    def display(self, block: dict[str, Any], order: int, server: str | None = None) -> None:
        """Show a block with the run's result, where there is room for it; tasks reach this point in any order.

        A text is made inert, and marked as that of the server that sent it; None means that the script made it. An
        image that models do not take becomes a resource: a client would pass it on, again with each turn that follows.
        """
        size = len(base64_of(block) or "") or len(str(block.get("resource", "")))
        is_over = self._displayed_characters + size > DISPLAYED_CHARACTERS
        if is_over or len(self._displayed) >= DISPLAYED_BLOCKS:
            self.left_out += 1
            return
        self._displayed_characters += size
        self._displayed[order] = _as_displayed(block, server)


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
    return _MIME_TYPE.fullmatch(_mime_type_of(block)) is not None and (data is None or decodes(data))


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


def _mime_type_of(block: dict[str, Any]) -> str:
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
    return _resource_of(mime_type, data)


def _resource_of(mime_type: str, data: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": "resource:///displayed", "mimeType": mime_type, "blob": data}}


def _as_displayed(block: dict[str, Any], server: str | None) -> dict[str, Any]:
    """Return a block as clients get it: a text, even one that came as base64, is one that can only be read."""
    if block["type"] == "image":
        image = _image_type(block["data"])
        if image is not None:
            return {**block, "mimeType": image}
        block = _resource_of(block["mimeType"], block["data"])
    resource = block.get("resource")
    if not isinstance(resource, dict):
        return block
    shown = {**resource, "uri": _short(inert_text(str(resource.get("uri"))))}
    text = _text_of(resource)
    if text is not None:
        shown.pop("blob", None)
        shown["text"] = ("" if server is None else call_texts.text_of(server)) + inert_text(text)
    return {**block, "resource": shown}


def _image_type(data: str) -> str | None:
    """Return the type of an image by its first bytes, as those who refuse one of another type see it."""
    first = base64.b64decode(data[:_FIRST_CHARACTERS])
    return next(
        (kind for begin, inner, kind in _IMAGES if first.startswith(begin) and first[8:].startswith(inner)), None
    )


def _short(uri: str) -> str:
    return uri if len(uri) <= _URI_CHARACTERS else f"{uri[:_URI_CHARACTERS]}…"


def _text_of(resource: dict[str, Any]) -> str | None:
    """Return the text of a resource; None if it has bytes that are none, or do not say so."""
    if isinstance(text := resource.get("text"), str):
        return text
    if _TEXT_TYPE.fullmatch(str(resource.get("mimeType"))) is None:
        return None
    try:
        return base64.b64decode(str(resource.get("blob")), validate=True).decode()
    except ValueError:
        return None
