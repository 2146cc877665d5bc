"""Which tools a script names, read off its text where it names them plainly; any other script is read in a guest.

Above: preparation.py. Below: nothing. Plain are `from tools import git, fs` on a line of its own and `git.git_log`:
each name as scripts are to write it, and a server's in no other place. What a guest finds in such a script is found
here as well, and perhaps more: a name in a comment counts. The text is searched, never parsed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sandbox import Reference

if TYPE_CHECKING:
    from collections.abc import Callable, Container

MAX_CHARACTERS = 10_000
"""A longer script is read in a guest, which takes hardly longer then."""

_IMPORT = re.compile(r"(?m)^[ \t]*from tools import (\w+(?:, ?\w+)*)[ \t]*$")
_IMPORTS = ("import", "from")
_WORD = re.compile(r"\w+")
_FUNCTION = re.compile(r"\.(\w+)")


def plain_references(
    text: str, namespaces: Container[str], is_described: Callable[[str, str], bool]
) -> tuple[Reference, ...] | None:
    """Return what a script names, in order; None if a guest has to read it, as where a tool is not described.

    Args:
        text: The script, with its ASCII names written as Python reads them.
        namespaces: The names of servers in scripts.
        is_described: Tells whether a namespace has a described tool of this name.
    """
    if len(text) > MAX_CHARACTERS or "\\\n" in text:
        return None
    imported: dict[str, int] = {}
    for line in _IMPORT.finditer(text):
        imported |= {name.strip(): line.start(1) for name in line[1].split(",") if name.strip() not in imported}
    if not all(name in namespaces for name in imported):
        return None
    named: dict[tuple[str, str], int] = {}
    other_import = 0
    for word in _WORD.finditer(text := _IMPORT.sub(_blank, text)):
        if word[0] == "tools":
            return None
        if word[0] in _IMPORTS:
            other_import = word.end()
        elif word[0] in namespaces:
            function = _FUNCTION.match(text, word.end())
            is_imported = other_import and "\n" not in text[other_import : word.start()]
            if function is None or is_imported or text[word.start() - 1 : word.start()] == ".":
                return None
            if not is_described(word[0], function[1]):
                return None
            named.setdefault((word[0], function[1]), word.start())
    unused = imported.keys() - {namespace for namespace, _ in named}
    places = [*named.items(), *(((namespace, None), imported[namespace]) for namespace in unused)]
    return tuple(
        Reference(namespace, function, 1 + text.count("\n", 0, place))
        for (namespace, function), place in sorted(places, key=lambda found: found[1])
    )


def _blank(line: re.Match[str]) -> str:
    """Return as much of nothing, so that all places stay the same."""
    return " " * len(line[0])
