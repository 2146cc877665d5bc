"""What the system has not given a command, told from a fault of ours.

Above: start.py, doctor.py. Below: the limits of this process.
"""

from __future__ import annotations

import errno

_ERRORS = {
    errno.EAGAIN: "processes or threads",
    errno.ENOMEM: "memory",
    errno.EMFILE: "open files",
    errno.ENFILE: "open files",
}


def shortage(error: Exception) -> str:
    """Return what was too little for an exception to be raised; empty where it was something else."""
    if isinstance(error, OSError):
        return _ERRORS.get(error.errno or 0, "")
    if isinstance(error, MemoryError):
        return "memory"
    # Python has no class of its own for it.
    return "threads" if isinstance(error, RuntimeError) and "can't start new thread" in str(error) else ""


def instead_of_workers() -> str:
    """Return how scripts run where no worker can be started; empty where a limit would be in the way of that too."""
    from sandbox.system_limits import tight_limits  # noqa: PLC0415  # wasmtime is not loaded for --help

    if tight_limits():
        return ""
    return "`codemode run --isolation thread` runs scripts in this process, with one wall less."
