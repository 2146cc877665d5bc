"""Which tools were described to one session, and the one way to describe them.

Above: sessions.py, for `get_tool_details`, a search at detail `full` and the resource of descriptions; and
execution.py, for a person who runs a script with all it names. Below: the catalog. Nothing is described by being
listed, found or completed. The state is kept by tool and digest: when a server changes a tool, its description
lapses. What may be called is decided by authorization and never here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from broker.tool_changes import what_changed
from broker.tool_details import ToolDetails, definitions, stub_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from broker.catalog import Catalog, CatalogEntry
    from broker.upstream import Upstream
    from codegen import ToolSpec


class Disclosure:
    """The descriptions of one session."""

    def __init__(
        self,
        catalog: Catalog,
        upstreams: Mapping[str, Upstream],
        on_described: Callable[[ToolSpec], None] | None = None,
    ) -> None:
        """Start with nothing described; `on_described` is told of each definition that is."""
        self._catalog = catalog
        self._upstreams = upstreams
        self._on_described = on_described
        self._described: dict[str, ToolSpec] = {}

    def is_described(self, entry: CatalogEntry) -> bool:
        """Tell whether the present definition of a tool was described to this session."""
        described = self._described.get(entry.qualified_name)
        return described is not None and described.digest == entry.spec.digest

    def changed(self, entry: CatalogEntry) -> str:
        """Return what is different since a tool was described; empty when it was not, or is as described."""
        described = self._described.get(entry.qualified_name)
        return what_changed(described, entry.spec) if described is not None else ""

    @property
    def lapsed(self) -> dict[str, str]:
        """Tools whose description has lapsed since, by qualified name, each with what is different."""
        now = {name: self._catalog.find(name) for name in self._described}
        said = {name: what_changed(self._described[name], entry.spec if entry else None) for name, entry in now.items()}
        return {name: text for name, text in said.items() if text}

    async def deliver(self, names: Sequence[str], *, with_definitions: bool = False) -> ToolDetails:
        """Describe tools by their qualified names or their names in scripts; from then on they are described.

        A name that no tool has is reported in the answer, beside the others.
        """
        await self.settle(names)
        entries: dict[str, CatalogEntry] = {}
        unknown: dict[str, tuple[str, ...]] = {}
        ambiguous: dict[str, tuple[str, ...]] = {}
        unavailable: dict[str, str] = {}
        for name in dict.fromkeys(names):
            entry = self._catalog.find(name)
            if entry is not None:
                entries[entry.qualified_name] = entry
            elif problem := self._problem_behind(name):
                unavailable[name] = problem
            elif several := self._catalog.bearing(name):
                ambiguous[name] = several
            else:
                unknown[name] = self._catalog.suggest(name)
        changed = {name: text for name, entry in entries.items() if (text := self.changed(entry))}
        described = await self.describe(entries.values())
        return ToolDetails(
            await anyio.to_thread.run_sync(stub_text, described),
            tuple(entry.qualified_name for entry in described),
            unknown,
            ambiguous,
            unavailable,
            definitions(described) if with_definitions else {},
            changed,
            tuple(sorted({entry.namespace for entry in described})),
        )

    async def describe(self, entries: Iterable[CatalogEntry]) -> list[CatalogEntry]:
        """Mark tools as described and return them. The caller delivers what is returned, or stands for the reader."""
        described = list(entries)
        self._described |= {entry.qualified_name: entry.spec for entry in described}
        if self._on_described is not None:
            for entry in described:
                self._on_described(entry.spec)
        return described

    async def settle(self, names: Iterable[str]) -> None:
        """Wait for the servers that these names begin with."""
        prefixes = {name.partition(".")[0] for name in names}
        servers = {self._catalog.server_of(prefix) or prefix for prefix in prefixes}
        async with anyio.create_task_group() as tasks:
            for server in servers & self._upstreams.keys():
                tasks.start_soon(self._upstreams[server].needed)

    def _problem_behind(self, name: str) -> str:
        """Return why the server that a name begins with knows no tools now; empty when there is no such server."""
        prefix = name.partition(".")[0]
        upstream = self._upstreams.get(self._catalog.server_of(prefix) or prefix)
        problem = upstream.status.problem if upstream is not None else None
        return f"{upstream.name} is not available: {problem}" if upstream is not None and problem else ""
