"""The compiled images in the cache: which are in use, when each was used last, and which to remove.

Each takes 60 MB and serves one image, one wasmtime and one kind of processor, so each update leaves one behind. Whoever
runs scripts on a compiled image holds a shared lock on it, and a locked one is never removed. On systems without such
locks, none is removed.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

import platformdirs

from sandbox.compiled import CompiledImage
from sandbox.errors import ImageError
from sandbox.private_folder import make_private_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

if sys.platform != "win32":
    import fcntl

WASMTIME = version("wasmtime")
KEPT_SECONDS = 30 * 86_400.0
"""How long an unused compiled image is kept."""

KEPT_FROM_OTHERS_SECONDS = 86_400.0
"""How long an unused image of another wasmtime version is kept: it serves another environment, or none."""


@dataclass(frozen=True, slots=True)
class CachedImage:
    """A compiled image in the cache.

    Attributes:
        key: What it is called: the name of its file.
        size: Bytes of it.
        used: Unix time at which it was used last.
        wasmtime: The version that it was used with last; empty where that is not known.
    """

    key: str
    size: int
    used: float
    wasmtime: str

    def is_given_up(self, now: float) -> bool:
        """Tell whether it has been unused for so long that it is removed."""
        is_other = self.wasmtime not in {"", WASMTIME}
        return now - self.used > (KEPT_FROM_OTHERS_SECONDS if is_other else KEPT_SECONDS)


def cache_folder(cache: Path | None = None) -> Path:
    """Return where compiled images lie."""
    return cache or platformdirs.user_cache_path("codemode-broker") / "images"


def proofs_folder(proofs: Path | None = None) -> Path:
    """Return where the proofs and notes of use of compiled images lie."""
    return proofs or platformdirs.user_data_path("codemode-broker") / "compiled"


class Use:
    """Keeps a compiled image from being removed for as long as this object lives."""

    def __init__(self, image: CompiledImage) -> None:
        """Take the lock and note the use. Without a note, the image may be removed, and is compiled again then."""
        self._note = -1
        with contextlib.suppress(OSError):
            # For reading too: NFS gives no shared lock on a file that is open for writing alone.
            self._note = os.open(image.use, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
            if sys.platform != "win32":
                fcntl.flock(self._note, fcntl.LOCK_SH)
            os.write(self._note, WASMTIME.encode())

    def __del__(self) -> None:
        """Note when it was used last, and release the lock."""
        if self._note >= 0:
            with contextlib.suppress(OSError, NotImplementedError, TypeError):  # Windows dates no descriptors
                os.utime(self._note)
            os.close(self._note)


def cached_images(cache: Path | None = None, proofs: Path | None = None) -> tuple[CachedImage, ...]:
    """Return all compiled images, the one used last first."""
    found = []
    for path in cache_folder(cache).glob("*.cwasm"):
        with contextlib.suppress(OSError):
            stat = path.stat()
            note = CompiledImage(path, proofs_folder(proofs)).use
            used = note.stat().st_mtime if note.exists() else stat.st_mtime
            made_by = note.read_text("ascii", "replace") if note.exists() else ""
            found.append(CachedImage(path.stem, stat.st_size, used, made_by))
    return tuple(sorted(found, key=lambda one: (-one.used, one.key)))


def remove_cached(key: str, cache: Path | None = None, proofs: Path | None = None) -> None:
    """Remove a compiled image with its proof.

    Raises:
        ImageError: There is none, or it is used at this moment.
    """
    image = CompiledImage(cache_folder(cache) / f"{key}.cwasm", proofs_folder(proofs))
    if key not in {one.key for one in cached_images(cache, proofs)}:
        raise ImageError(f"there is no compiled image {key!r}; `codemode image list --compiled` has all")
    try:
        make_private_folder(image.use.parent)
        with _unused(image) as is_unused:
            if not is_unused:
                raise ImageError(f"the compiled image {key} is in use: end what runs scripts on it first")
            image.remove()
    except OSError as error:
        raise ImageError(f"the compiled image {key} cannot be removed: {error.strerror}") from None


def prune(cache: Path | None = None, proofs: Path | None = None) -> None:
    """Remove compiled images that have been unused for long."""
    if sys.platform == "win32":
        return
    for one in cached_images(cache, proofs):
        if one.is_given_up(time.time()):
            with contextlib.suppress(ImageError):
                remove_cached(one.key, cache, proofs)


@contextlib.contextmanager
def _unused(image: CompiledImage) -> Iterator[bool]:
    """Keep others from starting to use it; yield False if somebody uses it already."""
    with image.use.open("ab") as note:
        try:
            if sys.platform != "win32":
                fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield True
