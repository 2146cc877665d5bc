"""What is said about a trap: wasmtime's text shows CPython's functions, and we tell what they mean."""

from __future__ import annotations

import pytest

from sandbox import Raised, Stopped
from sandbox.engine import MAX_WASM_STACK
from sandbox.traps import trapped


def text(function: str, cause: str) -> str:
    return (
        f"error while executing at wasm backtrace:\n    0: 0x1 - libpython3.14.so!{function}\n\nCaused by:\n    {cause}"
    )


def test_recursion_in_c_is_the_limit_stack():
    assert trapped(text("r_object", "wasm trap: call stack exhausted"), 1) == Stopped("stack", MAX_WASM_STACK)


def test_an_interpreter_without_memory_is_the_limit_memory_bytes():
    found = trapped(text("_PyErr_NoMemory", "wasm trap: wasm `unreachable` instruction executed"), 77)
    assert found == Stopped("memory_bytes", 77)


@pytest.mark.parametrize(
    ("function", "cause", "message"),
    [
        (
            "_PyMutex_LockTimed",
            "wasm trap: wasm `unreachable` instruction executed",
            "the script waits for a lock that nothing can release: a script has no threads",
        ),
        (
            "sock_new",
            "unknown import: `wasi:sockets/instance-network@0.2.9#instance-network` has not been defined",
            "a script has no network: call a server's tools instead",
        ),
        (
            "os_open",
            "unknown import: `wasi:filesystem/types@0.2.9#open-at` has not been defined",
            "a script has no files: keep data in variables, and use a server's tools to read or write files",
        ),
        (
            "x",
            "unknown import: `wasi:keyvalue/store@0.2.9#open` has not been defined",
            "a script has no keyvalue/store: call a server's tools instead",
        ),
        (
            "_PyEval_EvalFrameDefault",
            "wasm trap: integer overflow",
            "the script crashed the interpreter inside the sandbox (integer overflow); nothing outside was touched",
        ),
        (
            "fatal_error",
            "unknown import: `wasi:cli/stderr@0.2.9#get-stderr` has not been defined",
            "the script crashed the interpreter inside the sandbox; nothing outside was touched",
        ),
    ],
)
def test_other_traps_are_told_in_words(function, cause, message):
    found = trapped(text(function, cause), 1)
    assert found == Raised("SandboxTrap", message, f"SandboxTrap: {message}\n")
