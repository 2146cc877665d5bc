"""Resolves the names in a fetch of descriptions to tools, or to the reason why there is none. Never waits.

Above: disclosure.py, which has waited for the servers. Below: the catalog, and how the servers are doing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker.calls.host_paths import HostPaths
from broker.texts import description_texts
from broker.texts.call_texts import of_a_server, server_disabled
from broker.tools.near_names import MAX_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker.tools.catalog import Catalog, CatalogEntry
    from broker.upstreams.upstream import Upstream


MAX_OF_A_SERVER = 20
"""How many tools are described where their server is named: as many as a search at detail `full` describes."""


@dataclass(frozen=True, slots=True)
class AskedTools:
    """The tools that were asked for by qualified name; `unknown` and the others are as in `ToolDetails`."""

    entries: dict[str, CatalogEntry] = field(default_factory=dict)
    unknown: dict[str, tuple[str, ...]] = field(default_factory=dict)
    ambiguous: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unavailable: dict[str, str] = field(default_factory=dict)


def asked_tools(
    names: Iterable[str], catalog: Catalog, upstreams: Mapping[str, Upstream], *, exactly: bool
) -> AskedTools:
    """Return what names mean.

    Qualified ones, those of scripts, and bare ones that one tool alone has; unless `exactly`, also these as other
    programs spell them, and a server whose tools are few enough to be read at once.
    """
    asked = AskedTools()
    for name in dict.fromkeys(names):
        entry = catalog.find(name)
        if entry is not None:
            asked.entries[entry.qualified_name] = entry
        elif problem := problem_behind(name, catalog, upstreams):
            asked.unavailable[name] = problem
        elif bearing := catalog.bearing(name):
            if len(bearing) == 1:
                asked.entries[bearing[0]] = catalog.lookup(bearing[0])
            else:
                asked.ambiguous[name] = bearing
        elif not exactly and (meant := catalog.meant(name)):
            asked.entries[meant.qualified_name] = meant
        elif server := _server_alone(name, catalog, upstreams):
            tools = catalog.of_server(server)
            if not exactly and 0 < len(tools) <= MAX_OF_A_SERVER:
                asked.entries.update({entry.qualified_name: entry for entry in tools})
            else:
                asked.unavailable[name] = of_a_server(server)
        else:
            asked.unknown[name] = catalog.suggest(name) if len(asked.unknown) < MAX_NAMES else ()
    return asked


def problem_behind(name: str, catalog: Catalog, upstreams: Mapping[str, Upstream]) -> str:
    """Return why the server that a name begins with cannot be used; empty when it can, or there is none."""
    server = catalog.server_before(name)
    if server in catalog.disabled:
        return server_disabled(server)
    upstream = upstreams.get(server)
    problem = upstream.status.problem if upstream is not None else None
    if upstream is None or not problem:
        return ""
    return description_texts.server_down(upstream.name, HostPaths().hidden(problem))


def _server_alone(name: str, catalog: Catalog, upstreams: Mapping[str, Upstream]) -> str | None:
    """Return the server that is named where a tool of it should be, as `git` or `git.*`."""
    prefix = name.removesuffix(".*")
    return prefix if prefix in upstreams else catalog.server_of(prefix)
