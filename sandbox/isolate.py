"""One Store with one instance of the guest: enter it, get a step back.

An isolate is synchronous and does no I/O; a worker process can stand behind the same three methods. It enforces
what ends a guest while it runs (time, printed text) and turns every trap into an outcome. After a trap the instance
can't be entered again.
"""

from __future__ import annotations

import ctypes
import random
import re
import time
from typing import TYPE_CHECKING, Any, Protocol

import wasmtime
from wasmtime import _ffi as ffi

from sandbox.clock import LogicalClock
from sandbox.engine import MAX_WASM_STACK, engine
from sandbox.errors import ProtocolError
from sandbox.host_functions import entered
from sandbox.messages import Step, decode_references, decode_step, encode_resume, encode_start
from sandbox.outcome import Outcome, Raised, Reference, Stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from sandbox.image import Image
    from sandbox.limits import Limits

MAX_WRITE = 65_536
"""Characters the guest's streams hand over at once; a longer piece did not come from them."""


class Isolate(Protocol):
    """What the driver needs of a guest. Every method blocks its thread until the guest returns."""

    cpu_seconds: float
    output_bytes: int

    @property
    def elapsed_ns(self) -> int:
        """The run's monotonic clock."""

    def start(self, script: str, filename: str, manifest: Mapping[str, Any], seconds: float) -> Step:
        """Begins the script; the guest has `seconds` until it must have returned."""

    def resume(self, completions: Iterable[str], now_ns: int, seconds: float) -> Step:
        """Hands in encoded completions at `now_ns` of the run's clock."""

    def interrupt(self) -> None:
        """Ends the guest at its next tick, from any thread."""

    def close(self) -> None:
        """Frees the instance."""


class ThreadIsolate:
    """An isolate in this process."""

    def __init__(
        self, image: Image, limits: Limits, *, seed: int, wall_ns: int, on_output: Callable[[int, str], None]
    ) -> None:
        """Makes a Store and an instance; nothing of the script runs yet.

        Args:
            image: The compiled guest.
            limits: Bounds of the run.
            seed: Where all its random numbers come from.
            wall_ns: Unix time at which its clock starts, in nanoseconds.
            on_output: Receives (1 for stdout or 2 for stderr, text), on the thread that runs the guest.
        """
        self.clock = LogicalClock(wall_ns)
        self.cpu_seconds = 0.0
        self.output_bytes = 0
        self._limits = limits
        self._seed = seed
        self._random = random.Random(seed)  # noqa: S311  # a run's random numbers repeat by design
        self._on_output = on_output
        self._is_interrupted = False
        self._deadline = 0.0
        self._cpu_deadline = 0.0
        self._stopped: Stopped | None = None
        self._store = wasmtime.Store(engine())
        self._store.set_limits(memory_size=limits.memory_bytes)
        ffi.wasmtime_store_epoch_deadline_callback(self._store.ptr(), _ON_TICK, None, _NO_FINALIZER)
        self._store.set_epoch_deadline(1_000)
        self._instance = image.linker.instantiate(self._store, image.component)
        self._exports: dict[str, Any] = {}

    @property
    def elapsed_ns(self) -> int:
        """The run's monotonic clock."""
        return self.clock.elapsed_ns

    def warm(self) -> None:
        """Does the first-touch work of a run ahead of it."""
        self._call("warm", seconds=self._limits.wall_seconds)

    def references(self, script: str, seconds: float) -> tuple[Reference, ...] | Raised | Stopped:
        """Returns which tools the script names."""
        answer = self._call("references", script, seconds=seconds)
        if isinstance(answer, Raised | Stopped):
            return answer
        try:
            return decode_references(answer, self._limits)
        except ProtocolError as error:
            return _protocol_failure(error)

    def start(self, script: str, filename: str, manifest: Mapping[str, Any], seconds: float) -> Step:
        """Begins the script; the guest has `seconds` until it must have returned."""
        return self._step("start", encode_start(script, filename, self._seed, manifest), seconds)

    def resume(self, completions: Iterable[str], now_ns: int, seconds: float) -> Step:
        """Hands in encoded completions at `now_ns` of the run's clock."""
        self.clock.advance_to(now_ns)
        return self._step("resume", encode_resume(completions), seconds)

    def interrupt(self) -> None:
        """Ends the guest at its next tick, from any thread."""
        self._is_interrupted = True

    def close(self) -> None:
        """Frees the instance."""
        self._store.close()

    def write(self, output: int, text: str) -> None:
        """Takes printed text from the guest; what exceeds the limit is dropped and ends the run."""
        if self._stopped is not None:
            return
        room = self._limits.output_bytes - self.output_bytes
        data = text.encode("utf-8", "backslashreplace")
        if len(data) > room or len(text) > MAX_WRITE:
            text = data[:room].decode("utf-8", "ignore")
            self._stop(Stopped("output_bytes", self._limits.output_bytes))
        self.output_bytes += min(len(data), room)
        self._on_output(2 if output == 2 else 1, text)  # noqa: PLR2004  # stderr

    def sleep_until(self, monotonic_ns: int) -> None:
        """Moves the clock forward; a sleep past the wall limit ends the run now instead of then."""
        self.clock.advance_to(monotonic_ns)
        if monotonic_ns > self._limits.wall_seconds * 1e9:
            self._stop(Stopped("wall_seconds", self._limits.wall_seconds))

    def random_bytes(self, size: int) -> bytes:
        """Draws from the run's seed, for what in the guest asks WASI instead of Python."""
        return self._random.randbytes(size)

    def _stop(self, stopped: Stopped) -> None:
        self._stopped = stopped
        self._store.set_epoch_deadline(0)

    def _step(self, export: str, message: str, seconds: float) -> Step:
        answer = self._call(export, message, seconds=seconds)
        if isinstance(answer, Raised | Stopped):
            return Step(outcome=answer)
        try:
            return decode_step(answer, self._limits)
        except ProtocolError as error:
            return Step(outcome=_protocol_failure(error))

    def _call(self, export: str, *arguments: str, seconds: float) -> Any:
        """Enters the guest; returns what it returns, or the outcome that its end means."""
        function = self._exports.get(export) or self._export(export)
        self._deadline = time.monotonic() + seconds
        began = time.thread_time()
        self._cpu_deadline = began + self._limits.cpu_seconds - self.cpu_seconds
        self._store.set_epoch_deadline(1)
        entered.guest = self
        try:
            answer = function(self._store, *arguments)
            function.post_return(self._store)
        except wasmtime.WasmtimeError as error:
            answer = self._stopped or _trapped(str(error))
        finally:
            entered.guest = None
            self.cpu_seconds += time.thread_time() - began
        return self._stopped or answer

    def _export(self, name: str) -> Any:
        function = self._exports[name] = self._instance.get_func(self._store, name)
        return function

    def _may_go_on(self) -> bool:
        """Asked at each tick, on the guest's thread."""
        if self._stopped is None:
            if self._is_interrupted or time.monotonic() >= self._deadline:
                self._stopped = Stopped("wall_seconds", self._limits.wall_seconds)
            elif time.thread_time() >= self._cpu_deadline:
                self._stopped = Stopped("cpu_seconds", self._limits.cpu_seconds)
        return self._stopped is None


