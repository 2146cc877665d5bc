"""One untrusted Python script in CPython 3.14 inside WebAssembly. Knows nothing of MCP.

`Sandbox.run` takes a script and a function that answers its calls, and returns a `RunResult`. What a script can cause
is a value in it; exceptions are for faults on the host's side.
"""

from sandbox.confinement import Confinement
from sandbox.errors import ImageError, ProtocolError, SandboxClosedError, SandboxError, WorkerError
from sandbox.inert import inert_text, inert_value
from sandbox.limits import Limits
from sandbox.outcome import (
    Call,
    Completed,
    Completion,
    Failed,
    Outcome,
    Raised,
    Reference,
    Returned,
    RunResult,
    Stopped,
    Usage,
)
from sandbox.sandbox import Sandbox
from sandbox.stopwatch import Stopwatch

__all__ = [
    "Call",
    "Completed",
    "Completion",
    "Confinement",
    "Failed",
    "ImageError",
    "Limits",
    "Outcome",
    "ProtocolError",
    "Raised",
    "Reference",
    "Returned",
    "RunResult",
    "Sandbox",
    "SandboxClosedError",
    "SandboxError",
    "Stopped",
    "Stopwatch",
    "Usage",
    "WorkerError",
    "inert_text",
    "inert_value",
]
