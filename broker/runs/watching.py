"""The callbacks of whoever watches a run: told of output and calls, able to stop it, or answering what it asks.

Above: sessions.py, which takes it from a caller, the surface and the server. `Session.execute_code` says what each is.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import anyio

    from broker.calls.attempts import CallRecord
    from broker.calls.extraction import Extractor
    from sandbox import Call, Completion


@dataclass(frozen=True)
class Watching:
    """Who watches one run; all of them may be missing."""

    on_output: Callable[[str, str], None] | None = None
    on_call: Callable[[CallRecord, int, int], None] | None = None
    stop: anyio.CancelScope | None = None
    known_answers: Callable[[Call], Completion | None] | None = None
    extractor: Extractor | None = None

    def enter_stop(self) -> ExitStack:
        """Return what stops the run, entered: when the script begins, and before that is recorded.

        Raises:
            RuntimeError: It was entered before.
        """
        stack = ExitStack()
        if self.stop is None:
            return stack
        if not self.stop.cancelled_caught:  # asyncio would enter it again, and stop at once
            with suppress(RuntimeError):
                stack.enter_context(self.stop)
                return stack
        raise RuntimeError(
            "stop was entered before, by you or for another run: pass a new anyio.CancelScope() to each run, "
            "and do not enter it"
        )

    def telling(self, note: Callable[[CallRecord], None], add: Callable[[str, str], None]) -> Watching:
        """Return the same, with somebody else told first of each call that has ended and of what is printed."""
        on_call, on_output = self.on_call, self.on_output

        def tell(record: CallRecord, ended: int, made: int) -> None:
            note(record)
            if on_call is not None:
                on_call(record, ended, made)

        def show(stream: str, text: str) -> None:
            add(stream, text)
            if on_output is not None:
                on_output(stream, text)

        return replace(self, on_call=tell, on_output=show)
