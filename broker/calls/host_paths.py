"""Paths of the host, taken out of what a failed call tells a script.

A server's error often names a file with its whole path, and so the user, the layout of the disk and the name of the
project. The folders are left out and the last part is kept, which is what a script can use; paths that the script
itself passed stay as they are. Results of calls that succeed are not touched: there, a path is what was asked for.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_PART = r"[^\s/\\'\"<>|:*?,;()\[\]{}]+"
_ABSOLUTE = re.compile(
    rf"(?<![\w/\\:.~-])(?:~|file://)?/(?:{_PART}/)+(?P<posix>{_PART})?"  # two parts at least: /health is a route
    rf"|(?<!\w)[A-Za-z]:[\\/](?:{_PART}[\\/])*(?P<windows>{_PART})?"
)


def hide_host_paths(text: str, arguments: dict[str, Any]) -> str:
    """Returns `text` with the folders of absolute paths as `<path>/`, except of paths named in `arguments`."""
    known = json.dumps(arguments, ensure_ascii=False)
    return _ABSOLUTE.sub(lambda match: _hidden(match, known), text)


def hide_in_details(details: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Returns details of a failure with `hide_host_paths` applied to every text in them."""
    hidden = _each_text(details, lambda text: hide_host_paths(text, arguments))
    return hidden if isinstance(hidden, dict) else {}


def _hidden(match: re.Match[str], known: str) -> str:
    # A trailing full stop ends the sentence, not the path.
    if match[0].rstrip(".") in known:
        return match[0]
    return f"<path>/{match['posix'] or match['windows'] or ''}"


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_each_text(item, change) for item in value]
    if isinstance(value, dict):
        return {key: _each_text(item, change) for key, item in value.items()}
    return value
