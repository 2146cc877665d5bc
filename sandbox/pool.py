"""Instances that wait for a script: made and warmed ahead by a thread, used once, given up when nobody comes.

The same thread frees those that were used: giving memory back takes as long as running a small script.

No script has run in any of them, and all of them are alike: what differs between runs is decided by `Instance.take_on`,
so a run on an instance from here is the same, byte for byte, as on one made for it.

Above: the isolates in this process, or the worker. Below: `Instance`.
"""

from __future__ import annotations

import collections
import math
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import wasmtime

from sandbox.errors import ImageError
from sandbox.instance import Instance

if TYPE_CHECKING:
    from sandbox.image import Image

SPARE_BYTES = 2 * 1024 * 1024
"""What an instance takes that has been warmed."""

PAUSE_SECONDS = 0.002
"""How long after the last run has ended, or has taken the last instance, the thread works. Runs that follow each other
share neither their core nor the page tables of the process with it."""

QUIET_SECONDS = 0.5
"""How long after a run that goes on has left an instance for the next: on few cores the thread holds up that run, and
the servers that it waits for."""

MOST_UNFREED_SECONDS = 0.016
"""What the instances that wait to be freed in the host's own process may have computed, all together: they hold some
megabytes for each millisecond, at what a page costs. One that makes it more is freed where it was used. In a worker all
wait, and those that have computed for longer wait for no run."""


@dataclass(frozen=True, slots=True)
class Pool:
    """How many instances are kept ready.

    Attributes:
        size: Instances in each process that runs guests. One takes 2 MB; a run takes one, finding what tools a script
            names another. They are replaced when the run has ended, or at once when none is left.
        idle_seconds: After so long without a run they are given up; the first run afterwards makes its own.

    Raises:
        ValueError: A field is out of range; the text names it.
    """

    size: int = 3
    idle_seconds: float = 60.0

    def __post_init__(self) -> None:
        """Checks every field."""
        size: object = self.size
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"size must be an integer of at least 1, not {size!r}: pool=None means no pool")
        seconds: object = self.idle_seconds
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
            raise ValueError(f"idle_seconds must be a positive and finite number, not {seconds!r}")


class Spares:
    """The instances of one process."""

    def __init__(self, image: Image, pool: Pool | None, *, most_unfreed_seconds: float = MOST_UNFREED_SECONDS) -> None:
        """Starts the thread, if there is a pool. The first are made after the first run."""
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
        self._in_use = 0
        self._taken_at = 0.0
        self._freed_at = 0.0
        self._is_closed = False
        self._thread = None if pool is None else threading.Thread(target=self._work, name="wasm-pool", daemon=True)
        if self._thread is not None:
            self._thread.start()

    def __len__(self) -> int:
        """How many are ready."""
        return len(self._ready)

    def take(self) -> Instance:
        """Returns one for a run: the newest, which caches still hold, or a new one where none is ready.

        A new one takes as long as a step may; on a thread, whose caches are cold, it would take half as long again.

        Raises:
            ImageError: The image is not one of this version's.
        """
        with self._lock:
            if self._ready or not self._is_wanted:
                self._taken_at = time.monotonic()
            self._is_wanted = True
            self._in_use += 1
            self._change.notify()
            if self._ready:
                return self._ready.pop()
        try:
            return Instance(self._image)
        except BaseException:
            with self._lock:
                self._in_use -= 1
            raise

    def put(self, instance: Instance) -> None:
        """Keeps one that has never been used."""
        with self._lock:
            if not self._is_closed and len(self._ready) < self._size:
                self._ready.append(instance)
                return
        instance.close()

    def free(self, instance: Instance) -> None:
        """Has the thread free one that was used; frees it at once without one, or if too much waits already."""
        if self._thread is None:
            instance.close()
            return
        with self._lock:
            self._in_use -= 1
            self._freed_at = time.monotonic()
            self._change.notify()
            unfreed = self._unfreed_seconds + instance.computed_seconds
            if not self._is_closed and unfreed <= self._most_unfreed_seconds:
                self._unfreed_seconds = unfreed
                self._used.append(instance)
                return
        instance.close()

    def close(self) -> None:
        """Gives up all, and waits until the thread has ended, for milliseconds: it holds the image."""
        with self._lock:
            self._is_closed = True
            self._give_up()
            self._change.notify()
        if self._thread is not None:
            self._thread.join()
        self._free_used()
        del self._image  # or an isolate that somebody still holds would keep it

    def _work(self) -> None:
        while self._wait():
            self._free_used()
            if self._lacks_one():
                try:
                    self.put(Instance(self._image))
                except (wasmtime.WasmtimeError, ImageError, MemoryError):
                    self._is_wanted = False  # the next run meets it again, and says so

    def _wait(self) -> bool:
        """Waits until there is something to do, and it is time; False once closed. After long it gives all up."""
        with self._lock:
            while not self._is_closed:
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
        """Returns when the thread may work; runs that come while none is ready do not put it off.

        Nor does a run that goes on keep it from giving back what others have filled.
        """
        if not self._ready:
            return self._taken_at + PAUSE_SECONDS
        is_quiet = self._in_use and self._unfreed_seconds <= MOST_UNFREED_SECONDS
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
