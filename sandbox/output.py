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

MAX_PIECES = 1_000
"""Pieces that are kept apart: one takes as much room as fifty characters."""

MAX_IN_TURN = 50_000
"""How many pieces of a step, stdout and stderr in turn, are kept in their order. What follows becomes one piece for
each stream, so that a step that is taken again has the same pieces however its text was cut."""

_stream = attrgetter("stream")


class Output:
    """The printed text of one run. Made on the event loop's thread; `add` may be called on any."""

    def __init__(self, on_output: Callable[[str, str], None] | None, *, already_seen: int = 0) -> None:
        """Pass text on to `on_output`, without the characters that whoever watches has seen already."""
        self._scope = None if on_output is None else anyio.CancelScope()
        self._pieces: list[Printed] = []
        self._joined = 0
        self._turns = 0
        self._taken: dict[str, list[str]] = {"stdout": [], "stderr": []}
        self._on_output = on_output
        self._already_seen = already_seen
        self._waiting: collections.deque[Printed] = collections.deque()
        self._loop_thread = threading.get_ident()
        self._wake = None if on_output is None else waker(self._pass_on)
        self._error: BaseException | None = None

    @property
    def scope(self) -> AbstractContextManager[object]:
        """The block in which to run: leaves it when the watcher raises."""
        return self._scope or contextlib.nullcontext()

    def add(self, output: int, text: str) -> None:
        """Take a piece of text for output 1 or 2."""
        piece = Printed("stdout" if output == 1 else "stderr", inert_text(text))
        self._pieces.append(piece)
        if len(self._pieces) - self._joined > MAX_PIECES:
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
        """Return what came since the last time."""
        if not self._pieces:
            return []
        new, self._pieces, self._joined, self._turns = self._pieces, [], 0, 0
        if len(new) > MAX_IN_TURN:
            new = _merged(new)
            new[MAX_IN_TURN:] = _merged(sorted(new[MAX_IN_TURN:], key=_stream))
        for stream, pieces in groupby(sorted(new, key=_stream), _stream):
            self._taken[stream].append("".join(piece.text for piece in pieces))
        return new

    def finish(self) -> tuple[str, str]:
        """Pass on what is left; return all of stdout and of stderr.

        Raises:
            BaseException: What the watcher raised.
        """
        self._pass_on()
        if self._error is not None:
            raise self._error
        self.take_new()
        return "".join(self._taken["stdout"]), "".join(self._taken["stderr"])

    def _join(self) -> None:
        """Join pieces of one stream that follow each other, for scripts that print a character at a time."""
        recent = self._pieces[self._joined :]
        if self._turns > MAX_IN_TURN:
            recent.sort(key=_stream)
        joined = _merged(recent)
        goes_on = self._joined and self._pieces[self._joined - 1].stream == joined[0].stream
        self._turns += len(joined) - bool(goes_on)
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


def _merged(pieces: list[Printed]) -> list[Printed]:
    return [Printed(stream, "".join(piece.text for piece in group)) for stream, group in groupby(pieces, _stream)]
