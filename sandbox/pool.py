"""Instances made ahead of the runs that will use them: a thread makes and warms them, and frees them after use.

Each is used once, and given up if no run comes for long. Freeing is the thread's work too, because it takes as long as
running a small script. No script has run in a spare, and all spares are alike: `Instance.take_on` decides what differs
between runs, so a run on a spare is the same, byte for byte, as on an instance made for it.

Above: the isolates in this process, or the worker. Below: `Instance`.
"""

from __future__ import annotations

import collections
import contextlib
import math
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import wasmtime

from sandbox.errors import ImageError
from sandbox.instance import Instance

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.image import Image

SPARE_BYTES = 2 * 1024 * 1024
"""What a warmed instance takes, generously."""

PAUSE_SECONDS = 0.002
"""How long the thread waits after the last run ended, or has begun with the last spare. Runs that follow each other
closely then share neither their core nor the page tables of the process with it."""

QUIET_SECONDS = 0.5
"""How long the thread waits while a run goes on and a spare is left for the next: on few cores it would hold up that
run, and the servers that the run waits for."""

MAX_UNFREED_SECONDS = 0.016
"""How long the instances that wait to be freed, in the host's own process, may have computed together: each millisecond
has filled some megabytes. An instance beyond that is freed where it was used. In a worker all wait, and once they have
computed for longer, the thread frees them without waiting for the run to end."""


@dataclass(frozen=True, slots=True)
class Pool:
    """How many instances are kept ready.

    Attributes:
        size: Instances in each process that runs guests, of 0.5 MB each. A run uses one, and reading which tools its
            script names may use another. They are replaced when the run has ended, or at once when none is left.
        idle_seconds: After how long without a run they are given up. The first run afterwards makes its own.

    Raises:
        ValueError: A field is out of range; the text names it.
    """

    size: int = 3
    idle_seconds: float = 60.0

    def __post_init__(self) -> None:
        """Check every field."""
        size: object = self.size
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"size must be an integer of at least 1, not {size!r}: pool=None means no pool")
        seconds: object = self.idle_seconds
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
            raise ValueError(f"idle_seconds must be a positive and finite number, not {seconds!r}")


class Spares:
    """The instances of one process."""

    def __init__(self, image: Image, pool: Pool | None, *, most_unfreed_seconds: float = MAX_UNFREED_SECONDS) -> None:
        """Start the thread, if there is a pool. The first spares are made after the first run."""
        self._image = image
        self._size = 0 if pool is None else pool.size
        self._idle_seconds = None if pool is None else pool.idle_seconds
        self._ready: list[Instance] = []
        self._used: collections.deque[Instance] = collections.deque()
        self._unfreed_seconds = 0.0
        self._most_unfreed_seconds = most_unfreed_seconds
        self._lock = threading.RLock()
        self._change = threading.Condition(self._lock)
        self._is_wanted = False
        self._is_making = False
        self._in_use = 0
        self._taken_at = 0.0
        self._freed_at = 0.0
        self._is_closed = False
        self._thread = None if pool is None else threading.Thread(target=self._work, name="wasm-pool", daemon=True)
        if self._thread is not None:
            self._thread.start()

    def __len__(self) -> int:
        """Return how many are ready."""
        return len(self._ready)

    def take(self) -> Instance:
        """Return an instance for a run: the newest spare, which caches still hold, or a new one if none is ready.

        Making one takes as long as a step may; on a thread, whose caches are cold, it would take half as long again.
        Two that are made at once take three times as long each, since each page that one writes to for the first time
        interrupts the core of the other. So one that is being made is waited for.

        Raises:
            ImageError: The image is not one of this version's.
        """
        with self._lock:
            if self._ready or not self._is_wanted:
                self._taken_at = time.monotonic()
            self._is_wanted = True
            self._in_use += 1
            self._change.notify_all()
            self._change.wait_for(lambda: self._ready or not self._is_making)
            if self._ready:
                return self._ready.pop()
            self._is_making = True
        try:
            with self._until_made():
                return Instance(self._image)
        except BaseException:
            with self._lock:
                self._in_use -= 1
            raise

    def put(self, instance: Instance) -> None:
        """Keep an instance that has never been used."""
        with self._lock:
            if not self._is_closed and len(self._ready) < self._size:
                self._ready.append(instance)
                return
        instance.close()

    def free(self, instance: Instance) -> None:
        """Leave a used instance to the thread to free; free it at once if there is no thread, or too many wait."""
        if self._thread is None:
            instance.close()
            return
        with self._lock:
            self._in_use -= 1
            self._freed_at = time.monotonic()
            self._change.notify_all()
            unfreed = self._unfreed_seconds + instance.computed_seconds
            if not self._is_closed and unfreed <= self._most_unfreed_seconds:
                self._unfreed_seconds = unfreed
                self._used.append(instance)
                return
        instance.close()

    def close(self) -> None:
        """Give up all spares, and wait milliseconds until the thread has ended, because it holds the image."""
        with self._lock:
            self._is_closed = True
            self._give_up()
            self._change.notify_all()
        if self._thread is not None:
            self._thread.join()
        self._free_used()
        del self._image  # or an isolate that somebody still holds would keep it

    def _work(self) -> None:
        while self._wait():
            self._free_used()
            with self._lock:
                if self._is_making or not self._lacks_one():
                    continue
                self._is_making = True
            try:
                with self._until_made():
                    self.put(Instance(self._image))
            except (wasmtime.WasmtimeError, ImageError, MemoryError, RuntimeError):
                self._is_wanted = False  # the next run meets it again, and says so

    @contextlib.contextmanager
    def _until_made(self) -> Iterator[None]:
        """Tell those who wait that none is being made any more."""
        try:
            yield
        finally:
            with self._lock:
                self._is_making = False
                self._change.notify_all()

    def _wait(self) -> bool:
        """Wait until there is work and it is due; False once closed. Give up spares that stay idle."""
        with self._lock:
            while not self._is_closed:
                if self._is_making:
                    self._change.wait()
                    continue
                if self._used or self._lacks_one():
                    seconds = self._due() - time.monotonic()
                    if seconds <= 0:
                        break
                    self._change.wait(seconds)
                    continue
                self._is_wanted = False
                if not self._change.wait(self._idle_seconds if self._ready else None) and not self._is_wanted:
                    self._give_up()
            return not self._is_closed

    def _due(self) -> float:
        """Return when the thread may work.

        Runs that come while no spare is ready do not put it off, nor do they once they have ended; and a run that goes
        on does not keep it from freeing much memory that others have filled.
        """
        if not self._ready:
            return self._taken_at + PAUSE_SECONDS if self._in_use else self._taken_at
        is_quiet = self._in_use and self._unfreed_seconds <= MAX_UNFREED_SECONDS
        return self._taken_at + QUIET_SECONDS if is_quiet else self._freed_at + PAUSE_SECONDS

    def _lacks_one(self) -> bool:
        return self._is_wanted and len(self._ready) < self._size

    def _give_up(self) -> None:
        self._used.extend(self._ready)
        self._ready.clear()

    def _free_used(self) -> None:
        while self._used:
            instance = self._used[0]
            instance.close()
            with self._lock:
                self._used.popleft()
                self._unfreed_seconds -= instance.computed_seconds
