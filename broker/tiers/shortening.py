"""Takes text out of an item of a tier that is too large for its page, until it fits.

Above: pages.py. Below: the plain text of codegen. What servers wrote in characters of two to four tokens each, such as
Chinese and emoji, would otherwise leave a page with a tool or two, or with none.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from codegen.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

_SHORTENED = ("about", "returns", "popular", "parameters", "required", "optional")
_LEAST_CHARACTERS = 40
_MORE = "…"


def shortened(item: dict[str, Any], fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return an item with less of its longest texts and lists, each ending in … then, until it fits.

    If it does not fit without them either, nothing more is taken: its name stays whole, since calls need it.
    """
    while not fits(item):
        shorter = {key: less for key in _SHORTENED if key in item and (less := _less(item[key])) != item[key]}
        if not shorter:
            break
        longest = max(shorter, key=lambda key: len(json.dumps(item[key])))
        item = {**item, longest: shorter[longest]}
    return item


def _less(value: str | list[str]) -> str | list[str]:
    """Return three quarters of a text or list; nothing less than forty characters of a text."""
    if isinstance(value, str):
        return one_line(value, max(len(value) * 3 // 4, _LEAST_CHARACTERS))
    names = [name for name in value if name != _MORE]
    return [*names[: len(names) * 3 // 4], _MORE] if names else value
