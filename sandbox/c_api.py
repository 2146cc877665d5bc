"""Functions of wasmtime's C API that wasmtime-py does not bind, or that each step calls; what callbacks hand to it.

Above: engine.py, instance.py, entry.py, host_functions.py. wasmtime-py's own functions are wrapped in Python and
release the interpreter's lock; here only what runs a guest releases it.
"""

from __future__ import annotations

import ctypes

import wasmtime
from wasmtime import _ffi as ffi

_holding = ctypes.PyDLL(ffi.dll._name, handle=ffi.dll._handle)  # noqa: SLF001  # the same library, loaded once

NO_FINALIZER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(0)
"""Of a callback's data, where there is none."""

ErrorPointer = ctypes.POINTER(ffi.wasmtime_error_t)

set_async_stack_size = _holding.wasmtime_config_async_stack_size_set
set_async_stack_size.restype = None
set_async_stack_size.argtypes = [ctypes.POINTER(ffi.wasm_config_t), ctypes.c_uint64]

set_epoch_deadline = _holding.wasmtime_context_set_epoch_deadline
set_epoch_deadline.restype = None
set_epoch_deadline.argtypes = [ctypes.POINTER(ffi.wasmtime_context_t), ctypes.c_uint64]

call_async = _holding.wasmtime_component_func_call_async
call_async.restype = ctypes.POINTER(ffi.wasmtime_call_future_t)
call_async.argtypes = [
    ctypes.POINTER(ffi.wasmtime_component_func_t),
    ctypes.POINTER(ffi.wasmtime_context_t),
    ctypes.POINTER(ffi.wasmtime_component_val_t),
    ctypes.c_size_t,
    ctypes.POINTER(ffi.wasmtime_component_val_t),
    ctypes.c_size_t,
    ctypes.POINTER(ErrorPointer),
]

call_future_poll = ffi.dll.wasmtime_call_future_poll
call_future_delete = _holding.wasmtime_call_future_delete
call_future_delete.restype = None
call_future_delete.argtypes = [ctypes.POINTER(ffi.wasmtime_call_future_t)]

component_val_delete = _holding.wasmtime_component_val_delete
component_val_delete.restype = None
component_val_delete.argtypes = [ctypes.POINTER(ffi.wasmtime_component_val_t)]


def handed_over(message: str) -> int:
    """Return an error as a callback does that ends the guest: its address, and wasmtime owns it from then on."""
    error = wasmtime.WasmtimeError(message)
    return ctypes.cast(error._consume(), ctypes.c_void_p).value or 0  # noqa: SLF001
