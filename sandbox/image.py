"""The guest image: found in the package, compiled once for this machine, kept in the user's cache.

The compiled file is native code, so it lies where only this user can write, under a name that says everything it
depends on. wasmtime maps it; a process that starts with a compiled image needs a few milliseconds.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import stat
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
import wasmtime
from wasmtime import component as wasm

from sandbox.engine import CONFIGURATION, engine
from sandbox.errors import ImageError
from sandbox.host_functions import make_linker

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

COMPONENT = Path(__file__).with_name("guest.wasm")
WASMTIME = version("wasmtime")
REBUILD = "reinstall the package (in a checkout: `uv sync --reinstall-package codemode-broker`)"


@dataclass(frozen=True)
class Image:
    """A compiled guest, ready to be instantiated any number of times from any thread.

    Attributes:
        digest: sha256 of the component, in hex.
        component: The compiled code.
        linker: What its imports are bound to.
        compiled: The cache file it is mapped from.
    """

    digest: str
    component: wasm.Component
    linker: wasm.Linker
    compiled: Path


def load_image(
    component: Path = COMPONENT,
    *,
    cache: Path | None = None,
    compiling: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext,
) -> Image:
    """Loads the guest image; compiles it first where that has not been done yet (5 to 15 s, once a machine).

    Args:
        component: The `.wasm` file; a `.json` file beside it holds its digest.
        cache: Folder for compiled images, made if missing; default is the user's cache folder.
        compiling: Entered for as long as compiling takes, to show that something goes on.

    Raises:
        ImageError: The component is missing or damaged, or the cache can't be used.
    """
    digest = component_digest(component)
    compiled = compiled_path(digest, cache)
    _make_private(compiled.parent)
    loaded = _map(compiled)
    if loaded is None:
        with compiling():
            _compile(component, digest, compiled)
        loaded = _map(compiled)
    if loaded is None:
        raise ImageError(f"the image just compiled can't be loaded from {compiled.parent}: is the disk full?")
    return Image(digest, loaded, make_linker(engine(), loaded), compiled)


def component_digest(component: Path = COMPONENT) -> str:
    """Returns the sha256 noted when the component was built.

    Raises:
        ImageError: The component or its note is missing.
    """
    try:
        noted = json.loads(component.with_suffix(".json").read_text("utf-8"))
    except (OSError, ValueError):
        noted = None
    if not isinstance(noted, dict) or not isinstance(noted.get("sha256"), str) or not component.exists():
        raise ImageError(f"the guest image {component.name} is not in the installed package: {REBUILD}")
    return str(noted["sha256"])


def compiled_path(digest: str, cache: Path | None = None) -> Path:
    """Returns where the compiled image of a component lies: keyed by all that its native code depends on."""
    machine = f"{platform.system()} {platform.machine()} {_cpu_features()}"
    key = f"{digest}\n{WASMTIME}\n{CONFIGURATION}\n{machine}"
    folder = cache or platformdirs.user_cache_path("codemode-broker") / "images"
    return folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.cwasm"


def _cpu_features() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith(("flags", "Features")):
                return line
    return platform.processor()


def _make_private(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError as error:
        raise ImageError(
            f"the image cache {folder} can't be made ({error.strerror}): set XDG_CACHE_HOME elsewhere"
        ) from None
    if os.name != "posix":
        return
    if found.st_uid != os.getuid():
        raise ImageError(f"the image cache {folder} belongs to another user: remove it or set XDG_CACHE_HOME elsewhere")
    if stat.S_IMODE(found.st_mode) & 0o077:
        folder.chmod(0o700)


def _map(compiled: Path) -> wasm.Component | None:
    if not compiled.exists():
        return None
    try:
        return wasm.Component.deserialize_file(engine(), str(compiled))
    except wasmtime.WasmtimeError:
        return None


def _compile(component: Path, digest: str, compiled: Path) -> None:
    source = component.read_bytes()
    if hashlib.sha256(source).hexdigest() != digest:
        raise ImageError(f"the guest image {component.name} is damaged: {REBUILD}")
    try:
        code = wasm.Component(engine(), source).serialize()
    except wasmtime.WasmtimeError:
        raise ImageError(f"wasmtime {WASMTIME} can't compile the guest image: {REBUILD}") from None
    # Written beside its place and renamed, so that two processes at once both end up with a whole file.
    handle, partial = tempfile.mkstemp(dir=compiled.parent, prefix=compiled.stem, suffix=".partial")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(code)
        Path(partial).replace(compiled)
    except OSError as error:
        Path(partial).unlink(missing_ok=True)
        raise ImageError(f"the compiled image can't be written to {compiled.parent}: {error.strerror}") from None
