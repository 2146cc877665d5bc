"""One Store with one instance of the guest, and the work of entering it.

This module enforces what ends a guest while it computes (time, printed text, interruption) and turns every trap into an
outcome. After a trap the instance cannot be entered again.
"""

from __future__ import annotations

import ctypes
import random
import time
from typing import TYPE_CHECKING, Any

import wasmtime
from wasmtime import _ffi as ffi

from sandbox import c_api
from sandbox.clock import LogicalClock
from sandbox.engine import QUICK_SECONDS, engine
from sandbox.entry import Crossing, Entry
from sandbox.errors import ImageError
from sandbox.guest_messages import protocol_failure
from sandbox.host_functions import MAX_WRITE, entered
from sandbox.outcome import Raised, Stopped
from sandbox.terms import BEFORE_ANY_RUN, drop_output
from sandbox.ticker import TICKER
from sandbox.traps import trapped

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.image import Image
    from sandbox.terms import Terms


class Instance:
    """A guest in this process."""

    def __init__(self, image: Image) -> None:
        """Make a Store and an instance and do what every run would do first; it belongs to no run yet.

        Raises:
            ImageError: The image is not one of this version's.
        """
        self.is_interrupted = False
        self.computed_seconds = 0.0
        """Processor time of all its runs, a kernel's too."""
        self.store = wasmtime.Store(engine())
        self.crossing = Crossing()
        self.limits = BEFORE_ANY_RUN.limits
        self.store.set_limits(memory_size=self.limits.memory_bytes)
        self.take_on(BEFORE_ANY_RUN, drop_output)
        self._stopped: Raised | Stopped | None = None
        self._turn_began = 0.0
        self._deadline = 0.0
        self._cpu_deadline = 0.0
        ffi.wasmtime_store_epoch_deadline_callback(self.store.ptr(), _ON_TICK, None, c_api.NO_FINALIZER)
        self.store.set_epoch_deadline(1_000)
        self._instance = image.linker.instantiate(self.store, image.component)
        self._exports: dict[str, ffi.wasmtime_component_func_t] = {}
        self._warm()
        self._find("start")  # what a run enters first
        self.computed_seconds = 0.0

    def take_on(self, terms: Terms, on_output: Callable[[int, str], None]) -> None:
        """Make it the instance of a run; a kernel's takes on one after the other.

        Args:
            terms: The run's conditions.
            on_output: Receives (1 for stdout or 2 for stderr, text), on the thread that runs the guest.
        """
        self.clock = LogicalClock(terms.wall_ns, terms.origin_ns)
        self.cpu_seconds = 0.0
        self.output_bytes = 0
        self._seed = terms.seed
        self._random: random.Random | None = None
        self._on_output = on_output
        if terms.limits.memory_bytes != self.limits.memory_bytes:
            self.store.set_limits(memory_size=terms.limits.memory_bytes)
        self.limits = terms.limits
        self.step_bytes = terms.limits.step_bytes

    def enter(self, export: str, argument: str, seconds: float) -> Entry:
        """Begin a call of an export that takes a string and returns one; it must end within `seconds`."""
        self._deadline = time.monotonic() + seconds
        c_api.set_epoch_deadline(self.store._context(), 1)  # noqa: SLF001  # the C handle
        return Entry(self, self._exports.get(export) or self._find(export), argument)

    def close(self) -> None:
        """Free the memory."""
        self.store.close()

    def write(self, output: int, text: str) -> None:
        """Take printed text from the guest; what exceeds the limit is dropped and ends the run."""
        if self._stopped is not None or not text:
            return
        if len(text) > MAX_WRITE:
            self._stop(protocol_failure(f"the guest printed more than {MAX_WRITE} characters at once"))
            return
        room = self.limits.output_bytes - self.output_bytes
        data = text.encode("utf-8", "backslashreplace")
        if len(data) > room:
            text = data[:room].decode("utf-8", "ignore")
            self._stop(Stopped("output_bytes", self.limits.output_bytes))
        self.output_bytes += min(len(data), room)
        self._on_output(2 if output == 2 else 1, text)  # noqa: PLR2004  # stderr

    def sleep_until(self, elapsed_ns: int) -> None:
        """Move the clock forward; a sleep past the wall limit ends the run now instead of then."""
        self.clock.advance_to(elapsed_ns)
        if elapsed_ns > self.limits.wall_seconds * 1e9:
            self._stop(Stopped("wall_seconds", self.limits.wall_seconds))

    def random_bytes(self, size: int) -> bytes:
        """Draw from the run's seed, for what in the guest asks WASI instead of Python."""
        if self._random is None:
            self._random = random.Random(self._seed)  # noqa: S311  # a run's random numbers repeat by design
        return self._random.randbytes(size)

    def ending(self, trap: str | None) -> Raised | Stopped | None:
        """Return what ended the guest, given wasmtime's text of the trap if there was one."""
        return self._stopped or (None if trap is None else trapped(trap, self.limits.memory_bytes))

    def arm(self) -> float:
        """Note that this thread goes into the guest; return its processor time so far."""
        entered.guest = self
        TICKER.begin(self)
        self._turn_began = time.monotonic()
        began = time.thread_time()
        self._cpu_deadline = began + self.limits.cpu_seconds - self.cpu_seconds
        return began

    def disarm(self, began: float) -> None:
        """Note that this thread has come out again."""
        entered.guest = None
        TICKER.end(self)
        spent = time.thread_time() - began
        self.cpu_seconds += spent
        self.computed_seconds += spent

    def may_go_on(self) -> bool:
        """Tell whether the guest may go on; asked at each tick, on its thread."""
        if self._stopped is None:
            if self.is_interrupted or time.monotonic() >= self._deadline:
                self._stopped = Stopped("wall_seconds", self.limits.wall_seconds)
            elif time.thread_time() >= self._cpu_deadline:
                self._stopped = Stopped("cpu_seconds", self.limits.cpu_seconds)
        return self._stopped is None

    def has_had_its_turn(self) -> bool:
        """Tell, at a tick at which it may go on, whether it has computed so long that others have to come first."""
        return time.monotonic() - self._turn_began >= QUICK_SECONDS

    def _warm(self) -> None:
        entry = self.enter("warm", "", self.limits.wall_seconds)
        while not entry.advance():
            pass
        if isinstance(entry.answer, Raised | Stopped):
            raise ImageError(f"the guest image cannot run a script: {entry.answer}")

    def _stop(self, stopped: Raised | Stopped) -> None:
        self._stopped = stopped
        self.store.set_epoch_deadline(0)

    def _find(self, export: str) -> ffi.wasmtime_component_func_t:
        function = self._instance.get_func(self.store, export)
        if function is None:
            raise ImageError(f"the guest image has no export {export!r}: it is not one of this version's images")
        found = self._exports[export] = function._func  # noqa: SLF001  # the C handle
        return found


_CONTINUE = 0  # WASMTIME_UPDATE_DEADLINE_CONTINUE
_YIELD = 1  # WASMTIME_UPDATE_DEADLINE_YIELD: pause the fiber

_ON_TICK_TYPE = ctypes.CFUNCTYPE(
    ctypes.c_size_t,
    ctypes.POINTER(ffi.wasmtime_context_t),
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_uint64),
    ctypes.POINTER(ctypes.c_uint8),
)


def _on_tick(_context: object, _data: object, delta: Any, kind: Any) -> int:
    """Let a guest that reaches its epoch deadline go on, pause until `advance`, or end; wasmtime calls it."""
    try:
        guest = entered.guest
        if isinstance(guest, Instance) and guest.may_go_on():
            delta[0] = 1
            kind[0] = _YIELD if guest.has_had_its_turn() else _CONTINUE
            return 0
    except BaseException:  # noqa: BLE001, S110  # nothing may cross into wasmtime; the guest ends below
        pass
    return c_api.handed_over("interrupted")


_ON_TICK = _ON_TICK_TYPE(_on_tick)
