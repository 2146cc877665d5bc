"""Finds tools: by words, expression or meaning, filtered, a page at a time.

Above: the catalog, `search_tools` and the command line. Below: the indexes of this package. What `full` detail
discloses is not decided here: a page says which tools it was asked for (`SearchPage.to_describe`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, assert_never

import anyio

from broker.callbacks import awaited, failing_alone
from broker.errors import SearchError
from broker.logging import logger
from broker.search.keyword_index import KeywordIndex
from broker.search.pages import Mode, SearchPage, SearchRequest
from broker.search.patterns import matching
from broker.search.vectors import MEANING_WEIGHT, VectorIndex, fuse
from broker.texts import search_texts
from codegen.plain_text import one_line
from sandbox.pace import PACE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence

    from broker.search.vectors import Embedder, VectorStore
    from codegen import ToolSpec

Ranker: TypeAlias = "Callable[[str, Sequence[ToolSpec]], Awaitable[Sequence[str]]]"
"""Gets the query and the candidates, best first; returns qualified names in its own order."""

RANKED = 50
RANKER_SECONDS = 10.0
"""How long a search waits for its ranker."""

_FUSED = 200


class ToolSearch:
    """A search over the tools of many servers. Use from one thread."""

    def __init__(
        self,
        *,
        embedder: Embedder | None = None,
        vectors: VectorStore | None = None,
        ranker: Ranker | None = None,
        categories: Callable[[ToolSpec], Collection[str]] | None = None,
        listed: Callable[[], Iterable[ToolSpec]] | None = None,
    ) -> None:
        """Start with no tool.

        Args:
            embedder: Makes searches by meaning possible, and hybrid the default.
            vectors: Where vectors are kept; in memory when None.
            ranker: A subagent or other judge that reorders the first fifty candidates of a search by words, within ten
                seconds. What it leaves out follows; a search without it is made when it fails.
            categories: The categories of a tool; its server's name when None.
            listed: All tools in the order in which an empty query lists them; by name when None.

        Raises:
            SearchError: There is an embedder, but NumPy is not installed.
        """
        self._keywords = KeywordIndex()
        self._by_server: dict[str, tuple[ToolSpec, ...]] = {}
        self._specs: tuple[ToolSpec, ...] | None = ()
        self._vectors = VectorIndex(embedder, vectors) if embedder is not None else None
        self._ranker = ranker
        self._listed = listed or self._by_name
        self._categories = categories or (lambda spec: (spec.server,))

    def __len__(self) -> int:
        """Count the tools."""
        return len(self._keywords)

    def replace(self, server: str, specs: Iterable[ToolSpec]) -> None:
        """Make these the tools of a server; costs only what changed."""
        for _ in self._replacing(server, specs):
            pass

    async def replace_in_turns(self, server: str, specs: Iterable[ToolSpec]) -> None:
        """Do the same, and give others a turn of the event loop every millisecond; one server at a time.

        If it is cancelled, it has to be done again.
        """
        for _ in self._replacing(server, specs):
            await PACE.keep()

    def _replacing(self, server: str, specs: Iterable[ToolSpec]) -> Iterator[None]:
        self._by_server[server] = tuple(dict.fromkeys(specs))
        self._specs = None
        return self._keywords.replacing(server, self._by_server[server])

    async def search(self, request: SearchRequest) -> SearchPage:
        """Return a page of tools.

        When tools change between two pages, one may be missing or appear twice.

        Raises:
            SearchError: The cursor, limit, filters or expression cannot be used, or there is no embedder for the
                mode; the text says what to do.
        """
        start = request.offset()
        end = start + request.limit
        found, notes = await self._found(request, end + 1)
        following = request.cursor_after(request.limit) if len(found) > end else None
        excluded_by = () if found else await self._excluding(request)
        return SearchPage(tuple(found[start:end]), request.detail, following, notes, excluded_by=excluded_by)

    async def _excluding(self, request: SearchRequest) -> tuple[str, ...]:
        given = request.filters.given
        for names in (*((name,) for name in given), *([given] if len(given) > 1 else [])):
            if await self._candidates(replace(request, filters=request.filters.without(names)), 1):
                return names
        return ()

    async def _found(self, request: SearchRequest, count: int) -> tuple[list[ToolSpec], tuple[str, ...]]:
        found = await self._candidates(request, count)
        is_ranked = request.query.strip() and request.mode is not Mode.REGEX
        return await self._judged(request.query, found) if is_ranked else (found, ())

    async def _candidates(self, request: SearchRequest, count: int) -> list[ToolSpec]:
        admits = self._admits(request)
        if not request.query.strip():
            return list(filter(admits, self._listed()))
        match request.mode:
            case Mode.REGEX:
                return matching(request.query, filter(admits, self._all()))
            case Mode.EMBEDDING:
                return await self._meaning(request.query, admits)
            case Mode.AUTO if self._vectors is None:
                return self._keyword(request.query, admits, count)
            case Mode.KEYWORD:
                return self._keyword(request.query, admits, count)
            case Mode.AUTO | Mode.HYBRID:
                return await self._hybrid(request.query, admits, count)
            case _:
                assert_never(request.mode)

    def _keyword(self, query: str, admits: Callable[[ToolSpec], bool] | None, count: int) -> list[ToolSpec]:
        ranked = [hit.spec for hit in self._keywords.rank(query, admits=admits, count=max(count, RANKED))]
        exact = query.strip().lower()
        named = [spec for spec in ranked if exact in {spec.name.lower(), spec.qualified_name.lower()}]
        return [*named, *(spec for spec in ranked if spec not in named)] if named else ranked

    async def _meaning(self, query: str, admits: Callable[[ToolSpec], bool] | None) -> list[ToolSpec]:
        if self._vectors is None:
            raise SearchError(search_texts.NO_EMBEDDER)
        return await self._vectors.rank(query, self._all(), admits=admits)

    async def _hybrid(self, query: str, admits: Callable[[ToolSpec], bool] | None, count: int) -> list[ToolSpec]:
        near = await self._meaning(query, admits)
        words = self._keyword(query, admits, max(count, _FUSED))
        # Of the same depth for each page, and the others below, so that no page moves what another one has.
        found = fuse([(words[:_FUSED], 1.0), (near[:_FUSED], MEANING_WEIGHT)])
        return found if len(found) >= count else list(dict.fromkeys([*found, *words[_FUSED:], *near[_FUSED:]]))

    async def _judged(self, query: str, found: list[ToolSpec]) -> tuple[list[ToolSpec], tuple[str, ...]]:
        """Let the ranker reorder the first candidates; what it leaves out follows, what it invents is dropped."""
        if self._ranker is None or not found:
            return found, ()
        by_name = {spec.qualified_name: spec for spec in found[:RANKED]}
        try:
            with failing_alone(), anyio.fail_after(RANKER_SECONDS):
                names = await awaited("ranker", self._ranker(query, found[:RANKED]))
            chosen = [by_name[name] for name in dict.fromkeys(names) if name in by_name]
        except Exception as error:  # noqa: BLE001 - the embedding program's code; a search without it is an answer
            logger().warning("ranker failed", error=type(error).__name__, said=one_line(str(error), 200))
            return found, (search_texts.NOT_RANKED,)
        picked = {spec.qualified_name for spec in chosen}
        return [*chosen, *(spec for spec in found if spec.qualified_name not in picked)], ()

    def _admits(self, request: SearchRequest) -> Callable[[ToolSpec], bool] | None:
        filters = request.filters
        if filters == type(filters)():
            return None
        return lambda spec: filters.admit(spec, self._categories(spec) if filters.category is not None else ())

    def _by_name(self) -> list[ToolSpec]:
        return sorted(self._all(), key=lambda spec: spec.qualified_name)

    def _all(self) -> tuple[ToolSpec, ...]:
        if self._specs is None:
            self._specs = tuple(spec for specs in self._by_server.values() for spec in specs)
        return self._specs
