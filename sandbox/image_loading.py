"""The guest image: found in the package, compiled once for this machine, kept in the user's cache.

The compiled file lies where only this user can write, under a name that depends on everything that it was made from;
`compiled` tells whether it is still that file. Loading an image that was compiled before takes a few milliseconds.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
from pathlib import Path
from typing import TYPE_CHECKING

import wasmtime
from wasmtime import component as wasm

from sandbox.compiled import CompiledImage, map_apart
from sandbox.compiled_cache import WASMTIME, Use, cache_folder, proofs_folder, prune
from sandbox.engine import CONFIGURATION, engine
from sandbox.errors import ImageError
from sandbox.host_functions import make_linker
from sandbox.image import Image

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from sandbox.compiled import CompiledFile

COMPONENT = Path(__file__).with_name("guest.wasm")
REBUILD = "reinstall the package (in a checkout: `uv sync --reinstall-package codemode-broker`)"


def load_image(
    component: Path = COMPONENT,
    *,
    cache: Path | None = None,
    proofs: Path | None = None,
    compiling: Callable[[str], AbstractContextManager[object]] = contextlib.nullcontext,
) -> Image:
    """Load the guest image; compile it first where that has not been done yet (5 to 15 s, once a machine).

    Args:
        component: The `.wasm` file; a `.json` file beside it holds its digest.
        cache: Folder for compiled images, made if missing; default is the user's cache folder.
        proofs: Folder for the proofs of compiled images, made if missing; default is in the user's data folder.
        compiling: A context manager entered while the image is compiled, to show progress; gets the reason why the
            compiled image cannot be kept, or an empty text.

    Raises:
        ImageError: The component is missing or damaged, or there is no place for the compiled image.
    """
    digest = component_digest(component)
    compiled = CompiledImage(compiled_path(digest, cache), proofs_folder(proofs))
    unkept = compiled.prepare()
    use = None if unkept else Use(compiled)
    mapped = None if unkept else compiled.map()
    if mapped is None:
        unkept = unkept or compiled.prepare(is_written=True)
        with compiling(unkept):
            mapped = _compiled_apart(component, digest, unkept) if unkept else _compiled(compiled, component, digest)
    code, file = mapped
    return Image(digest, code, make_linker(engine(), code), file, use, unkept)


def _compiled(compiled: CompiledImage, component: Path, digest: str) -> tuple[wasm.Component, CompiledFile]:
    """Compile into the cache, unless another process has done so meanwhile."""
    with compiled.locked():
        mapped = compiled.map()
        if mapped is None:
            prune(compiled.path.parent, compiled.proofs)
            compiled.remove_partial()
            compiled.write(_compile(component, digest))
            mapped = compiled.map()
    if mapped is None:
        raise ImageError(f"the image just compiled cannot be loaded from {compiled.path.parent}: is the disk full?")
    return mapped


def _compiled_apart(component: Path, digest: str, unkept: str) -> tuple[wasm.Component, CompiledFile]:
    """Compile for this process only."""
    code = _compile(component, digest)
    try:
        return map_apart(code)
    except OSError as error:
        why = error.strerror or str(error)
        raise ImageError(f"{unkept}; nor is there room for it elsewhere ({why})") from None


def component_digest(component: Path = COMPONENT) -> str:
    """Return the sha256 noted when the component was built.

    Raises:
        ImageError: The component or its note is missing.
    """
    try:
        noted = json.loads(component.with_suffix(".json").read_text("utf-8"))
    except (OSError, ValueError):
        noted = None
    if not isinstance(noted, dict) or not isinstance(noted.get("sha256"), str) or not component.exists():
        raise ImageError(f"the guest image {component.name} is missing or has no note beside it: {_remedy(component)}")
    return str(noted["sha256"])


def compiled_path(digest: str, cache: Path | None = None) -> Path:
    """Return where the compiled image of a component lies: keyed by all that its native code depends on."""
    machine = f"{platform.system()} {platform.machine()} {_cpu_features()}"
    key = f"{digest}\n{WASMTIME}\n{CONFIGURATION}\n{machine}"
    return cache_folder(cache) / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.cwasm"


def _cpu_features() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith(("flags", "Features")):
                return line
    return platform.processor()


def _remedy(component: Path) -> str:
    return REBUILD if component == COMPONENT else "build it again with `codemode image build`"


def _compile(component: Path, digest: str) -> bytes:
    source = component.read_bytes()
    if hashlib.sha256(source).hexdigest() != digest:
        raise ImageError(f"the guest image {component.name} is damaged: {_remedy(component)}")
    try:
        return bytes(wasm.Component(engine(), source).serialize())
    except wasmtime.WasmtimeError:
        raise ImageError(f"wasmtime {WASMTIME} cannot compile the guest image: {_remedy(component)}") from None
