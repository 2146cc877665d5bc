"""The wall time of one run, which stands still while a person is asked."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Stopwatch:
    """Counts from its creation; nested and concurrent pauses count once."""

    def __init__(self) -> None:
        """Starts at zero."""
        self._began = time.monotonic()
        self._paused_at: float | None = None
        self._pauses = 0

    @property
    def elapsed(self) -> float:
        """Seconds so far, pauses left out."""
        return (time.monotonic() if self._paused_at is None else self._paused_at) - self._began

    @property
    def is_paused(self) -> bool:
        """Whether somebody holds a pause."""
        return self._pauses > 0

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Stands still inside the block."""
        self._pauses += 1
        if self._paused_at is None:
            self._paused_at = time.monotonic()
        try:
            yield
        finally:
            self._pauses -= 1
            if self._pauses == 0 and self._paused_at is not None:
                self._began += time.monotonic() - self._paused_at
                self._paused_at = None
