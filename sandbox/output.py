"""What one run printed: made inert, kept, and passed on to whoever watches it, always on the event loop's thread.

Above: `Sandbox.run`. Below: an instance in this process prints on whatever thread it computes on, one in a worker
on the event loop's.
"""

from __future__ import annotations

import collections
import contextlib
import threading
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

import anyio

from sandbox.inert import inert_text
from sandbox.outcome import Printed
from sandbox.threads import waker

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

MOST_PIECES = 1_000
"""Pieces that are kept apart: one takes as much room as fifty characters."""


class Output:
    """The printed text of one run. Made on the event loop's thread; `add` may be called on any."""

    def __init__(self, on_output: Callable[[str, str], None] | None, *, already_seen: int = 0) -> None:
        """Takes who watches, and how many characters they have had before."""
        self._scope = None if on_output is None else anyio.CancelScope()
        self._pieces: list[Printed] = []
        self._taken = 0
        self._joined = 0
        self._on_output = on_output
        self._already_seen = already_seen
        self._waiting: collections.deque[Printed] = collections.deque()
        self._loop_thread = threading.get_ident()
        self._wake = None if on_output is None else waker(self._pass_on)
        self._error: BaseException | None = None

    @property
    def scope(self) -> AbstractContextManager[object]:
        """What the run belongs in: it ends when the watcher raises."""
        return self._scope or contextlib.nullcontext()

    def add(self, output: int, text: str) -> None:
        """Takes a piece of text for output 1 or 2."""
        piece = Printed("stdout" if output == 1 else "stderr", inert_text(text))
        self._pieces.append(piece)
        if len(self._pieces) - self._joined > MOST_PIECES:
            self._join()
        if self._wake is None:
            return
        self._waiting.append(piece)
        if threading.get_ident() == self._loop_thread:
            self._pass_on()
        else:
            with contextlib.suppress(RuntimeError):  # the event loop has ended meanwhile: nobody watches
                self._wake()

    def take_new(self) -> list[Printed]:
        """Returns what came since the last time."""
        new = self._pieces[self._taken :]
        self._taken += len(new)
        self._joined = max(self._joined, self._taken)
        return new

    def finish(self) -> tuple[str, str]:
        """Passes on what is left; returns all of stdout and of stderr.

        Raises:
            BaseException: What the watcher raised.
        """
        self._pass_on()
        if self._error is not None:
            raise self._error
        texts: dict[str, list[str]] = {"stdout": [], "stderr": []}
        for piece in self._pieces:
            texts[piece.stream].append(piece.text)
        return "".join(texts["stdout"]), "".join(texts["stderr"])

    def _join(self) -> None:
        """Makes one of pieces that follow each other, for a script that prints a character at a time."""
        recent = groupby(self._pieces[self._joined :], attrgetter("stream"))
        joined = [Printed(stream, "".join(piece.text for piece in pieces)) for stream, pieces in recent]
        self._pieces[self._joined :] = joined
        self._joined = len(self._pieces)

    def _pass_on(self) -> None:
        while self._waiting and self._on_output is not None and self._error is None:
            piece = self._waiting.popleft()
            seen = min(self._already_seen, len(piece.text))
            self._already_seen -= seen
            if seen == len(piece.text):
                continue
            try:
                self._on_output(piece.stream, piece.text[seen:])
            except BaseException as error:  # noqa: BLE001  # raised by `finish`, out of the run it belongs to
                self._error = error
                if self._scope is not None:
                    self._scope.cancel()
