"""Tools by what they mean: vectors of an embedding model, kept by digest.

Above: tool_search.py. Below: an `Embedder`, which the embedding program gives, and NumPy (the extra `embeddings`). A
tool is embedded once for each definition; what was embedded may be kept in a file and survive the process.
"""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING, Any, Protocol

from broker.callbacks import awaited, failing_alone
from broker.errors import SearchError
from broker.logging import logger
from broker.search.documents import DESCRIPTION_CHARACTERS, parameter_names
from broker.search.queries import QUERY_CHARACTERS
from broker.store import Store, Tables
from broker.texts import search_texts
from codegen.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from codegen import ToolSpec

BATCH = 64
_EMBEDDED_CHARACTERS = 1_000
_NUMBER_BYTES = 4
_MAX_SQUARED = 1.01
_FUSION_CONSTANT = 10.0
MEANING_WEIGHT = 0.5
"""What the ranking of a small model counts against that by words, found on half of the benchmark's queries."""

_VECTORS = (
    "CREATE TABLE vectors (model TEXT NOT NULL, digest TEXT NOT NULL, vector BLOB NOT NULL,"
    " PRIMARY KEY (model, digest)) STRICT, WITHOUT ROWID"
)
_TABLES = Tables("vectors", ((_VECTORS,),))


