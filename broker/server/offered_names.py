"""The names by which mode `tools` offers the tools of all servers, and the tools that are meant by them.

Above: tools_mode.py. Below: the catalog. The protocol takes names of 128 characters and dots in them; the interfaces of
models, to which clients pass the names on, take neither.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker.tools.catalog import Catalog, CatalogEntry

_MAX = 64
_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{_MAX}}}")
"""Names as the interfaces of models want them."""

_DIGITS = 10
_LONG_DIGITS = 32
_MADE = re.compile(rf".*-(?:[0-9a-f]{{{_DIGITS}}}|[0-9a-f]{{{_LONG_DIGITS}}})", re.DOTALL)
"""What names that are made with a digest look like; no other tool has such a name."""

_SERVER_CHARACTERS = 20
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_]+")


class OfferedNames:
    """The names of the tools of one catalog, each of 1 to 64 characters of `A-Za-z0-9_-`.

    One server's tools keep their names, if those are such names; those of several get the server's name before them.
    Which it is depends on the config alone. A tool for which neither will do gets what can be said of it in such
    characters, and a digest of its qualified name: that does not depend on what else is connected. No two have the same
    name: a server could stand in for another.
    """

    def __init__(self, catalog: Catalog, taken: Iterable[str]) -> None:
        """Name the tools of a catalog; names that are `taken` are those of other tools."""
        self._catalog = catalog
        self._taken = frozenset(taken)
        self._parts = {server: _server_part(server) for server in catalog.namespaces}
        self._revision = -1
        self._names: dict[str, str] = {}
        self._by_name: dict[str, CatalogEntry] = {}

    def by_tool(self) -> Mapping[str, str]:
        """Return the name of each tool by its qualified name."""
        catalog = self._catalog
        if self._revision != catalog.revision:
            self._revision = catalog.revision
            names = self._own_names() if len(catalog.namespaces) == 1 else {}
            kept = frozenset(names.values())
            for entry in catalog.tools:
                name = _joined(entry)
                if entry.qualified_name not in names and name not in kept and self._is_plain(name, entry.namespace):
                    names[entry.qualified_name] = name
            self._names = names | _made([entry for entry in catalog.tools if entry.qualified_name not in names])
            self._by_name = {self._names[entry.qualified_name]: entry for entry in catalog.tools}
        return self._names

    def entry(self, name: str) -> CatalogEntry | None:
        """Return the tool that is offered by a name, or has it otherwise."""
        self.by_tool()
        return self._by_name.get(name) or self._catalog.find(name)

    def qualified(self, name: str) -> str:
        """Return the qualified name of what a client calls; that of a tool not known yet as it would be listed.

        A name with a digest may be that of a tool whose server is down, so it is not taken for another one's.
        """
        entry = self.entry(name)
        if entry is not None:
            return entry.qualified_name
        namespace = None if _MADE.fullmatch(name) else self._namespace_before(name)
        return name if namespace is None else f"{namespace}.{name.removeprefix(f'{namespace}__')}"

    def servers_behind(self, name: str) -> set[str]:
        """Return the servers whose tool a name may be, while it is not known of which tool it is."""
        servers = self._catalog.namespaces.keys()
        if len(servers) == 1:
            return {*servers}
        before = {self._catalog.server_before(name), self._catalog.server_of(self._namespace_before(name) or "")}
        made = _MADE.fullmatch(name) is not None
        return {server for server in servers if server in before or (made and _begins(name, self._parts[server]))}

    def _own_names(self) -> dict[str, str]:
        return {
            entry.qualified_name: name
            for entry in self._catalog.tools
            if _NAME.fullmatch(name := entry.spec.name) and name not in self._taken and not _MADE.fullmatch(name)
        }

    def _is_plain(self, name: str, namespace: str) -> bool:
        """Tell whether a joined name is one to offer, and can be of no server of the config but this one."""
        return (
            _NAME.fullmatch(name) is not None and name not in self._taken and self._namespace_before(name) == namespace
        )

    def _namespace_before(self, name: str) -> str | None:
        """Return the longest namespace that a joined name begins with."""
        end = name.rfind("__")
        while end >= 0 and self._catalog.server_of(name[:end]) is None:
            end = name.rfind("__", 0, end + 1)
        return name[:end] if end >= 0 else None


def _joined(entry: CatalogEntry) -> str:
    return f"{entry.namespace}__{entry.function}"


def _made(entries: Iterable[CatalogEntry]) -> dict[str, str]:
    """Name tools with a digest; with a long one where somebody has found names whose short ones are the same."""
    by_qualified = {entry.qualified_name: entry for entry in entries}
    names = {qualified: _with_digest(entry, _DIGITS) for qualified, entry in by_qualified.items()}
    counts = Counter(names.values())
    several = [qualified for qualified, name in names.items() if counts[name] > 1]
    return names | {qualified: _with_digest(by_qualified[qualified], _LONG_DIGITS) for qualified in several}


def _with_digest(entry: CatalogEntry, digits: int) -> str:
    whole = f"{len(entry.spec.server)} {entry.qualified_name}".encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(whole).hexdigest()[:digits]
    server, tool = _server_part(entry.spec.server), _spelled(entry.spec.name)
    said = "__".join(part for part in (server, tool) if part) or "tool"
    return f"{said[: _MAX - 1 - digits]}-{digest}"


def _server_part(server: str) -> str:
    return _spelled(server)[:_SERVER_CHARACTERS]


def _begins(name: str, server_part: str) -> bool:
    """Tell whether a name that is made with a digest can be of a server of which it has this part."""
    return name.startswith((f"{server_part}__", f"{server_part}-"))


def _spelled(name: str) -> str:
    """Return what can be written of a name in the letters of ASCII: letters without their accents, _ for the rest."""
    plain = unicodedata.normalize("NFKD", name[: 4 * _MAX])
    return _NOT_ALLOWED.sub("_", "".join(letter for letter in plain if not unicodedata.combining(letter))).strip("_")
