"""One untrusted Python script in CPython 3.14 inside WebAssembly. Knows nothing of MCP.

`Sandbox.run` takes a script and a function that answers its calls, and returns a `RunResult`. What a script can cause
is a value in it; exceptions are for faults on the host's side.
"""

from sandbox.confinement import Confinement
from sandbox.errors import (
    ImageError,
    KernelGoneError,
    ProtocolError,
    SandboxClosedError,
    SandboxError,
    SystemLimitError,
    WorkerError,
)
from sandbox.guest_messages import Step
from sandbox.image_loading import component_digest
from sandbox.inert import inert_text, inert_value
from sandbox.journal import Journal, NoJournal, Past, PastStep
from sandbox.kernel import Kernel
from sandbox.limits import Limits
from sandbox.outcome import (
    Call,
    Completed,
    Completion,
    Failed,
    Outcome,
    Parked,
    Printed,
    Raised,
    Reference,
    Returned,
    RunResult,
    Stopped,
    Usage,
)
from sandbox.pool import Pool
from sandbox.sandbox import Isolation, Sandbox
from sandbox.stopwatch import SkippingStopwatch, Stopwatch

__all__ = [
    "Call",
    "Completed",
    "Completion",
    "Confinement",
    "Failed",
    "ImageError",
    "Isolation",
    "Journal",
    "Kernel",
    "KernelGoneError",
    "Limits",
    "NoJournal",
    "Outcome",
    "Parked",
    "Past",
    "PastStep",
    "Pool",
    "Printed",
    "ProtocolError",
    "Raised",
    "Reference",
    "Returned",
    "RunResult",
    "Sandbox",
    "SandboxClosedError",
    "SandboxError",
    "SkippingStopwatch",
    "Step",
    "Stopped",
    "Stopwatch",
    "SystemLimitError",
    "Usage",
    "WorkerError",
    "component_digest",
    "inert_text",
    "inert_value",
]
