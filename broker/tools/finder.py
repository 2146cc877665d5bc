"""`search_tools`: a search of the catalog that knows of servers which are down, asleep or still connecting.

Above: sessions.py. Below: search_texts.py, the catalog's search, and the owner tasks of the servers. A lazy server
that a search names, by itself or by a category that may have tools of it, or whose line says something of the query, is
connected first; the others are named. Nothing is described by a search: a page at detail `full` says which tools it was
asked for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import anyio

from broker.disclosure.asked_tools import problem_behind
from broker.errors import UnavailableError
from broker.search.pages import Filters, Mode
from broker.search.queries import QUERY_CHARACTERS
from broker.search.stop_words import stop_stems
from broker.search.words import stems
from broker.texts import search_texts
from broker.texts.call_texts import server_disabled
from broker.tools.near_names import unknown_name
from broker.upstreams.upstreams import all_needed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from broker.search import SearchPage, SearchRequest
    from broker.tools.catalog import Catalog
    from broker.tools.categories import Categories
    from broker.upstreams.server_status import ServerStatus
    from broker.upstreams.upstream import Upstream

WAKE_SECONDS = 15.0
"""How long a search waits for servers that it has to connect."""

START_SECONDS = 3.0
"""How long a search waits for servers that are being started: an agent often searches at once."""

_LEAST = 2


class Finder:
    """Searches the tools of all servers."""

    def __init__(
        self, catalog: Catalog, upstreams: Mapping[str, Upstream], categories: Categories, *, mode: Mode
    ) -> None:
        """Search in this catalog; `mode` is meant where a request says `auto`."""
        self._catalog = catalog
        self._upstreams = upstreams
        self._categories = categories
        self._mode = mode

    async def search(self, request: SearchRequest) -> SearchPage:
        """Return a page of tools.

        Raises:
            SearchError: The search cannot be done as asked; the text says what to change.
        """
        request.offset()  # a wrong cursor or limit wakes nobody
        sent = request
        servers, unknown = self._servers(sent)
        request = sent.meaning(servers, self._mode if sent.mode is Mode.AUTO else sent.mode)
        asked = self._upstreams.keys() if servers is None else servers
        woken = await self._wake(asked, request)
        await self._let_start(asked)
        page = await (await self._catalog.searched()).search(request)
        page = replace(page, tools=tuple(entry.spec for entry in self._catalog.entries_of(page.tools)))
        about_category = self._about_category(request)
        disabled = (f"{server_disabled(name)}." for name in servers or () if name in self._catalog.disabled)
        of_servers = (*unknown, *disabled, *self._about_woken(woken, page), *self._about_servers(asked))
        notes = (*page.notes, *of_servers, *about_category, *self._overview(request))
        # A cursor belongs to the search as it was sent, which is repeated with it.
        following = sent.cursor_after(sent.limit) if page.next_cursor is not None else None
        return replace(page, next_cursor=following, notes=notes, unknown=(*unknown, *about_category))

    async def look_into(self, category: str) -> None:
        """Connect the lazy servers that may have tools of a category and were never connected.

        Raises:
            UnavailableError: No tool of the category is known, and a server that may have some cannot be used now.
        """
        await all_needed([one for one in self._unseen_in(category) if one.settings.lazy], WAKE_SECONDS)
        if category not in self._categories.members() and (unseen := self._unseen_in(category)):
            name = unseen[0].name
            problem = problem_behind(name, self._catalog, self._upstreams)
            raise UnavailableError(name, f"{problem}." if problem else search_texts.still_connecting([name]))

    def _servers(self, request: SearchRequest) -> tuple[tuple[str, ...] | None, list[str]]:
        """Return the servers that are meant, which may be named as scripts name them, and what is said of others."""
        if request.filters.servers is None:
            return None, []
        known = self._catalog.namespaces
        asked = [name if name in known else self._catalog.server_of(name) or name for name in request.filters.servers]
        notes = [unknown_name("server", name, known) for name in asked if name not in known]
        return tuple(name for name in asked if name in known), notes

    async def _wake(self, servers: Iterable[str], request: SearchRequest) -> list[Upstream]:
        """Connect the servers that the search is about; return those that no search has seen before."""
        named = request.filters.servers is not None
        chosen = [upstream for name in servers if (upstream := self._upstreams.get(name))]
        if not named and request.filters.category is not None:
            chosen = [upstream for upstream in self._unseen_in(request.filters.category) if upstream.settings.lazy]
        elif not named:
            wanted = set(stems(request.query[:QUERY_CHARACTERS])) - stop_stems()
            chosen = [upstream for upstream in chosen if _never_seen(upstream.status, wanted)]
        unseen = [upstream for upstream in chosen if not upstream.status.tool_count]
        await all_needed(chosen, WAKE_SECONDS)
        return unseen

    def _unseen_in(self, category: str) -> list[Upstream]:
        """Return the servers whose tools are not known and may be in a category."""
        return [
            upstream
            for name, upstream in self._upstreams.items()
            if self._categories.may_have(name, category) and _is_unseen(upstream.status)
        ]

    async def _let_start(self, servers: Iterable[str]) -> None:
        with anyio.move_on_after(START_SECONDS):
            for name in servers:
                upstream = self._upstreams.get(name)
                if upstream is not None and _is_starting(upstream.status):
                    await upstream.settled()

    @staticmethod
    def _about_woken(woken: Iterable[Upstream], page: SearchPage) -> Iterator[str]:
        """Tell of servers that a search has connected for nothing: their tools have other words than it."""
        found = {spec.server for spec in page.tools}
        for status in (upstream.status for upstream in woken):
            if status.tool_count and status.name not in found:
                yield search_texts.woken_for_nothing(status)

    def _about_servers(self, asked: Iterable[str]) -> Iterator[str]:
        statuses = [self._upstreams[name].status for name in asked if name in self._upstreams]
        down = [status for status in statuses if status.problem]
        for status in down[: search_texts.NAMED]:
            yield search_texts.down(status, is_alone=len(statuses) == 1)
        if len(down) > search_texts.NAMED:
            yield search_texts.more_down([status.name for status in down[search_texts.NAMED :]])
        slow = [status.name for status in statuses if status.state == "connecting" and not status.problem]
        if slow:
            yield search_texts.still_connecting(slow)
        asleep = [status for status in statuses if status.is_unseen]
        if asleep:
            yield search_texts.asleep(asleep)

    def _about_category(self, request: SearchRequest) -> list[str]:
        category = request.filters.category
        if category is None or category in self._categories.members() or self._unseen_in(category):
            return []
        return [self._categories.unknown(category)]

    def _overview(self, request: SearchRequest) -> Iterator[str]:
        """Name the categories below the first page of a listing that asks for nothing in particular."""
        if request.query.strip() or request.filters != Filters() or request.cursor is not None:
            return
        members, asleep = self._categories.members(), self._categories.asleep()
        if len({*members, *asleep}) >= _LEAST:
            yield search_texts.categories(members, asleep)


def _is_starting(status: ServerStatus) -> bool:
    return status.state == "connecting" and not status.problem and not status.tool_count


def _is_unseen(status: ServerStatus) -> bool:
    return status.state in {"asleep", "connecting", "down"} and not status.tool_count


def _never_seen(status: ServerStatus, wanted: set[str]) -> bool:
    """Tell whether a lazy server that was never connected may have tools for these words."""
    said = {*stems(status.name), *stems(status.about or "")}
    return status.is_lazy and not status.tool_count and not wanted.isdisjoint(said)
