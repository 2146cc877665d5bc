"""The ticker that lets running guests be interrupted. Where no guest has run for a while, it sleeps.

Above: instance.py, which tells it of each guest that runs. Below: engine.py, whose epoch it moves.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from sandbox.engine import engine

if TYPE_CHECKING:
    from collections.abc import Callable

TICK_SECONDS = 0.01
"""How often a running guest is asked whether it may go on."""

IDLE_TICKS = 100
"""Ticks with no guest before it sleeps: to wake it for each of a script's steps would take longer than the steps."""


class Ticker:
    """A thread that calls `tick` every 10 ms while a guest runs; started with the first."""

    def __init__(self, tick: Callable[[], None]) -> None:
        """Sleep."""
        self._tick = tick
        self._running: set[object] = set()
        self._has_run = False
        self._is_asleep = True
        self._wanted = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self, guest: object) -> None:
        """Tick for a guest that begins to run, on whichever thread.

        Raises:
            RuntimeError: The system gives this process no thread more.
        """
        if self._thread is None:
            self._start()
        self._running.add(guest)
        self._has_run = True
        if self._is_asleep:
            self._wanted.set()

    def end(self, guest: object) -> None:
        """Tick no more for a guest."""
        self._running.discard(guest)

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                thread = threading.Thread(target=self._go, name="wasm-epochs", daemon=True)
                thread.start()
                self._thread = thread

    def _go(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            self._is_asleep = False
            idle = 0
            while idle < IDLE_TICKS:
                time.sleep(TICK_SECONDS)
                self._tick()
                idle = 0 if self._has_run else idle + 1
                self._has_run = False
            self._is_asleep = True
            if self._running:
                self._wanted.set()  # one goes on, or began before it could see that this thread sleeps


TICKER = Ticker(lambda: engine().increment_epoch())
"""The one that all guests of this process share."""
