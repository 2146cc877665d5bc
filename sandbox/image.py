"""The guest image that instances are made of. A worker needs this much of it, and none of what finds and compiles it.

Above: image_loading.py, worker.py. Below: wasmtime.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from wasmtime import component as wasm

    from sandbox.compiled import CompiledFile
    from sandbox.compiled_cache import Use


@dataclass(frozen=True)
class Image:
    """A compiled guest, ready to be instantiated any number of times from any thread.

    Attributes:
        digest: sha256 of the component, in hex.
        component: The compiled code.
        linker: What its imports are bound to.
        file: What it is mapped from.
        use: Keeps that file in the cache for as long as this object lives.
        unkept: Why the compiled code is not kept for other processes; empty if it is in the cache.
    """

    digest: str
    component: wasm.Component
    linker: wasm.Linker
    file: CompiledFile
    use: Use | None = field(default=None, repr=False, compare=False)
    unkept: str = ""

    @property
    def compiled(self) -> Path:
        """Where the compiled code lies."""
        return self.file.path
