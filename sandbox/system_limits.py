"""Limits that the system sets this process, as `ulimit` does, where they may be why something cannot be started.

Above: sandbox.py, worker_process.py, the command line. Below: the resource module.
"""

from __future__ import annotations

import sys

from sandbox.errors import SystemLimitError
from sandbox.limits import MIB

RESERVED_BYTES = 0x1_0400_0000
"""What an instance reserves of address space: 4 GiB that its memory may become, and a guard of 64 MiB."""

_FEW_PROCESSES = 256
_FEW_FILES = 256


def check_address_space() -> None:
    """Make sure that an instance fits, before anything is mapped: short of address space, libraries end the process.

    Raises:
        SystemLimitError: It does not.
    """
    space = _limit("RLIMIT_AS")
    if space is not None and space < RESERVED_BYTES:
        raise SystemLimitError(
            f"scripts need more address space than this process may have: {space // MIB} MiB, and an interpreter "
            f"reserves {RESERVED_BYTES // MIB}, most of which it never uses. Call `ulimit -v unlimited` before."
        )


def tight_limits() -> str:
    """Return the limits that are low enough to be in the way; empty where none is."""
    space, processes, files = _limit("RLIMIT_AS"), _limit("RLIMIT_NPROC"), _limit("RLIMIT_NOFILE")
    said = []
    if space is not None:
        said.append(f"{space // MIB} MiB of address space (ulimit -v)")
    if processes is not None and processes < _FEW_PROCESSES:
        said.append(f"{processes} processes and threads of this user (ulimit -u)")
    if files is not None and files < _FEW_FILES:
        said.append(f"{files} open files (ulimit -n)")
    return ", ".join(said)


def _limit(name: str) -> int | None:
    """Return a limit; None where there is none."""
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415  # not there on Windows

    soft, _ = resource.getrlimit(getattr(resource, name))
    return None if soft == resource.RLIM_INFINITY else soft
