"""A compiled image in the cache: written whole, checked against its proof, mapped.

The file is native code, so mapping it is as good as running it. Its proof lies in another folder, out of reach of
whoever can write only to the cache: the digest of what was compiled, and which file was found to have that digest. A
file that is still that one, by inode, size and times, is mapped at once; any other is hashed first, and mapped only if
the digest is right. The kernel sets the time of an inode's last change, so nobody can write to a file and hide it.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import stat
import sys
import tempfile
import threading
import time
import weakref
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import wasmtime
from wasmtime import component as wasm

from sandbox.engine import engine
from sandbox.errors import ImageError
from sandbox.nameless_file import nameless_file
from sandbox.page_cache import read_in
from sandbox.private_folder import prepare_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

if sys.platform != "win32":
    import fcntl

_writing = threading.Lock()
# A process may end while one of its threads compiles: it waits for a file that is being written, and begins no other.
atexit.register(_writing.acquire, timeout=5)

SETTLED_NS = 2 * 10**9
"""How old a file's last change must be before its times tell it from a later change: file systems count in ticks."""


@dataclass(frozen=True, slots=True)
class CompiledFile:
    """One file, and no other of that name.

    Attributes:
        path: Where it lies.
        identity: What `identity` returns for it; empty for a file without a name.
        descriptor: The open descriptor of a file without a name; None for a file with one.
    """

    path: Path
    identity: str
    descriptor: int | None = None

    def encode(self) -> str:
        """Return a text for `decode` in a process that inherits the descriptor."""
        return json.dumps([str(self.path.absolute()), self.identity, self.descriptor])

    @staticmethod
    def decode(text: str) -> CompiledFile:
        """Read what `encode` made."""
        path, identity, descriptor = json.loads(text)
        return CompiledFile(Path(path), identity, descriptor)

    def is_unchanged(self) -> bool:
        """Tell whether it is still that very file."""
        return self.descriptor is not None or identity(self.path) == self.identity


@dataclass(frozen=True, slots=True)
class Proof:
    """What a compiled image must be.

    Attributes:
        sha256: Digest of its bytes, in hex.
        identity: The file that was found to have it; empty if that was too new to be told from a later one.
    """

    sha256: str
    identity: str


class CompiledImage:
    """A file in the cache and its proof."""

    def __init__(self, path: Path, proofs: Path) -> None:
        """Take the file's place and the folder of proofs; neither has to exist."""
        self.path = path
        self.proofs = proofs
        name = hashlib.sha256(str(path.absolute()).encode()).hexdigest()[:32]
        self._proof = proofs / f"{name}.json"
        self._lock = proofs / f"{name}.lock"
        self.use = proofs / f"{name}.use"

    def prepare(self, *, is_written: bool = False) -> str:
        """Make the two folders; return why they cannot be used, or written to, or nothing."""
        folders = ((self.path.parent, "image cache", "XDG_CACHE_HOME"), (self.proofs, "data folder", "XDG_DATA_HOME"))
        return "; ".join(filter(None, (prepare_folder(*folder, is_written=is_written) for folder in folders)))

    def map(self) -> tuple[wasm.Component, CompiledFile] | None:
        """Return the code and its file, or None for a file that is not there or not proven."""
        found = identity(self.path)
        if found is None or not self._is_proven(found):
            return None
        file = CompiledFile(self.path, found)
        component = map_file(file)
        return None if component is None else (component, file)

    def write(self, code: bytes) -> None:
        """Put compiled code into its place, with its proof.

        A file that is there and has these bytes stays: processes with other data folders may start workers on it.

        Raises:
            ImageError: One of the two cannot be written.
        """
        self._prove(Proof(hashlib.sha256(code).hexdigest(), ""))
        found = identity(self.path)
        if found is None or not self._is_proven(found):
            write_private(self.path, code)

    def remove(self) -> None:
        """Remove the file and its proof. The note of its use stays: its lock is that of the next such image too."""
        for path in (self.path, self._proof):
            path.unlink(missing_ok=True)

    def remove_partial(self) -> None:
        """Remove what a killed writer left behind; only for the holder of the lock."""
        for path in self.path.parent.glob(f"{self.path.stem}*.partial"):
            with contextlib.suppress(OSError):
                path.unlink()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from compiling the same image inside the block."""
        with self._lock.open("wb") as lock:
            if sys.platform != "win32":
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _is_proven(self, found: str) -> bool:
        try:
            proof = Proof(**json.loads(self._proof.read_bytes()))
        except (OSError, ValueError, TypeError):
            return False
        if proof.identity == found:
            return True
        with contextlib.suppress(OSError), self.path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() == proof.sha256:
                if time.time_ns() - os.fstat(file.fileno()).st_ctime_ns > SETTLED_NS:
                    with contextlib.suppress(ImageError):  # then it is hashed the next time as well
                        self._prove(Proof(proof.sha256, found))
                return True
        return False

    def _prove(self, proof: Proof) -> None:
        write_private(self._proof, json.dumps(asdict(proof)).encode())


def identity(path: Path) -> str | None:
    """Return what tells this unchanged file from any other; None if it is missing or not this user's."""
    try:
        found = path.lstat()
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode) or (sys.platform != "win32" and found.st_uid != os.getuid()):
        return None
    return f"{found.st_dev}:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}"


def map_file(file: CompiledFile) -> wasm.Component | None:
    """Map a compiled image if it is that very file before and after; None if it is another, or damaged."""
    if not file.is_unchanged():
        return None
    read_in(file.path)
    try:
        component = wasm.Component.deserialize_file(engine(), str(file.path))
    except wasmtime.WasmtimeError:
        return None
    return component if file.is_unchanged() else None


def map_apart(code: bytes) -> tuple[wasm.Component, CompiledFile]:
    """Map code that was just compiled from a file without a name.

    Raises:
        ImageError: It cannot be mapped.
        OSError: There is no room for it.
    """
    with contextlib.ExitStack() as stack:
        nameless = stack.enter_context(nameless_file("compiled", code))
        place = Path("/dev/fd", str(nameless.name))  # where there is no such folder, on Windows, it has a path as name
        file = CompiledFile(place, "", nameless.fileno())
        component = map_file(file)
        if component is not None:
            weakref.finalize(component, stack.pop_all().close)
            return component, file
    raise ImageError("the image just compiled cannot be loaded")


def write_private(path: Path, data: bytes) -> None:
    """Write a file beside its place and rename it, so that readers and other writers only ever see whole ones.

    Raises:
        ImageError: It cannot be written.
    """
    with _writing:
        partial = None
        try:
            handle, partial = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".partial")
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(partial, path)  # noqa: PTH105  # `partial` is a plain name
        except OSError as error:
            if partial is not None:
                with contextlib.suppress(OSError):
                    os.unlink(partial)  # noqa: PTH108
            raise ImageError(f"{path.name} cannot be written to {path.parent}: {error.strerror}") from None
