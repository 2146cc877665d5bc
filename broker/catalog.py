"""The tools of all servers under the names that scripts, people and grants use.

Above: sessions, search and the command line. Below: listings, which replace a server's tools as a whole. A
tool has two names: `server.tool` with the server's own characters, for people and grants, and
`namespace.function` for scripts. Servers are told apart by their names in the config, never by what they call
themselves.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.errors import UnknownToolError
from broker.search import ToolSearch
from codegen import ToolSpec, assign_identifiers, generate_stub

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from codegen import Stub

_SUGGESTIONS = 3


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One tool with its names."""

    spec: ToolSpec
    namespace: str
    function: str

    @property
    def qualified_name(self) -> str:
        """`server.tool`, as people and grants write it."""
        return self.spec.qualified_name

    @property
    def python_name(self) -> str:
        """`namespace.function`, as scripts write it."""
        return f"{self.namespace}.{self.function}"

    def stub(self) -> Stub:
        """Return the typed stub; generated on first use, which may take a tenth of a second."""
        return generate_stub(self.spec, namespace=self.namespace, function=self.function)


class Catalog:
    """All tools that are known now. A server that went down keeps its last listing."""

    def __init__(self, servers: Iterable[str], *, tool_search: ToolSearch | None = None) -> None:
        """Give each server its namespace; the servers of a catalog do not change.

        Args:
            servers: Their names.
            tool_search: How tools are searched, with no tool yet; by words alone when None.
        """
        self.namespaces: dict[str, str] = assign_identifiers(servers)
        self._by_server: dict[str, dict[str, CatalogEntry]] = {server: {} for server in self.namespaces}
        self._by_qualified: dict[str, CatalogEntry] = {}
        self._by_python: dict[str, CatalogEntry] = {}
        self._tool_search = tool_search or ToolSearch()
        self._unread: set[str] = set()

    def __iter__(self) -> Iterator[CatalogEntry]:
        """Every tool, by server and then name."""
        return iter(self.tools)

    def __len__(self) -> int:
        """Count the tools."""
        return len(self._by_qualified)

    @property
    def tools(self) -> tuple[CatalogEntry, ...]:
        """Every tool, by server and then name."""
        return tuple(self._by_qualified[name] for name in sorted(self._by_qualified))

    def of_server(self, server: str) -> tuple[CatalogEntry, ...]:
        """The tools of one server, in the order of its listing."""
        return tuple(self._by_server.get(server, {}).values())

    def replace(self, server: str, specs: Iterable[ToolSpec]) -> None:
        """Put a new listing in the place of a server's tools."""
        listed = list(specs)
        functions = assign_identifiers([spec.name for spec in listed])
        namespace = self.namespaces[server]
        self._by_server[server] = {spec.name: CatalogEntry(spec, namespace, functions[spec.name]) for spec in listed}
        everything = [tool for tools in self._by_server.values() for tool in tools.values()]
        self._by_qualified = {tool.qualified_name: tool for tool in everything}
        self._by_python = {tool.python_name: tool for tool in everything}
        self._unread.add(server)

    def server_of(self, namespace: str) -> str | None:
        """Return the server behind a namespace of scripts."""
        return next((server for server, name in self.namespaces.items() if name == namespace), None)

    def by_python_name(self, name: str) -> CatalogEntry | None:
        """Return the tool that a script calls by exactly this `namespace.function`."""
        return self._by_python.get(name)

    def find(self, name: str) -> CatalogEntry | None:
        """Return the tool of this exact qualified name, or else of this name in scripts."""
        return self._by_qualified.get(name) or self._by_python.get(name)

    def lookup(self, name: str) -> CatalogEntry:
        """Return a tool as `find` does.

        Raises:
            UnknownToolError: There is none; the error carries the nearest names.
        """
        tool = self.find(name)
        if tool is None:
            raise UnknownToolError(name, self.suggest(name))
        return tool

    def suggest(self, name: str) -> tuple[str, ...]:
        """Return the qualified names nearest to a name, best first; a bare tool name counts as well."""
        wanted = name.lower()
        bare = wanted.rpartition(".")[2]
        same = [tool.qualified_name for tool in self.tools if bare in {tool.spec.name.lower(), tool.function.lower()}]
        names = {tool.qualified_name.lower(): tool.qualified_name for tool in self.tools}
        near = [names[match] for match in difflib.get_close_matches(wanted, names, n=_SUGGESTIONS)]
        bare_names = {tool.spec.name.lower(): tool.qualified_name for tool in self.tools}
        near += [bare_names[match] for match in difflib.get_close_matches(bare, bare_names, n=_SUGGESTIONS)]
        return tuple(dict.fromkeys([*same, *near]))[:_SUGGESTIONS]

    @property
    def tool_search(self) -> ToolSearch:
        """The search over these tools. It reads new listings when it is asked for, a fifth of a second for 1,000."""
        for server in self._unread:
            self._tool_search.replace(server, (entry.spec for entry in self._by_server[server].values()))
        self._unread.clear()
        return self._tool_search

    def search(self, query: str, *, limit: int = 20) -> tuple[CatalogEntry, ...]:
        """Return the tools that say something of a query, by words alone, best first."""
        found = self.tool_search.by_keyword(query, limit=limit)
        return tuple(self._by_server[spec.server][spec.name] for spec in found)
