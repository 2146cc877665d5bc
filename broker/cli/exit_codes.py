"""The exit codes of `codemode`. Scripts and CI jobs branch on them, so they do not change meaning."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command ended with."""

    COMPLETED = 0
    RAISED = 1
    MISTAKES = 1
    """`check` found some: the script would not be started."""
    DIFFERENT = 1
    """`replay` found differences."""
    USAGE = 2
    """Wrong arguments, config or set-up: nothing was run, or `doctor` found something to mend."""
    STOPPED = 3
    """A limit stopped the script."""
    REFUSED = 4
    """A call was refused and the script did not catch it, or the run waits for an answer."""
    FAULT = 70
    """A fault of ours (`EX_SOFTWARE`), never of the script."""
    HUNG_UP = 129
    """128 and the number of the signal, as a shell says it; the two below too."""
    INTERRUPTED = 130
    TERMINATED = 143
