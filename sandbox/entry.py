"""One call into a guest, on a fiber of its own, so that it can pause at a tick and go on on another thread.

Above: `Instance`, which decides at each tick whether the guest may go on. Below: c_api.py.
"""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING

import wasmtime
from wasmtime import _ffi as ffi

from sandbox import c_api
from sandbox.limits import BYTES_A_CHARACTER

if TYPE_CHECKING:
    from sandbox.instance import Instance
    from sandbox.outcome import Raised, Stopped


class Crossing:
    """What a call hands to C. Made once for an instance: one call at a time is in it, and making it costs more."""

    def __init__(self) -> None:
        """Make room for a text each way."""
        self.parameter = (ffi.wasmtime_component_val_t * 1)()
        self.parameter[0].kind = ffi.WASMTIME_COMPONENT_STRING
        self.argument = _Text.from_buffer(self.parameter, ffi.wasmtime_component_val_t.of.offset)
        self.result = ffi.wasmtime_component_val_t()
        self.returned = self.result.of.string
        self.to_result = ctypes.byref(self.result)


class _Text(ctypes.Structure):
    """A `wasm_byte_vec_t` that points to bytes of Python's, which wasmtime copies and does not own."""

    _fields_ = (("size", ctypes.c_size_t), ("data", ctypes.c_char_p))


class Entry:
    """One call into the guest, advanced from tick to tick by whatever thread has time for it."""

    def __init__(self, instance: Instance, function: ffi.wasmtime_component_func_t, argument: str) -> None:
        """Write the argument into a fiber; nothing runs before `advance`."""
        self.answer: str | Raised | Stopped = ""
        self._instance = instance
        self._crossing = crossing = instance.crossing
        self._argument = argument.encode()  # lives as long as the fiber, which may read it late
        crossing.argument.size = len(self._argument)
        crossing.argument.data = self._argument
        self._error = c_api.ErrorPointer()
        self._future = c_api.call_async(
            ctypes.byref(function),
            instance.store._context(),  # noqa: SLF001  # the C handle
            crossing.parameter,
            1,
            crossing.to_result,
            1,
            ctypes.byref(self._error),
        )

    def advance(self) -> bool:
        """Run the guest until it returns, or for about one tick; True once `answer` is there."""
        began = self._instance.arm()
        try:
            is_over: bool = c_api.call_future_poll(self._future)
        finally:
            self._instance.disarm(began)
        if is_over:
            self.answer = self._finish()
        return is_over

    def _finish(self) -> str | Raised | Stopped:
        c_api.call_future_delete(self._future)
        self._crossing.argument.data = None
        if self._error:  # type: ignore[truthy-bool]  # False for a null pointer
            return self._instance.ending(str(wasmtime.WasmtimeError._from_ptr(self._error))) or ""  # noqa: SLF001
        text = self._read()
        c_api.component_val_delete(self._crossing.to_result)
        if len(text) > self._instance.step_bytes:
            _give_back_memory()
        return self._instance.ending(None) or text

    def _read(self) -> str:
        """Copy the guest's text, but no more of it than shows that it is too long: its reader refuses it then."""
        returned = self._crossing.returned
        enough = BYTES_A_CHARACTER * (self._instance.step_bytes + 1)
        return ctypes.string_at(returned.data, min(returned.size, enough)).decode("utf-8", "replace")


def _give_back_memory() -> None:
    """Return to the system what glibc keeps of freed memory: for each thread, twice the longest message so far."""
    if _malloc_trim is not None:
        _malloc_trim(0)


_malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
