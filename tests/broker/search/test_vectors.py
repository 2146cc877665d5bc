from __future__ import annotations

import struct
from zlib import crc32

import pytest

from broker.errors import SearchError
from broker.search import Mode, SearchRequest, ToolSearch, VectorStore
from broker.store import Store
from tests.broker.search.tools import TOOLS, tool

pytest.importorskip("numpy", reason="a search by meaning needs the extra `embeddings`")
pytestmark = pytest.mark.anyio

THEMES = (("rain", "weather", "forecast"), ("git", "commit", "branch", "version control"), ("sql", "database", "table"))


class Themes:
    """Embeds a text by how often it touches each theme."""

    def __init__(self, model: str = "themes-1", extra: int = 0) -> None:
        self.model = model
        self.texts: list[str] = []
        self._extra = extra

    async def embed(self, texts):
        self.texts += texts
        return [[*(sum(map(text.lower().count, theme)) for theme in THEMES), *([0.1] * self._extra)] for text in texts]


def loaded(embedder: Themes, vectors: VectorStore | None = None) -> ToolSearch:
    search = ToolSearch(embedder=embedder, vectors=vectors)
    for server, specs in TOOLS.items():
        search.replace(server, specs)
    return search


async def found(search: ToolSearch, query: str, mode: Mode = Mode.AUTO) -> list[str]:
    return [spec.name for spec in (await search.search(SearchRequest(query=query, mode=mode))).tools]


async def test_a_meaning_is_found_without_a_common_word():
    assert (await found(loaded(Themes()), "rain", Mode.EMBEDDING))[0] == "get_forecast"
    assert await found(loaded(Themes()), "rain", Mode.KEYWORD) == []
    assert (await found(loaded(Themes()), "rain"))[0] == "get_forecast"


async def test_hybrid_puts_first_what_both_find():
    assert (await found(loaded(Themes()), "sql database", Mode.HYBRID))[0] == "sql_db_delete"


@pytest.mark.parametrize("mode", [Mode.KEYWORD, Mode.HYBRID, Mode.EMBEDDING])
async def test_page_by_page_each_tool_comes_once(mode):
    search = ToolSearch(embedder=Themes(extra=1))
    words = {f"git_tool_{number}": crc32(b"%d" % number) for number in range(600)}
    for _ in range(2):  # a server may list the same again
        search.replace("git", [tool("git", name, "git " * (n % 7 + 1) + "sql " * (n % 5)) for name, n in words.items()])
    cursor: str | None = None
    seen: list[str] = []
    while cursor is not None or not seen:
        page = await search.search(SearchRequest(query="git", mode=mode, limit=50, cursor=cursor))
        seen += [spec.name for spec in page.tools]
        cursor = page.next_cursor
    assert sorted(seen) == sorted(words)


async def test_each_definition_is_embedded_once():
    embedder, vectors = Themes(), VectorStore()
    search = loaded(embedder, vectors)
    await found(search, "rain")
    assert len(embedder.texts) == len(search) + 1
    await found(search, "snow")
    search.replace("git", [*TOOLS["git"], tool("git", "git_push")])
    embedder.texts.clear()
    await found(search, "rain")
    assert [text.partition(".")[0] for text in embedder.texts] == ["rain", "git push"]
    again = Themes()
    await found(loaded(again, vectors), "rain")
    assert again.texts == ["rain"]


async def test_vectors_are_kept_in_a_file_by_model(tmp_path):
    for model, embedded in (("one", 11), ("one", 1), ("two", 11)):
        embedder = Themes(model)
        with Store(tmp_path / "vectors.sqlite") as store:
            await found(loaded(embedder, VectorStore(store)), "rain")
        assert len(embedder.texts) == embedded


class Broken(Themes):
    async def embed(self, texts):
        if len(texts) == 1:
            raise RuntimeError("no route to model")
        return await super().embed(texts)


class Fewer(Themes):
    async def embed(self, texts):
        return (await super().embed(texts))[:-1]