class Embedder(Protocol):
    """Turns texts into vectors of one length. Near meanings have a large cosine.

    Attributes:
        model: Names the model and its version; vectors of different models are never mixed.
    """

    model: str

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return a vector for each text, in order."""
        ...


def check_embedder(given: object) -> None:
    """Refuse what is no embedder: each search would fail.

    Raises:
        TypeError: The text says what one has.
    """
    if inspect.isclass(given) or not callable(getattr(given, "embed", None)):
        kind = f"the class {given.__name__}" if inspect.isclass(given) else f"a {type(given).__name__}"
        raise TypeError(f"an embedder is an object with `model` and `async def embed(self, texts)`, not {kind}")
    if not isinstance(getattr(given, "model", None), str):
        raise TypeError(f"the embedder, a {type(given).__name__}, names no model: give it a text as `model`")


class VectorStore:
    """Vectors by model and digest."""

    def __init__(self, store: Store | None = None) -> None:
        """Keep them in a store; in memory, for this process, when None."""
        self._store = store or Store()
        self._store.prepare(_TABLES)

    def get(self, model: str, digest: str) -> bytes | None:
        """Return the vector as little-endian 32-bit floats; None when there is none."""
        found = self._store.execute("SELECT vector FROM vectors WHERE model = ? AND digest = ?", (model, digest))
        return found[0][0] if found else None

    def put(self, model: str, vectors: Mapping[str, bytes]) -> None:
        """Keep vectors by digest."""
        with self._store.transaction():
            for digest, vector in vectors.items():
                self._store.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", (model, digest, vector))


class VectorIndex:
    """Ranks tools by the cosine of their vectors with that of the query."""

    def __init__(self, embedder: Embedder, store: VectorStore | None = None) -> None:
        """Start with no tool.

        Raises:
            SearchError: NumPy is not installed.
        """
        self._numpy = _numpy()
        self._embedder = embedder
        self._store = store or VectorStore()
        self._rows: Any = None
        self._specs: tuple[ToolSpec, ...] = ()

    async def rank(
        self, query: str, specs: Sequence[ToolSpec], *, admits: Callable[[ToolSpec], bool] | None = None
    ) -> list[ToolSpec]:
        """Return all these tools, the nearest first; embeds those that were not embedded before.

        Raises:
            SearchError: The embedder failed, or another model under the same name has embedded these tools.
        """
        if not specs:
            return []
        (vector,) = await self._embedded([query[:QUERY_CHARACTERS]])
        await self._hold(tuple(specs), len(vector))
        order = self._numpy.argsort(-(self._rows @ vector), kind="stable")
        ranked = (self._specs[number] for number in order)
        return [spec for spec in ranked if admits is None or admits(spec)]

    async def _hold(self, specs: tuple[ToolSpec, ...], length: int) -> None:
        if self._rows is not None and _same(specs, self._specs) and self._rows.shape[1] == length:
            return
        model = self._embedder.model
        kept = {spec.digest: row for spec in specs if (row := self._kept(model, spec.digest)) is not None}
        held = {digest: row for digest, row in kept.items() if len(row) == length}
        if kept and not held:  # to embed all anew would have two models of one name do so by turns
            raise SearchError(search_texts.different_lengths(model))
        missing = [spec for spec in specs if spec.digest not in held]
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            rows = await self._embedded([embedded_text(spec) for spec in batch])
            if rows.shape[1] != length:
                raise SearchError(search_texts.different_lengths(model))
            embedded = {spec.digest: row for spec, row in zip(batch, rows, strict=True)}
            self._store.put(model, {digest: row.tobytes() for digest, row in embedded.items()})
            held.update(embedded)
        self._rows = self._numpy.stack([held[spec.digest] for spec in specs])
        self._specs = specs

    def _kept(self, model: str, digest: str) -> Any:
        """Return a vector of the store; None if there is none, or what is there cannot be one that `_unit` has made."""
        kept = self._store.get(model, digest)
        if not kept or len(kept) % _NUMBER_BYTES:
            return None
        row = self._numpy.frombuffer(kept, dtype="<f4")
        with self._numpy.errstate(all="ignore"):
            return row if row @ row <= _MAX_SQUARED else None  # not so of what is not finite

    async def _embedded(self, texts: list[str]) -> Any:
        try:
            with failing_alone():
                embedded = await awaited("embed", self._embedder.embed(texts))
            rows = self._unit(embedded)
        except Exception as error:  # noqa: BLE001 - the embedding program's code
            logger().warning("embedder failed", error=type(error).__name__, said=one_line(str(error), 200))
            raise SearchError(search_texts.EMBEDDER_FAILED) from None
        if len(rows) != len(texts):
            raise SearchError(search_texts.EMBEDDER_FAILED)
        return rows

    def _unit(self, vectors: Sequence[Sequence[float]]) -> Any:
        """Return the vectors with a length of 1; one of zeros stays, since a text may have no word that a model knows.

        Raises:
            ValueError: One is not finite: it would be kept, and no later search would be right.
        """
        numpy = self._numpy
        with numpy.errstate(all="ignore"):
            rows = numpy.asarray(vectors, dtype="<f8")
            lengths = numpy.linalg.norm(rows, axis=1, keepdims=True)
        if not numpy.isfinite(lengths).all():
            raise ValueError("not finite")
        return (rows / numpy.maximum(lengths, 1e-12)).astype("<f4")


def embedded_text(spec: ToolSpec) -> str:
    """Return the text that stands for a tool before the model."""
    name = spec.name.replace("_", " ").replace("-", " ")
    parameters = ", ".join(parameter_names(spec.input_schema)[:12])
    text = f"{spec.title or name}. {name}. {spec.description[:DESCRIPTION_CHARACTERS]}"
    return f"{text[:_EMBEDDED_CHARACTERS]} ({parameters})"


def fuse(rankings: Iterable[tuple[Sequence[ToolSpec], float]]) -> list[ToolSpec]:
    """Return the tools of several rankings, each with its weight, by reciprocal rank fusion, best first."""
    scores: dict[str, float] = {}
    specs: dict[str, ToolSpec] = {}
    for ranking, weight in rankings:
        for rank, spec in enumerate(ranking, start=1):
            specs[spec.digest] = spec
            scores[spec.digest] = scores.get(spec.digest, 0.0) + weight / (_FUSION_CONSTANT + rank)
    return [specs[digest] for digest in sorted(specs, key=lambda digest: -scores[digest])]


def _same(one: tuple[ToolSpec, ...], other: tuple[ToolSpec, ...]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def _numpy() -> Any:
    try:
        return importlib.import_module("numpy")  # an extra, and slow to import
    except ImportError:
        raise SearchError(search_texts.NO_NUMPY) from None
