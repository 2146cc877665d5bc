"""What a run has printed so far: passed on without secrets, and kept for a run that is stopped from outside.

Above: execution.py. Below: redaction.py, and the recording of a run that is resumed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox import RunResult, Stopped, Usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.recordings.recording import Recording
    from broker.redaction import Redactor


class RunOutput:
    """The printed text of one run."""

    def __init__(self, on_output: Callable[[str, str], None] | None, redact: Redactor) -> None:
        """Hand text on as it comes, where somebody listens."""
        self._on_output = on_output
        self._redacted = {"stdout": redact.stream(), "stderr": redact.stream()}
        self._pieces: dict[str, list[str]] = {"stdout": [], "stderr": []}

    def restore(self, before: Recording) -> None:
        """Take what a resumed run has printed before, which is handed on to nobody.

        Raises:
            RecordingError: It was not kept, or is not there.
        """
        self._pieces = {"stdout": [before.stdout], "stderr": [before.stderr]}

    def add(self, stream: str, text: str) -> None:
        """Take a piece of text of "stdout" or "stderr"."""
        self._pieces[stream].append(text)
        if self._on_output is not None and (clean := self._redacted[stream].add(text)):
            self._on_output(stream, clean)

    def end(self) -> None:
        """Hand on what was held back."""
        for stream, redacted in self._redacted.items():
            if self._on_output is not None and (rest := redacted.end()):
                self._on_output(stream, rest)

    def result(self, seconds: float, calls: int) -> RunResult:
        """Return how a run ended that was stopped from outside."""
        stdout, stderr = ("".join(self._pieces[stream]) for stream in ("stdout", "stderr"))
        usage = Usage(seconds, 0.0, len(stdout.encode()) + len(stderr.encode()), calls, 0)
        return RunResult(Stopped("shutdown", round(seconds, 3)), stdout, stderr, usage)
