"""What the system does not give this process, told from a fault of ours.

Above: the command line, explain.py. Below: the limits of this process.
"""

from __future__ import annotations

import errno
import sys

_ERRORS = {
    errno.EAGAIN: "processes or threads",
    errno.ENOMEM: "memory",
    errno.EMFILE: "open files",
    errno.ENFILE: "open files",
}


LEAST_ADDRESS_SPACE = 512 * 1024 * 1024
"""Libraries that get less end the process, or are not loaded; they take 300 MiB, and each thread its stack."""

LEAST_FILES = 64
"""A command with a store, a worker and a server has 20 open."""


def too_little() -> tuple[str, str] | None:
    """Return what the system gives this process too little of for any command, and what to do; None for enough."""
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415  # not there on Windows

    space, _ = resource.getrlimit(resource.RLIMIT_AS)
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= space < LEAST_ADDRESS_SPACE:
        mib = 1024 * 1024
        needed = f"{LEAST_ADDRESS_SPACE // mib} MiB of address space"
        what = f"codemode needs {needed}, and this process may have {space // mib}"
        return what, "Call `ulimit -v unlimited` before; an interpreter for scripts reserves more, which it never uses."
    if 0 <= files < LEAST_FILES:
        what = f"codemode needs to open {LEAST_FILES} files at once, and this process may open {files}"
        return what, "Call `ulimit -n 1024` before."
    return None


def shortage(error: Exception) -> str:
    """Return what was too little for an exception to be raised; empty where it was something else."""
    if isinstance(error, OSError):
        return _ERRORS.get(error.errno or 0, "")
    if isinstance(error, MemoryError):
        return "memory"
    # Python has no class of its own for it.
    return "threads" if isinstance(error, RuntimeError) and "can't start new thread" in str(error) else ""


def raise_limits() -> str:
    """Return the limits to raise, as a sentence."""
    from sandbox.system_limits import tight_limits  # noqa: PLC0415  # wasmtime is not loaded for --help

    return f"Raise the limits: {tight_limits() or 'those of its container, or of the machine'}."


def instead_of_workers() -> str:
    """Return how scripts run where no worker can be started; empty where a limit would be in the way of that too."""
    from sandbox.system_limits import tight_limits  # noqa: PLC0415  # wasmtime is not loaded for --help

    if tight_limits():
        return ""
    return "`codemode run --isolation thread` runs scripts in this process, with one wall less."
