"""Groups tools into categories: the operator's, the groups of servers, or else by name.

Above: searches with a category, and the pages of tiers. Below: the catalog. If the config says nothing, a small
server is one category of its name, and a large one is divided by the first word that tells its tools apart, as in
`azure/storage`. The category of a lazy server that was never connected is known from the config, and by its name.
"""

from __future__ import annotations

from collections import Counter
from fnmatch import fnmatchcase
from itertools import chain
from typing import TYPE_CHECKING

from broker.search.words import words
from broker.texts import search_texts
from broker.tools.near_names import unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from broker.tools.catalog import Catalog, CatalogEntry
    from codegen import ToolSpec

LARGE_SERVER = 30
"""From so many tools on a server is divided."""

_LEAST = 3
_OTHER = "other"


class Categories:
    """The categories of a catalog's tools, found anew when its tools change."""

    def __init__(
        self,
        catalog: Catalog,
        *,
        patterns: Mapping[str, Sequence[str]] | None = None,
        groups: Mapping[str, str] | None = None,
        descriptions: Mapping[str, str] | None = None,
        about_servers: Mapping[str, str] | None = None,
        never_seen: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        """Take what the config says.

        Args:
            catalog: Whose tools.
            patterns: For each category of the operator, patterns of `server.tool`.
            groups: For each server that has one, its category.
            descriptions: For each category of the operator that has one, a line on what it is for.
            about_servers: The same for servers.
            never_seen: The servers that are asleep and were never connected, so that their tools are not known.
        """
        self._catalog = catalog
        self._patterns = patterns or {}
        self._groups = groups or {}
        self._descriptions = descriptions or {}
        self._about_servers = about_servers or {}
        self._never_seen = never_seen
        self._said_of: dict[str, tuple[str, ...]] = {}
        self._revision = -1
        self._members: dict[str, tuple[CatalogEntry, ...]] = {}
        self._of: dict[str, tuple[str, ...]] = {}
        self._words: dict[str, tuple[str, ...]] = {}

    def of(self, spec: ToolSpec) -> tuple[str, ...]:
        """Return the categories of a tool of the catalog; at least one."""
        self._refresh()
        return self._of.get(spec.qualified_name, (spec.server,))

    def members(self) -> Mapping[str, tuple[CatalogEntry, ...]]:
        """Return every category that has tools, by name, with its tools by name."""
        self._refresh()
        return self._members

    def asleep(self) -> Mapping[str, tuple[str, ...]]:
        """Return the categories of servers that were never connected, by name, with these servers."""
        found: dict[str, list[str]] = {}
        for server in self._never_seen():
            for category in self._of_server(server):
                found.setdefault(category, []).append(server)
        return {name: tuple(sorted(found[name])) for name in sorted(found)}

    def about(self, name: str, servers: Sequence[str]) -> str:
        """Return the operator's words for a category, or for the servers whose category it is; empty without any."""
        if name in self._descriptions or name in self._patterns:
            return self._descriptions.get(name, "")
        is_part = name not in self._groups.values() and name not in servers
        said = {} if is_part else {server: self._about_servers.get(server, "") for server in servers}
        return search_texts.of_servers(said) if any(said.values()) else ""

    def words(self, name: str) -> tuple[str, ...]:
        """Return the words that tell the tools of a category apart, the most frequent first."""
        self._refresh()
        if name not in self._words:
            self._words[name] = _telling(self._members.get(name, ()))
        return self._words[name]

    def may_have(self, server: str, category: str) -> bool:
        """Tell whether a server whose tools are not known may have some in a category."""
        said = self._of_server(server)
        return category in said or (server in said and category.startswith(f"{server}/"))

    def unknown(self, name: str) -> str:
        """Return a sentence for an unknown category, with the most similar names."""
        return unknown_name("category", name, sorted({*self.members(), *self.asleep()}))

    def _of_server(self, server: str) -> tuple[str, ...]:
        """Return the categories that tools of a server may be in, by the config alone."""
        if server not in self._said_of:
            said = [name for name, patterns in self._patterns.items() if any(_may_match(server, p) for p in patterns)]
            if not any(_matches(f"{server}.", [p]) and p.endswith("*") for p in chain(*self._patterns.values())):
                said.append(self._groups.get(server, server))
            self._said_of[server] = tuple(dict.fromkeys(said))
        return self._said_of[server]

    def _refresh(self) -> None:
        if self._revision == self._catalog.revision:
            return
        self._revision = self._catalog.revision
        members: dict[str, list[CatalogEntry]] = {}
        self._of = {}
        self._words = {}
        for server in self._catalog.namespaces:
            for entry, derived in _derived(server, self._catalog.of_server(server)):
                name = entry.qualified_name
                said = tuple(category for category, patterns in self._patterns.items() if _matches(name, patterns))
                self._of[name] = said or (self._groups.get(server, derived),)
                for category in self._of[name]:
                    members.setdefault(category, []).append(entry)
        self._members = {
            name: tuple(sorted(members[name], key=lambda entry: entry.qualified_name)) for name in sorted(members)
        }


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _may_match(server: str, pattern: str) -> bool:
    """Tell whether a pattern may match a tool of a server: a part of it from its start matches the server's name."""
    return any(fnmatchcase(f"{server}.", pattern[:end]) for end in range(1, len(pattern) + 1))


def _derived(server: str, entries: Sequence[CatalogEntry]) -> list[tuple[CatalogEntry, str]]:
    if len(entries) < LARGE_SERVER:
        return [(entry, server) for entry in entries]
    named = [words(entry.spec.name) for entry in entries]
    depth = _common(named)
    first = [parts[depth] if len(parts) > depth else _OTHER for parts in named]
    counts = Counter(first)
    return [
        (entry, f"{server}/{word if counts[word] >= _LEAST else _OTHER}")
        for entry, word in zip(entries, first, strict=True)
    ]


def _telling(entries: Sequence[CatalogEntry]) -> tuple[str, ...]:
    counts = Counter(word for entry in entries for word in {*words(entry.spec.name)} - {*words(entry.spec.server)})
    return tuple(sorted((word for word in counts if counts[word] < len(entries)), key=lambda one: (-counts[one], one)))


def _common(names: Sequence[Sequence[str]]) -> int:
    """Count the words that all names begin with: `git_log` and `git_status` share one."""
    depth = 0
    for column in zip(*names, strict=False):
        if len(set(column)) > 1:
            break
        depth += 1
    return depth
