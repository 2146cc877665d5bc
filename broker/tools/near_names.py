"""The tools whose names look like one that no tool has.

Above: the catalog. Below: difflib, which compares with the likeliest names: with all of ten thousand it would take a
second.
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from typing import TYPE_CHECKING

from broker.texts import search_texts
from codegen.near_names import likeliest, pairs_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from broker.tools.catalog import CatalogEntry

SUGGESTIONS = 3
MAX_NAMES = 10
"""For how many names at a time there are suggestions: each takes a pass over all tools, 15 ms for ten thousand."""

_NAME_CHARACTERS = 100
"""Of a name: difflib may take the cube of it."""


class NearNames:
    """Names of tools with their pairs of characters, read when first needed."""

    def __init__(self) -> None:
        """Start with nothing read."""
        self._pairs: dict[str, frozenset[str]] | None = None
        self._bare: dict[str, str] = {}

    def forget(self) -> None:
        """Read the names again next time: they have changed."""
        self._pairs = None

    def suggest(self, name: str, tools: Sequence[CatalogEntry]) -> tuple[str, ...]:
        """Return the qualified names nearest to a name, best first; a bare tool name counts as well."""
        wanted = name.lower()[:_NAME_CHARACTERS]
        bare = wanted.rpartition(".")[2]
        same = [tool.qualified_name for tool in tools if bare in {tool.spec.name.lower(), tool.function.lower()}]
        likely = likeliest(wanted, self._read(tools))
        names = {one.lower()[:_NAME_CHARACTERS]: one for one in likely}
        alike = difflib.get_close_matches(wanted, names, n=SUGGESTIONS)
        near = [names[match] for match in alike if _is_alike(wanted, match)]
        of_bare: dict[str, list[str]] = defaultdict(list)
        for one in likely:
            of_bare[self._bare[one][:_NAME_CHARACTERS]].append(one)
        near += [one for match in difflib.get_close_matches(bare, of_bare, n=SUGGESTIONS) for one in of_bare[match]]
        return tuple(dict.fromkeys([*same, *near]))[:SUGGESTIONS]

    def _read(self, tools: Iterable[CatalogEntry]) -> dict[str, frozenset[str]]:
        if self._pairs is None:
            self._pairs = {
                tool.qualified_name: pairs_of(tool.qualified_name.lower()[:_NAME_CHARACTERS]) for tool in tools
            }
            self._bare = {tool.qualified_name: tool.spec.name.lower() for tool in tools}
        return self._pairs


def _is_alike(one: str, other: str) -> bool:
    """Tell whether two names are alike in more than their server, which two tools of one server always share."""
    server, _, bare = one.rpartition(".")
    other_server, _, other_bare = other.rpartition(".")
    shares_word = set(re.findall(r"[^\W_]+", bare)) & set(re.findall(r"[^\W_]+", other_bare))
    return server != other_server or bool(shares_word or difflib.get_close_matches(bare, [other_bare]))


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """Return the sentence that there is no server or category of a name, with the nearest ones, or the first few."""
    there = list(known)
    near = difflib.get_close_matches(name[:_NAME_CHARACTERS], there, n=SUGGESTIONS)
    return search_texts.unknown_name(kind, name, near, there)
