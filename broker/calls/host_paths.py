"""Takes paths of the host out of the error of a failed call.

A server's error often names a file with its whole path, and so the user, the layout of the disk and the name of the
project. The folders are left out and the last part is kept, which is what a script can use; paths that the script
itself passed stay as they are. Results of calls that succeed are not touched: there, a path is what was asked for.
"""

from __future__ import annotations

import json
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MAX_LOOKED_UP = 100
_PART = r"[^\s/\\'\"<>|:*?,;()\[\]{}]+"
_ABSOLUTE = re.compile(
    rf"(?<![\w/\\:.~-])(?:~|file://)?/(?:{_PART}/)+(?P<posix>{_PART})?"  # two parts at least: /health is a route
    rf"|(?<!\w)[A-Za-z]:[\\/](?:{_PART}[\\/])*(?P<windows>{_PART})?"
)


class HostPaths:
    """Hides the host's paths in the error of one call, except those that are in its arguments."""

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        """Take what the script passed."""
        self._arguments = arguments or {}
        self._kept: dict[str, bool] = {}

    def hidden(self, text: str) -> str:
        """Return a text with the folders of absolute paths as `<path>/`."""
        return _ABSOLUTE.sub(self._hidden, text)

    def hidden_in(self, details: dict[str, Any]) -> dict[str, Any]:
        """Return details of a failure in which the same was done to every text."""
        return {key: _each_text(value, self.hidden) for key, value in details.items()}

    def _hidden(self, match: re.Match[str]) -> str:
        # A trailing full stop ends the sentence, not the path.
        if self._is_named(match[0].rstrip(".")):
            return match[0]
        return f"<path>/{match['posix'] or match['windows'] or ''}"

    def _is_named(self, path: str) -> bool:
        """Tell whether a path is in the arguments; only so many are looked up, for each takes a pass over those."""
        found = self._kept.get(path)
        if found is None and self._arguments and len(self._kept) < _MAX_LOOKED_UP:
            found = self._kept[path] = path in self._written
        return bool(found)

    @cached_property
    def _written(self) -> str:
        return json.dumps(self._arguments, ensure_ascii=False)


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_each_text(item, change) for item in value]
    if isinstance(value, dict):
        return {key: _each_text(item, change) for key, item in value.items()}
    return value
