"""What a trap means for a run, if none of our limits caused it.

wasmtime's text of a trap names the functions on the guest's stack, which are CPython's own. That is enough to tell a
lack of memory, a lock nobody can release and a missing import from a crash of the interpreter.
"""

from __future__ import annotations

import re

from sandbox.engine import MAX_WASM_STACK
from sandbox.host_functions import HOST_FAULT
from sandbox.outcome import Raised, Stopped

_UNKNOWN_IMPORT = re.compile(r"unknown import: `wasi:([a-z-]+)/([a-z-]+)")
_REASON = re.compile(r"wasm trap: ([a-z `-]+)")
# `sbrk` aborts where the allocator wants to give back what it could not extend, at some sizes of what is left, and
# what carries messages into the guest panics where Python has no room for one.
_NO_MEMORY = re.compile(
    r"_?PyErr_NoMemory|handle_alloc_error|rust_oom|__rust_alloc_error|MemoryError|!sbrk\b|panic_on_null"
)
_LOCK = re.compile(r"pthread_cond_(timed)?wait|PyThread_acquire_lock|_PyMutex_LockTimed|_PySemaphore_Wait")

_ABSENT = {
    "sockets": "a script has no network: call a server's tools instead",
    "http": "a script has no network: call a server's tools instead",
    "filesystem": "a script has no files: keep data in variables, and use a server's tools to read or write files",
}


def trapped(text: str, memory_bytes: int) -> Raised | Stopped:
    """Return how a run ended, given wasmtime's text of the trap and how much memory the run could have."""
    if "call stack exhausted" in text:
        return Stopped("stack", MAX_WASM_STACK)
    if _NO_MEMORY.search(text):
        return Stopped("memory_bytes", memory_bytes)
    return _raised(_reason(text))


def _reason(text: str) -> str:
    if HOST_FAULT in text:
        return "the sandbox failed on the host's side: that is a bug in it, not the script's"
    if _LOCK.search(text):
        return "the script waits for a lock that nothing can release: a script has no threads"
    missing = _UNKNOWN_IMPORT.search(text)
    # C code writes to the real standard error only when it gives up.
    if missing and missing[1] != "cli":
        return _ABSENT.get(missing[1], f"a script has no {missing[1]}/{missing[2]}: call a server's tools instead")
    found = _REASON.search(text)
    detail = f" ({found[1].strip()})" if found else ""
    return f"the script crashed the interpreter inside the sandbox{detail}; nothing outside was touched"


def _raised(message: str) -> Raised:
    return Raised("SandboxTrap", message, f"SandboxTrap: {message}\n")
