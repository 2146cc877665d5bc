"""What sessions are described from their start, where the config says `auto`.

Above: the shelf makes one for a broker; each session holds what it was described. Below: the catalog. A tool counts as
described by the first definition that it had in a session, while all fit; a later one has to be fetched like any other.
So has a tool that its server lists with a line, whoever has read its definition: it is neither described nor counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from codegen import ToolSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.tools.catalog import Catalog, CatalogEntry

MAX_TOOLS = 100_000
"""How many tools one session is described so: a server may list others again and again."""


class FirstDefinitions(dict[str, ToolSpec]):
    """The definitions by qualified name that a session was described from its start."""


class FromTheStart:
    """Describes all tools to the sessions of a broker while they fit."""

    def __init__(
        self, catalog: Catalog, fits: Callable[[Sequence[CatalogEntry]], bool], *, most_tools: int = MAX_TOOLS
    ) -> None:
        """Watch a catalog; `fits` tells whether the definitions of some tools fit, and is asked once for a change."""
        self._most_tools = most_tools
        self._catalog = catalog
        self._fits = fits
        self._judged_at, self._did_fit = -1, False
        # Sessions that began between the same two changes have the same, and share it.
        self._held: WeakValueDictionary[int, FirstDefinitions] = WeakValueDictionary()
        catalog.on_change = self._note

    @property
    def holds(self) -> bool:
        """Whether all tools that are listed in full fit now, so that new ones are described as well."""
        if self._judged_at != self._catalog.revision:
            self._judged_at = self._catalog.revision
            self._did_fit = self._fits([entry for entry in self._catalog.tools if not entry.is_listed_by_line])
        return self._did_fit

    def begin(self) -> FirstDefinitions:
        """Return what a session that starts now is described; tools that come later are added while they fit."""
        revision = self._catalog.revision
        first = self._held.get(revision)
        if first is None:
            first = self._held[revision] = FirstDefinitions()
            self._add(first)
        return first

    def _note(self) -> None:
        for first in list(self._held.values()):
            self._add(first)

    def _add(self, first: FirstDefinitions) -> None:
        for entry in self._catalog.tools if self.holds else ():
            if not entry.is_listed_by_line and len(first) < self._most_tools:
                first.setdefault(entry.qualified_name, entry.spec)