@pytest.mark.parametrize("embedder", [Broken(), Fewer()], ids=["raises", "gives too few"])
@pytest.mark.parametrize("mode", [Mode.AUTO, Mode.HYBRID, Mode.EMBEDDING])
async def test_an_embedder_that_fails_leaves_the_search_by_words(embedder, mode):
    search = loaded(embedder)
    with pytest.raises(SearchError, match=r"The embedder failed.*Search with mode=keyword"):
        await found(search, "sql", mode)
    assert "sql_db_delete" in await found(search, "sql", Mode.KEYWORD)


class Numbers(Themes):
    """Embeds a tool, or else the query, as one number again and again, until it has recovered."""

    def __init__(self, number: float, *, queries_only: bool) -> None:
        super().__init__()
        self.has_recovered = False
        self._number = number
        self._queries_only = queries_only

    async def embed(self, texts):
        rows = await super().embed(texts)
        if self.has_recovered or self._queries_only != (len(texts) == 1):
            return rows
        return [[self._number] * len(THEMES), *rows[1:]]


@pytest.mark.parametrize("queries_only", [False, True])
@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf"), 1e200, None], ids=str)
async def test_vectors_that_are_not_finite_are_a_failed_embedder_and_are_not_kept(number, queries_only):
    embedder = Numbers(number, queries_only=queries_only)
    search = loaded(embedder)
    with pytest.raises(SearchError, match=r"The embedder failed.*Search with mode=keyword"):
        await found(search, "rain", Mode.EMBEDDING)
    embedder.has_recovered = True
    assert await found(search, "rain", Mode.EMBEDDING) == await found(loaded(Themes()), "rain", Mode.EMBEDDING)


async def test_large_vectors_are_as_good_as_small_ones():
    class Large(Themes):
        async def embed(self, texts):
            return [[1e100 * value for value in row] for row in await super().embed(texts)]

    assert await found(loaded(Large()), "rain", Mode.EMBEDDING) == await found(loaded(Themes()), "rain", Mode.EMBEDDING)


async def test_vectors_of_another_length_under_the_same_name_are_refused():
    vectors = VectorStore()
    await found(loaded(Themes(), vectors), "rain")
    with pytest.raises(SearchError, match="Give each model a name of its own"):
        await found(loaded(Themes(extra=1), vectors), "rain")


async def test_a_model_under_the_name_of_another_leaves_its_vectors_alone():
    vectors, more = VectorStore(), tool("git", "git_push")
    await found(loaded(Themes(), vectors), "rain")
    other = loaded(Themes(extra=1), vectors)
    other.replace("git", [*TOOLS["git"], more])
    with pytest.raises(SearchError, match="Give each model a name of its own"):
        await found(other, "rain")
    again = Themes()
    search = loaded(again, vectors)
    search.replace("git", [*TOOLS["git"], more])
    await found(search, "rain")
    assert [text.partition(".")[0] for text in again.texts] == ["rain", "git push"]


@pytest.mark.parametrize(
    "kept",
    [
        [float("nan"), 0, 0],
        [float("inf"), 0, 0],
        [3e38, 3e38, 0],
        [1.0, 0, 0, 0],
        [1.0, 0],
        b"",
        b"1234567",
    ],
    ids=str,
)
async def test_a_vector_of_the_store_that_cannot_be_used_is_made_anew(kept):
    vectors, spoilt = VectorStore(), TOOLS["git"][0]
    expected = await found(loaded(Themes(), vectors), "rain", Mode.EMBEDDING)
    whole = vectors.get("themes-1", spoilt.digest)
    assert whole is not None
    vectors.put("themes-1", {spoilt.digest: kept if isinstance(kept, bytes) else struct.pack(f"<{len(kept)}f", *kept)})
    embedder = Themes()
    assert await found(loaded(embedder, vectors), "rain", Mode.EMBEDDING) == expected
    assert len(embedder.texts) == 2
    assert vectors.get("themes-1", spoilt.digest) == whole
