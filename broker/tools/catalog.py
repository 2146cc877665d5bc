"""The tools of all servers under the names that scripts, people and grants use.

Above: sessions, search and the command line. Below: listings, which replace a server's tools as a whole. A
tool has two names: `server.tool` with the server's own characters, for people and grants, and
`namespace.function` for scripts. Servers are told apart by their names in the config, never by what they call
themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import anyio

from broker.errors import UnknownToolError
from broker.search import ToolSearch
from broker.tools.near_names import NearNames
from broker.tools.spellings import Spellings
from broker.tools.tool_changes import ToolChange
from codegen import ToolSpec, assign_identifiers, generate_stub, is_generated
from codegen.near_names import near_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from broker.tools.inferred_results import Inferred
    from codegen import Stub

_CANDIDATES = 20
_MAX_WITHDRAWN = 3_000
"""Names of tools that are gone; the oldest are forgotten. A server may list others again and again."""


@dataclass(frozen=True)
class CatalogEntry:
    """One tool with its names.

    Attributes:
        spec: Its definition.
        namespace: Its server's name in scripts.
        function: Its own name in scripts.
        inferred: Result type learned from recordings, for a tool that declares none.
        is_complete: False while its server has listed no more than a line about it (tool_descriptions.py).
        is_listed_by_line: Whether its server lists no more of it, though its definition may have been read since.
    """

    spec: ToolSpec
    namespace: str
    function: str
    is_complete: bool = True
    inferred: Inferred | None = field(default=None, compare=False)
    is_listed_by_line: bool = False

    @property
    def qualified_name(self) -> str:
        """`server.tool`, as people and grants write it."""
        return self.spec.qualified_name

    @property
    def python_name(self) -> str:
        """`namespace.function`, as scripts write it."""
        return f"{self.namespace}.{self.function}"

    @property
    def has_stub(self) -> bool:
        """Whether `stub` has nothing to generate."""
        return is_generated(self._typed_spec(), namespace=self.namespace, function=self.function)

    def stub(self) -> Stub:
        """Return the typed stub; generated on first use, which may take a tenth of a second."""
        return generate_stub(self._typed_spec(), namespace=self.namespace, function=self.function)

    @cached_property
    def unwraps_result(self) -> bool:
        """Whether the stub takes `{"result": value}` off a value."""
        return self.stub().unwraps_result

    def _typed_spec(self) -> ToolSpec:
        """Return the definition with what was inferred, marked as such; calls go by the definition itself."""
        if self.inferred is None or self.spec.output_schema is not None:
            return self.spec
        if list(self.inferred.schema.get("properties", ())) == ["result"]:
            return self.spec  # a stub would take such a wrapping off, and results are handed on as they are
        learned = f"The type of its result is inferred from {self.inferred.results} recorded results."
        described = f"{self.spec.description.rstrip()}\n\n{learned}".strip()
        return replace(self.spec, output_schema=self.inferred.schema, description=described)


class Catalog:
    """All tools that are known now. A server that went down keeps its last listing."""

    def __init__(
        self, servers: Iterable[str], *, disabled: Iterable[str] = (), tool_search: ToolSearch | None = None
    ) -> None:
        """Give each server its namespace; the servers of a catalog do not change.

        Args:
            servers: Their names.
            disabled: Those of them that the config keeps without using them, so that they never have a tool.
            tool_search: How tools are searched, with no tool yet; by words alone when None.
        """
        self.namespaces: dict[str, str] = assign_identifiers(servers)
        self.disabled = frozenset(disabled)
        self._by_server: dict[str, dict[str, CatalogEntry]] = {server: {} for server in self.namespaces}
        self._server_of = {namespace: server for server, namespace in self.namespaces.items()}
        self._by_qualified: dict[str, CatalogEntry] = {}
        self._by_python: dict[str, CatalogEntry] = {}
        self._withdrawn: dict[str, None] = {}
        self._sorted: tuple[CatalogEntry, ...] | None = None
        self._near = NearNames()
        self._spellings = Spellings()
        self._tool_search = ToolSearch() if tool_search is None else tool_search  # an empty one is false
        self._unread: set[str] = set()
        self._reading = anyio.Lock()
        self.inferred_of: Callable[[ToolSpec], Inferred | None] = lambda _spec: None
        """Finds what was inferred about the results of a tool."""
        self.on_change: Callable[[], None] = lambda: None
        """Called at each change of a tool, before anybody else has a turn."""
        self.revision = 0
        """Grows with every change of a tool."""
        self.changed = anyio.Event()
        """Set at the next change of a tool, and then replaced."""

    def __iter__(self) -> Iterator[CatalogEntry]:
        """Every tool, by server and then name."""
        return iter(self.tools)

    def __len__(self) -> int:
        """Count the tools."""
        return len(self._by_qualified)

    @property
    def tools(self) -> tuple[CatalogEntry, ...]:
        """Every tool, by server and then name."""
        if self._sorted is None:
            self._sorted = tuple(self._by_qualified[name] for name in sorted(self._by_qualified))
        return self._sorted

    def of_server(self, server: str) -> tuple[CatalogEntry, ...]:
        """Return the tools of one server, in the order of its listing."""
        return tuple(self._by_server.get(server, {}).values())

    def replace(
        self, server: str, specs: Iterable[ToolSpec], *, incomplete: Iterable[str] = ()
    ) -> tuple[ToolChange, ...]:
        """Put a new listing in the place of a server's tools.

        Args:
            server: The server.
            specs: Its tools.
            incomplete: Names of those of which no more than a line is known.

        Returns:
            What is different for the tools of the listing before.
        """
        listed = {spec.name: spec for spec in specs}
        before = self._by_server[server]
        partial = frozenset(incomplete)
        if _same(before, listed, partial):
            return ()
        by_line = partial | {name for name, entry in before.items() if entry.is_listed_by_line}
        functions = assign_identifiers(listed)
        namespace = self.namespaces[server]
        now = {
            name: CatalogEntry(
                spec, namespace, functions[name], name not in partial, self.inferred_of(spec), name in by_line
            )
            for name, spec in listed.items()
        }
        for entry in before.values():
            del self._by_qualified[entry.qualified_name], self._by_python[entry.python_name]
        self._by_server[server] = now
        self._by_qualified |= {entry.qualified_name: entry for entry in now.values()}
        self._by_python |= {entry.python_name: entry for entry in now.values()}
        self._note_withdrawn(before, now)
        self._sorted = None
        self._unread.add(server)
        self._near.forget()
        self._spellings.forget()
        self.revision += 1
        self.on_change()
        self.changed.set()
        self.changed = anyio.Event()
        return tuple(_changes(before, now))

    def _note_withdrawn(self, before: dict[str, CatalogEntry], now: dict[str, CatalogEntry]) -> None:
        for entry in now.values():
            for name in _names(entry):
                self._withdrawn.pop(name, None)
        for gone in before.keys() - now.keys():
            self._withdrawn |= dict.fromkeys(_names(before[gone]))
        for name in list(self._withdrawn)[: max(0, len(self._withdrawn) - _MAX_WITHDRAWN)]:
            del self._withdrawn[name]

    def complete(self, server: str, specs: Iterable[ToolSpec]) -> None:
        """Put full definitions in the place of those that were a line each; others are left alone."""
        held = self._by_server[server]
        full = {spec.name: spec for spec in specs if spec.name in held and not held[spec.name].is_complete}
        partial = [name for name, entry in held.items() if not entry.is_complete and name not in full]
        self.replace(server, [full.get(name, entry.spec) for name, entry in held.items()], incomplete=partial)

    def server_before(self, name: str) -> str:
        """Return the server that a tool's name begins with, as the config or as scripts name it; its prefix if none."""
        prefix = name.partition(".")[0]
        return self.server_of(prefix) or prefix

    def server_of(self, namespace: str) -> str | None:
        """Return the server behind a namespace of scripts."""
        return self._server_of.get(namespace)

    def by_python_name(self, name: str) -> CatalogEntry | None:
        """Return the tool that a script calls by exactly this `namespace.function`."""
        return self._by_python.get(name)

    def find(self, name: str) -> CatalogEntry | None:
        """Return the tool of this exact qualified name, or else of this name in scripts."""
        return self._by_qualified.get(name) or self._by_python.get(name)

    def lookup(self, name: str) -> CatalogEntry:
        """Return a tool as `find` does.

        Raises:
            UnknownToolError: There is none; the error carries the nearest names, or all tools of that name where
                several servers have one.
        """
        tool = self.find(name)
        if tool is None:
            several = self.bearing(name)
            is_ambiguous = len(several) > 1
            raise UnknownToolError(
                name,
                several if is_ambiguous else self.suggest(name),
                is_ambiguous=is_ambiguous,
                is_withdrawn=self.has_withdrawn(name),
            )
        return tool

    def has_withdrawn(self, name: str) -> bool:
        """Tell whether a tool of this name, qualified, of scripts or bare, was listed and is not any more."""
        return name in self._withdrawn

    def bearing(self, name: str) -> tuple[str, ...]:
        """Return the qualified names of the tools that bear a bare name; twenty at most."""
        if "." in name:
            return ()
        found = [tool.qualified_name for tool in self.tools if name in {tool.spec.name, tool.function}]
        return tuple(found[:_CANDIDATES])

    def meant(self, name: str) -> CatalogEntry | None:
        """Return the one tool whose name this is in another program's spelling."""
        qualified = self._spellings.meant(name, self.tools)
        return self._by_qualified[qualified] if qualified is not None else None

    def of_near_server(self, namespace: str, function: str) -> CatalogEntry | None:
        """Return the one tool of a function's name, if its server is called much like one that is not there."""
        if self.server_of(namespace) is not None:
            return None
        bearing = self.bearing(function)
        entry = self.lookup(bearing[0]) if len(bearing) == 1 else None
        return entry if entry is not None and near_name(namespace, [entry.namespace]) else None

    def suggest(self, name: str) -> tuple[str, ...]:
        """Return the qualified names nearest to a name, best first; a bare tool name counts as well."""
        return self._near.suggest(name, self.tools)

    async def searched(self) -> ToolSearch:
        """Return the search over these tools.

        It reads new listings when it is asked for, a fifth of a second for 1,000 tools, in which others have turns.
        What is listed in that time is read too, but not what is listed while that is read: it could go on for ever.
        """
        async with self._reading:
            for _ in range(2):
                for server in tuple(self._unread):
                    await self._read(server)
        return self._tool_search

    async def _read(self, server: str) -> None:
        self._unread.discard(server)
        try:
            await self._tool_search.replace_in_turns(server, [entry.spec for entry in self.of_server(server)])
        except BaseException:  # cancelled
            self._unread.add(server)
            raise

    def entries_of(self, specs: Iterable[ToolSpec]) -> tuple[CatalogEntry, ...]:
        """Return the entries of tools that a search has found, but for those that are not listed any more."""
        found = (self._by_server[spec.server].get(spec.name) for spec in specs)
        return tuple(entry for entry in found if entry is not None)


def _names(entry: CatalogEntry) -> tuple[str, ...]:
    # A server could give a tool the qualified name of another's.
    bare = () if "." in entry.spec.name else (entry.spec.name,)
    return entry.qualified_name, entry.python_name, *bare


def _same(before: dict[str, CatalogEntry], listed: dict[str, ToolSpec], partial: frozenset[str]) -> bool:
    """Tell whether a listing says what is known: announced again, or read again after a reconnect."""
    return list(before) == list(listed) and all(
        entry.spec.digest == listed[name].digest and entry.is_complete == (name not in partial)
        for name, entry in before.items()
    )


def _changes(before: dict[str, CatalogEntry], now: dict[str, CatalogEntry]) -> Iterator[ToolChange]:
    for name, entry in before.items():
        new = now.get(name)
        if not entry.is_complete or (new is not None and not new.is_complete):
            continue  # a line and a definition cannot be compared
        if new is None or new.spec.digest != entry.spec.digest:
            yield ToolChange(entry.spec, new.spec if new is not None else None)
