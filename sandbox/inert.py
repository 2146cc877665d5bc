"""Text that a script or a server wrote, made harmless for a terminal and for strict encoders.

Whatever would act instead of being read (escape sequences, carriage returns, bidirectional overrides) is replaced by
its visible escape; tabs and newlines stay.
"""

from __future__ import annotations

import re
from typing import Any

_LIVE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, C1
    "\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # bidirectional, invisible
    "\ud800-\udfff"  # lone surrogates
    "\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]"  # of music; tags: invisible ASCII
    # Selectors of a character's form where they choose none: any number of them hides any text.
    "|(?<=[\ufe00-\ufe0f\U000e0100-\U000e01ef])[\ufe00-\ufe0f]"
    "|(?<![\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]"
)
_ESCAPES = ("\\u", "\\b", "\\f", "\\r")
"""Of JSON: behind any other escape is a character that is read."""

_LIVE_ASCII = bytes(code for code in range(128) if _LIVE.match(chr(code)))


def inert_text(text: str) -> str:
    r"""Return `text` with live characters shown as `\x1b`, `\u202e` and the like; `\r\n` becomes `\n`."""
    if text.isascii():
        data = text.encode("ascii")
        if len(data.translate(None, _LIVE_ASCII)) == len(data):
            return text
    return _LIVE.sub(_escape, text.replace("\r\n", "\n"))


def inert_value(value: Any) -> Any:
    """Make every string in JSON data inert, keys included; lists and objects are changed in place, not copied."""
    if isinstance(value, str):
        return inert_text(value)
    if isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, str | list | dict):
                value[index] = inert_value(item)
    elif isinstance(value, dict):
        if not all(map(_is_inert, value)):
            items = [(inert_text(key), item) for key, item in value.items()]
            value.clear()
            value.update(items)
        for key, item in value.items():
            if isinstance(item, str | list | dict):
                value[key] = inert_value(item)
    return value


def is_inert_json(text: str) -> bool:
    """Tell whether a look at JSON text shows that every string in it is inert; false where that takes more."""
    return ("\\" not in text or not any(escape in text for escape in _ESCAPES)) and _is_inert(text)


def _is_inert(text: str) -> bool:
    return inert_text(text) == text


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:  # noqa: PLR2004  # one byte
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"  # noqa: PLR2004  # the BMP
