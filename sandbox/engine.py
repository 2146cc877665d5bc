"""The one wasmtime Engine of the process."""

from __future__ import annotations

import functools
import threading

import wasmtime

from sandbox import c_api

QUICK_SECONDS = 0.001
"""How long the event loop may stand still for a script: a step that takes less begins and ends on its thread."""

MAX_WASM_STACK = 2 * 1024 * 1024
"""Bytes of native stack a guest may use; deeper recursion in C ends the run."""

FIBER_STACK = 4 * MAX_WASM_STACK
"""Bytes of stack of the fiber that a guest runs on: what is left over belongs to the host functions it calls. With
wasmtime's default, which is no more than `MAX_WASM_STACK`, a guest that recurses in C aborts the process."""


# `cache` alone lets two threads make one each, and what one has compiled the other cannot run.
_MAKING = threading.Lock()


def configuration() -> wasmtime.Config:
    """Return the settings that shape compiled code and its isolation."""
    config = wasmtime.Config()
    config.strategy = "cranelift"  # Winch had the escapes of 2026
    config.epoch_interruption = True
    config.memory_init_cow = True
    config.max_wasm_stack = MAX_WASM_STACK
    config.wasm_threads = False
    config.wasm_memory64 = False
    c_api.set_async_stack_size(config.ptr(), FIBER_STACK)
    return config


CONFIGURATION = f"cranelift epoch cow stack={MAX_WASM_STACK} threads=off memory64=off"
"""`configuration` in words, for the name of a compiled image."""


def engine() -> wasmtime.Engine:
    """Return the process's Engine."""
    with _MAKING:
        return _made()


@functools.cache
def _made() -> wasmtime.Engine:
    return wasmtime.Engine(configuration())
