"""Which tools were described to one session, and the one way to describe them.

Above: sessions.py, for `get_tool_details`, a search at detail `full` and the resource of descriptions; and
preparation.py, for a person who runs a script with all it names. Below: the catalog. Nothing is described by being
listed, found or completed. The state is kept by tool and digest: when a server changes a tool, its description
lapses. What may be called is decided by authorization and never here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from broker.disclosure.asked_tools import asked_tools, problem_behind
from broker.disclosure.fetch_rate import FetchRate
from broker.disclosure.from_the_start import FirstDefinitions
from broker.disclosure.tool_details import ToolDetails, definitions, stub_text
from broker.errors import UnavailableError, UpstreamError
from broker.logging import logger
from broker.redaction import Redactor, redacted_definition
from broker.texts import description_texts
from broker.tools.spellings import bare_letters
from broker.tools.tool_changes import what_changed
from broker.upstreams.upstreams import all_needed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from broker.disclosure.from_the_start import FromTheStart
    from broker.tools.catalog import Catalog, CatalogEntry
    from broker.upstreams.upstream import Upstream
    from codegen import ToolSpec


class Disclosure:
    """The descriptions of one session.

    Attributes:
        catalog: Whose tools.
        upstreams: The servers that are waited for.
    """

    def __init__(
        self,
        catalog: Catalog,
        upstreams: Mapping[str, Upstream],
        on_described: Callable[[ToolSpec], None] | None = None,
        *,
        fetches_per_minute: int,
        from_the_start: FromTheStart | None = None,
        redact: Redactor,
    ) -> None:
        """Start with nothing described but what is so from the start.

        Args:
            catalog: Whose tools.
            upstreams: The servers that are waited for.
            on_described: Is told of each definition that is described.
            fetches_per_minute: How often descriptions may be fetched.
            from_the_start: Describes all tools from the start while they fit (config `auto`).
            redact: Takes secrets out of definitions that are read from servers.
        """
        self._redact = redact
        self._from_the_start = from_the_start
        self._first = FirstDefinitions() if from_the_start is None else from_the_start.begin()
        self._take_fetch: Callable[[float], float] = FetchRate(fetches_per_minute).take
        self.catalog = catalog
        self.upstreams = upstreams
        self._on_described = on_described
        self._described: dict[str, ToolSpec] = {}

    @property
    def describes_all(self) -> bool:
        """Whether all tools count as described from the start now."""
        return self._from_the_start is not None and self._from_the_start.holds

    def is_described(self, entry: CatalogEntry) -> bool:
        """Tell whether the present definition of a tool was described to this session."""
        told = self._told(entry.qualified_name)
        return told is not None and told.digest == entry.spec.digest

    def described(self) -> list[CatalogEntry]:
        """Return every tool whose present definition was described; quick if these are few."""
        candidates = map(self.catalog.find, self._names_told())
        return [entry for entry in candidates if entry is not None and self.is_described(entry)]

    def undescribed(self) -> list[str]:
        """Return what has to be fetched before a call: servers, where no tool of theirs is described, or else tools."""
        names: list[str] = []
        for server in self.catalog.namespaces:
            tools = self.catalog.of_server(server)
            lacking = [entry.qualified_name for entry in tools if not self.is_described(entry)]
            is_whole = len(lacking) == len(tools)
            names += [server] if lacking and is_whole else lacking
        return names

    def changed(self, entry: CatalogEntry) -> str:
        """Return what has changed in a tool since it was described; empty if nothing, or if it never was."""
        told = self._told(entry.qualified_name)
        return what_changed(told, entry.spec) if told is not None else ""

    @property
    def lapsed(self) -> dict[str, str]:
        """What changed in each tool whose description has lapsed, by qualified name."""
        lapsed = {}
        for name in self._names_told():
            entry, told = self.catalog.find(name), self._told(name)
            if told is not None and (text := what_changed(told, entry.spec if entry else None)):
                lapsed[name] = text
        return lapsed

    async def deliver(
        self,
        names: Sequence[str],
        *,
        with_definitions: bool = False,
        exactly: bool = False,
        is_counted: bool = False,
        first: Callable[[Sequence[CatalogEntry]], int] | None = None,
    ) -> ToolDetails:
        """Describe tools by their qualified names or their names in scripts; from then on they are described.

        A name that no tool has is reported in the answer, beside the others. Names in another program's spelling, and
        those of servers with few tools, are taken for what they mean unless `exactly` these are wanted.
        `is_counted` says that the fetch was taken before. Of the tools in the order of their names, `first` says how
        many are described, on a thread; the others are `left`. If None, all are described.
        """
        wait = 0.0 if is_counted else self.take_fetch()
        if wait > 0:
            return not_fetched(names, wait)
        await self.settle(names)
        asked = asked_tools(names, self.catalog, self.upstreams, exactly=exactly)
        whole = [entry for entry in await self.completed(list(asked.entries.values())) if entry.is_complete]
        silent = asked.entries.keys() - {entry.qualified_name for entry in whole}
        room = len(whole) if first is None else await anyio.to_thread.run_sync(first, whole)
        changed = {entry.qualified_name: text for entry in whole[:room] if (text := self.changed(entry))}
        described = await self.describe(whole[:room])
        return ToolDetails(
            await anyio.to_thread.run_sync(stub_text, described),
            tuple(entry.qualified_name for entry in described),
            asked.unknown,
            asked.ambiguous,
            asked.unavailable
            | {name: description_texts.described_later(asked.entries[name].spec.server) for name in silent},
            definitions(described) if with_definitions else {},
            changed,
            namespaces=tuple(sorted({entry.namespace for entry in described})),
            withdrawn=tuple(filter(self.catalog.has_withdrawn, asked.unknown)),
            left=tuple(entry.qualified_name for entry in whole[room:]),
        )

    def take_fetch(self) -> float:
        """Take one of the session's fetches; return 0, or the seconds to wait if none is left."""
        return self._take_fetch(anyio.current_time())

    def count_fetches_with(self, take: Callable[[float], float]) -> None:
        """Take fetches from now on as `take` says, which is told the time: a rate that sessions share."""
        self._take_fetch = take

    async def describe(self, entries: Iterable[CatalogEntry]) -> list[CatalogEntry]:
        """Mark tools as described and return them; the caller delivers the descriptions, or needs no delivery.

        Tools of which only one line is known, and whose server does not describe them now, are left out.
        """
        described = [entry for entry in await self.completed(list(entries)) if entry.is_complete]
        self._mark(described)
        return described

    def _mark(self, entries: Iterable[CatalogEntry]) -> None:
        for entry in entries:
            self._told(entry.qualified_name)  # grants that held for what was described before are told of it first
            self._note(entry.spec)

    def _note(self, spec: ToolSpec) -> None:
        self._described[spec.qualified_name] = spec
        if self._on_described is not None:
            self._on_described(spec)

    def _told(self, name: str) -> ToolSpec | None:
        """Return the definition of a tool that was described last, if one was."""
        if name not in self._described and name in self._first:
            self._note(self._first[name])
        return self._described.get(name)

    def _names_told(self) -> tuple[str, ...]:
        return (*self._first, *(name for name in tuple(self._described) if name not in self._first))

    async def completed(self, entries: list[CatalogEntry]) -> list[CatalogEntry]:
        """Read the definitions of tools that were listed with a line each, from the servers that do so.

        Nothing is described by it.
        """
        partial: dict[str, list[str]] = {}
        for entry in entries:
            if not entry.is_complete:
                partial.setdefault(entry.spec.server, []).append(entry.spec.name)
        if not partial:
            return entries
        async with anyio.create_task_group() as tasks:
            for server, names in partial.items():
                tasks.start_soon(self._complete, server, names)
        return [self.catalog.find(entry.qualified_name) or entry for entry in entries]

    async def whole(self, name: str) -> CatalogEntry:
        """Return a tool with its full definition, from its server if need be; describes nothing.

        A server that was never connected is waited for, and connected if it is lazy.

        Raises:
            UnknownToolError: No tool has this name.
            UnavailableError: Its server cannot be used and the tool is not known, or it does not describe the tool now.
        """
        server = self.catalog.server_before(name)
        if self.catalog.find(name) is None:
            await self.need({server})
            problem = problem_behind(name, self.catalog, self.upstreams)
            if problem and self.catalog.find(name) is None:
                raise UnavailableError(server, f"{problem}.")
        (entry,) = await self.completed([self.catalog.lookup(name)])
        if not entry.is_complete:
            problem = problem_behind(name, self.catalog, self.upstreams)
            raise UnavailableError(server, f"{problem or description_texts.described_later(server)}.")
        return entry

    async def _complete(self, server: str, names: list[str]) -> None:
        try:
            specs = await self.upstreams[server].read_descriptions(names)
        except UpstreamError as error:
            logger().warning("descriptions failed", server=server, reason=str(error))
            return
        self.catalog.complete(server, [redacted_definition(spec, self._redact) for spec in specs])

    async def settle(self, names: Iterable[str]) -> None:
        """Wait for the servers that these names begin with, in whatever spelling."""
        await self.need({server for name in names for server in self._servers_of(name)})

    async def settle_tool(self, name: str) -> None:
        """Wait for the servers that may have a tool: those that its name begins with, or for a bare one, all.

        Lazy servers are waited for only where the name begins with theirs.
        """
        others = () if "." in name else (one for one, upstream in self.upstreams.items() if not upstream.settings.lazy)
        await self.need({*self._servers_of(name), *others})

    def names_of_tools(self, names: Iterable[str]) -> frozenset[str]:
        """Return those of some names which may be a tool's in another program's spelling, if its server is down too."""
        servers = tuple(filter(None, map(bare_letters, self.upstreams)))
        return frozenset(
            name for name in names if bare_letters(name).startswith(servers) or self.catalog.meant(name) is not None
        )

    def _servers_of(self, name: str) -> Iterable[str]:
        server = self.catalog.server_before(name)
        if server in self.upstreams:
            return (server,)
        letters = bare_letters(name)
        return [server for server in self.upstreams if letters.startswith(bare_letters(server))]

    async def need(self, servers: set[str]) -> None:
        """Wait for servers, which connects those that are asleep; names of none are passed over."""
        await all_needed(self.upstreams[server] for server in servers & self.upstreams.keys())


def not_fetched(names: Iterable[str], seconds: float) -> ToolDetails:
    """Return what a fetch brings that comes before the session may fetch again."""
    problem = description_texts.fetched_too_often(seconds)
    return ToolDetails("", (), {}, unavailable=dict.fromkeys(names, problem), retry_after_seconds=seconds)
