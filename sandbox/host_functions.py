"""Everything the guest may call: the whole import surface of the sandbox, by hand.

wasmtime's WASI is never linked. Every import of the component is first defined as a trap, then the ones below get a
body. No body blocks or touches anything but the run it belongs to: a blocked thread could not be interrupted. What a
body raises becomes a trap of its guest: wasmtime-py keeps other exceptions in one variable of the process, and lets
some through as a value.
"""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING, Any, Protocol

import wasmtime
from wasmtime import _ffi as ffi
from wasmtime import component as wasm

from sandbox import c_api
from sandbox.limits import BYTES_A_CHARACTER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sandbox.clock import LogicalClock

WASI = "0.2.9"
MAX_WRITE = 65_536
"""Characters the guest's streams hand over at once; a longer piece did not come from them."""

MAX_RANDOM_BYTES = 65_536
HOST_FAULT = "a host function failed"
_POLLABLE = 1  # our number for the one resource type the host defines


class Guest(Protocol):
    """The run that a host function acts for."""

    clock: LogicalClock

    def write(self, output: int, text: str) -> None:
        """Take printed text."""

    def sleep_until(self, elapsed_ns: int) -> None:
        """Move the clock forward, at most to the end of the run."""

    def random_bytes(self, size: int) -> bytes:
        """Draw from the run's seed."""


class Entered(threading.local):
    """The guest that this thread is inside of. One Linker serves all runs, so its functions look here."""

    guest: Guest | None = None


entered = Entered()


def _write(guest: Guest, output: int, text: str) -> None:
    guest.write(output, text)


def _monotonic_now(guest: Guest) -> int:
    return guest.clock.read_monotonic_ns()


def _wall_now(guest: Guest) -> wasm.Record:
    return _datetime(guest.clock.read_wall_ns())


def _resolution(_: Guest) -> int:
    return 1_000


def _wall_resolution(_: Guest) -> wasm.Record:
    return _datetime(1_000)


def _sleep_until(guest: Guest, monotonic_ns: int) -> wasm.ResourceHost:
    guest.sleep_until(monotonic_ns - guest.clock.origin_ns)
    return wasm.ResourceHost.own(0, _POLLABLE)


def _sleep_for(guest: Guest, duration_ns: int) -> wasm.ResourceHost:
    guest.sleep_until(guest.clock.elapsed_ns + duration_ns)
    return wasm.ResourceHost.own(0, _POLLABLE)


def _poll(_: Guest, pollables: list[object]) -> list[int]:
    return list(range(len(pollables)))  # every sleep is over at once


def _block(_: Guest, __: object) -> None:
    return None


def _ready(_: Guest, __: object) -> bool:
    return True


def _random_bytes(guest: Guest, size: int) -> bytes:
    return guest.random_bytes(min(size, MAX_RANDOM_BYTES))


def _random_u64(guest: Guest) -> int:
    return int.from_bytes(guest.random_bytes(8), "little")


def _nothing(_: Guest) -> list[object]:
    return []


def _none(_: Guest) -> None:
    return None


HOST_FUNCTIONS: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "": {"write": _write},
    f"wasi:cli/environment@{WASI}": {
        "get-environment": _nothing,
        "get-arguments": _nothing,
        "initial-cwd": _none,
    },
    f"wasi:clocks/monotonic-clock@{WASI}": {
        "now": _monotonic_now,
        "resolution": _resolution,
        "subscribe-instant": _sleep_until,
        "subscribe-duration": _sleep_for,
    },
    f"wasi:clocks/wall-clock@{WASI}": {"now": _wall_now, "resolution": _wall_resolution},
    f"wasi:filesystem/preopens@{WASI}": {"get-directories": _nothing},
    f"wasi:io/poll@{WASI}": {
        "poll": _poll,
        "[method]pollable.block": _block,
        "[method]pollable.ready": _ready,
    },
    f"wasi:random/random@{WASI}": {"get-random-bytes": _random_bytes, "get-random-u64": _random_u64},
}
"""Interface name to function name to body; `""` is the component's own world."""


def make_linker(engine: wasmtime.Engine, component: wasm.Component) -> wasm.Linker:
    """Return the linker that every isolate of `component` is instantiated with."""
    linker = wasm.Linker(engine)
    linker.allow_shadowing = True
    linker.define_unknown_imports_as_traps(component)
    with linker.root() as root:
        _define_write(root)
        for interface, functions in HOST_FUNCTIONS.items():
            if not interface:
                continue
            with root.add_instance(interface) as instance:
                if interface.startswith("wasi:io/poll"):
                    instance.add_resource("pollable", wasm.ResourceType.host(_POLLABLE), lambda _store, _rep: None)
                _define(instance, functions)
    return linker


def _define_write(root: wasm.LinkerInstance) -> None:
    """Define the one function that takes text. wasmtime-py would make three copies of a text of any length first."""
    name = b"write"
    ffi.wasmtime_component_linker_instance_add_func(
        root.ptr(), ctypes.create_string_buffer(name), len(name), _ON_WRITE, None, c_api.NO_FINALIZER
    )


def _on_write(_data: object, _context: object, _type: object, arguments: Any, *_: object) -> int:
    """Take text that the guest writes, no more of it than shows that it is too long; wasmtime calls it."""
    try:
        text = arguments[1].of.string
        data = ctypes.string_at(text.data, min(text.size, BYTES_A_CHARACTER * (MAX_WRITE + 1)))
        HOST_FUNCTIONS[""]["write"](entered.guest, arguments[0].of.u8, data.decode("utf-8", "ignore"))
    except BaseException:  # noqa: BLE001  # nothing may cross into wasmtime; the guest ends with a trap
        return c_api.handed_over(HOST_FAULT)
    return 0


_ON_WRITE = ffi.wasmtime_component_func_callback_t(_on_write)


def _define(instance: wasm.LinkerInstance, functions: Mapping[str, Callable[..., Any]]) -> None:
    for name, body in functions.items():
        instance.add_func(name, _bound(body))


def _bound(body: Callable[..., Any]) -> Callable[..., Any]:
    def call(store: wasmtime.StoreContext, *arguments: Any) -> Any:
        try:
            result = body(entered.guest, *arguments)
            for argument in arguments:
                _release(argument, store)
        except BaseException:  # noqa: BLE001  # only this one type is handed over as a trap of this guest alone
            raise wasmtime.WasmtimeError(HOST_FAULT) from None
        return result

    return call


def _release(argument: object, store: wasmtime.StoreContext) -> None:
    """Give borrowed handles back: a call that keeps one is a trap."""
    for handle in argument if isinstance(argument, list) else (argument,):
        if isinstance(handle, wasm.ResourceAny):
            handle.to_host(store)


def _datetime(nanoseconds: int) -> wasm.Record:
    record = wasm.Record()
    record.__dict__.update({"seconds": nanoseconds // 10**9, "nanoseconds": nanoseconds % 10**9})
    return record
