"""One instance's place in a worker process: which frames the worker may send for it, and what they change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.errors import ProtocolError
from sandbox.frames import READING_BYTES, Frame, Kind, decode_text
from sandbox.limits import BYTES_A_CHARACTER

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.limits import Limits

_MAX_HELLO = 4_096
_MAX_RAISED = 1024 * 1024
_MAX_NAME = 64


class Seat:
    """One instance's place in a worker, for one run or for those of a kernel.

    Attributes:
        number: Its number in the worker.
        answer: What ended its step; None while one is open.
        step_seconds: Processor time of its last step; None before the first.
        on_output: Gets what the instance prints.
    """

    def __init__(self, number: int, on_output: Callable[[int, str], None]) -> None:
        """Start with no step taken."""
        self.number = number
        self.answer: Frame | None = None
        self.step_seconds: float | None = None
        self.on_output = on_output
        self._printable_bytes = 0
        self._answer_bytes = 0

    def take_on(self, limits: Limits) -> None:
        """Say how much may come for a run that begins."""
        self._printable_bytes = limits.output_bytes
        self._answer_bytes = BYTES_A_CHARACTER * (limits.step_bytes + 1) + READING_BYTES

    def allowed(self, kind: Kind) -> int:
        """Return how long a frame of this kind may be.

        Raises:
            ProtocolError: None may come.
        """
        match kind:
            case Kind.STDOUT | Kind.STDERR if self._printable_bytes:
                return self._printable_bytes
            case Kind.ANSWER if self._answer_bytes:
                return self._answer_bytes
            case Kind.RAISED if self._answer_bytes:
                return _MAX_RAISED
            case Kind.STOPPED if self._answer_bytes:
                return _MAX_NAME
            case Kind.HELLO if self.number == 0:
                return _MAX_HELLO
        raise ProtocolError("the worker sent a frame that may not come now")

    def take(self, frame: Frame) -> None:
        """Take a frame from the worker.

        Raises:
            ProtocolError: The worker may not send it now.
        """
        if frame.kind not in (Kind.STDOUT, Kind.STDERR):
            self.answer = frame
            return
        if not frame.payload:
            raise ProtocolError("the worker sent nothing as printed text")
        self._printable_bytes -= len(frame.payload)
        self.on_output(1 if frame.kind is Kind.STDOUT else 2, decode_text(frame.payload))
