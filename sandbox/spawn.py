"""How a worker process comes to be: with no environment, no input and the descriptors that it needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import wasmtime

from sandbox.frames import COMPUTING
from sandbox.nameless_file import nameless_file

if TYPE_CHECKING:
    from sandbox.compiled import CompiledFile
    from sandbox.pool import Pool

BOOT = """
import sys, types
package = types.ModuleType("sandbox")
package.__path__ = [sys.argv[1]]
sys.modules["sandbox"] = package
sys.path.append(sys.argv[2])
from sandbox import worker
worker.main(int(sys.argv[3]), int(sys.argv[4]), *sys.argv[5:])
"""
"""Imports what a worker needs and not what the package's own `__init__` would: no event loop, nothing that connects."""


def spawn_worker(
    connection: int, page: int, compiled: CompiledFile, pool: Pool | None = None
) -> subprocess.Popen[bytes]:
    """Start a worker that gets two descriptors, and that of `compiled` if it has no name, and map it.

    Raises:
        OSError: The system does not start it.
    """
    ours, libraries = Path(__file__).parent, Path(wasmtime.__file__).parent.parent
    kept = json.dumps(None if pool is None else asdict(pool))
    arguments = [str(item) for item in (ours, libraries, connection, page, compiled.encode(), kept)]
    nameless = () if compiled.descriptor is None else (compiled.descriptor,)
    return subprocess.Popen(  # noqa: S603  # our own interpreter
        [sys.executable, "-I", "-S", "-c", BOOT, *arguments],
        env={},
        cwd="/",
        pass_fds=(connection, page, *nameless),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # an interrupt from the terminal is the host's to handle
    )


def shared_page() -> int:
    """Return a file for `COMPUTING` that a worker can write and, on Linux, not cut short. It is read, never mapped."""
    with nameless_file("computing", bytes(COMPUTING.size), is_written=True) as file:
        return os.dup(file.fileno())
