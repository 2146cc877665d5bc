"""The names by which mode `tools` offers the tools of all servers, and the tools that are meant by them.

Above: tools_mode.py. Below: the catalog.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker.tools.catalog import Catalog, CatalogEntry

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
"""Names as the protocol wants them."""


class OfferedNames:
    """The names of the tools of one catalog.

    One server's tools keep their names, if those are names as the protocol wants them; those of several get the
    server's name before them. Which it is depends on the config alone. No two have the same one: a server could stand
    in for another.
    """

    def __init__(self, catalog: Catalog, taken: Iterable[str]) -> None:
        """Name the tools of a catalog; names that are `taken` are those of other tools."""
        self._catalog = catalog
        self._taken = frozenset(taken)
        self._revision = -1
        self._names: dict[str, str] = {}
        self._by_name: dict[str, CatalogEntry] = {}

    def by_tool(self) -> Mapping[str, str]:
        """Return the name of each tool by its qualified name."""
        catalog = self._catalog
        if self._revision != catalog.revision:
            self._revision = catalog.revision
            kept = {entry.spec.name for entry in catalog.tools} if len(catalog.namespaces) == 1 else set()
            kept = {name for name in kept - self._taken if _NAME.fullmatch(name)}
            joined = Counter(map(_joined, catalog.tools))
            self._names = {
                entry.qualified_name: entry.spec.name
                if entry.spec.name in kept
                else name
                if joined[name := _joined(entry)] == 1 and name not in kept
                else entry.python_name
                for entry in catalog.tools
            }
            self._by_name = {self._names[entry.qualified_name]: entry for entry in catalog.tools}
        return self._names

    def entry(self, name: str) -> CatalogEntry | None:
        """Return the tool that is offered by a name, or has it otherwise."""
        self.by_tool()
        return self._by_name.get(name) or self._catalog.find(name)

    def qualified(self, name: str) -> str:
        """Return the qualified name of what a client calls; that of a tool not known yet as it would be listed."""
        entry = self.entry(name)
        if entry is not None:
            return entry.qualified_name
        namespace, separator, function = name.partition("__")
        return f"{namespace}.{function}" if separator and self._catalog.server_of(namespace) else name


def _joined(entry: CatalogEntry) -> str:
    return f"{entry.namespace}__{entry.function}"