def _trapped(text: str) -> Outcome:
    """What a trap that no limit caused means; the text is wasmtime's."""
    if "call stack exhausted" in text:
        return Stopped("stack", MAX_WASM_STACK)
    missing = _UNKNOWN_IMPORT.search(text)
    if missing:
        message = f"the script used {missing[1]}, which the sandbox does not have: call a server's tools instead"
    else:
        message = "the interpreter gave up inside the sandbox, most often because memory ran out"
    return Raised("SandboxTrap", message, f"SandboxTrap: {message}\n")


_UNKNOWN_IMPORT = re.compile(r"unknown import: `wasi:([a-z/-]+)")


def _protocol_failure(error: ProtocolError) -> Raised:
    return Raised("ProtocolError", str(error), f"ProtocolError: {error}\n")


_CONTINUE = 0  # WASMTIME_UPDATE_DEADLINE_CONTINUE


_ON_TICK_TYPE = ctypes.CFUNCTYPE(
    ctypes.c_size_t,
    ctypes.POINTER(ffi.wasmtime_context_t),
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_uint64),
    ctypes.POINTER(ctypes.c_uint8),
)


def _on_tick(_context: object, _data: object, delta: Any, kind: Any) -> int:
    """Called by wasmtime when a guest reaches its epoch deadline: lets it run one more tick, or ends it."""
    try:
        guest = entered.guest
        if isinstance(guest, ThreadIsolate) and guest._may_go_on():  # noqa: SLF001  # part of this class
            delta[0] = 1
            kind[0] = _CONTINUE
            return 0
    except BaseException:  # noqa: BLE001, S110  # nothing may cross into wasmtime; the guest ends below
        pass
    error = wasmtime.WasmtimeError("interrupted")
    return ctypes.cast(error._consume(), ctypes.c_void_p).value or 0  # noqa: SLF001  # ownership passes to wasmtime


_ON_TICK = _ON_TICK_TYPE(_on_tick)
_NO_FINALIZER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(0)
