"""Finds the tool that a name means in another program's spelling.

Above: the catalog, disclosure.py, preparation.py. Below: nothing. Models know tools as `mcp__git__git_log`,
`functions.git_log`, `git.gitLog` or `git/git-log`: prefixes, separators and capitals are all that differs, and where
one tool alone is left, it is the one that is meant. For finding a description only: grants and calls go by exact names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.tools.catalog import CatalogEntry

_MODULES = ("default_api", "functions")
STAND_INS = frozenset({"call_tool", *_MODULES})
"""What other programs give a script for all tools: modules that have them as functions, and one that calls any."""

_PREFIX = re.compile(rf"(?:(?:{'|'.join(_MODULES)}|tools)\.|mcp(?=[_.]))+")
_SEPARATOR = re.compile(r"[\W_]+")


def bare_letters(name: str) -> str:
    """Return a name without the prefixes of other programs, separators and capitals."""
    return _SEPARATOR.sub("", _PREFIX.sub("", name, count=1)).lower()


class Spellings:
    """The tools of a catalog by the letters of their names, read when first needed."""

    def __init__(self) -> None:
        """Start with nothing read."""
        self._meant: dict[str, str | None] | None = None

    def forget(self) -> None:
        """Read the names again next time: they have changed."""
        self._meant = None

    def meant(self, name: str, tools: Iterable[CatalogEntry]) -> str | None:
        """Return the qualified name of the one tool with these letters, with its server's or without; or None."""
        if self._meant is None:
            self._meant = {}
            for tool in tools:
                for one in {bare_letters(tool.qualified_name), bare_letters(tool.spec.name)}:
                    self._meant[one] = None if one in self._meant else tool.qualified_name
        letters = bare_letters(name)
        return self._meant.get(letters) if letters else None
