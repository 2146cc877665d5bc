"""What the sandbox raises: faults on the host's side only. What a script causes is an `Outcome`.

SandboxError
├── ImageError            the guest image is missing, does not fit or cannot be compiled
├── KernelGoneError       a kernel was used after one of its scripts was stopped or broke it
├── ProtocolError         the guest sent something that is not a step
├── SandboxClosedError    used before it was entered or after it was left
├── SystemLimitError      a limit of the system leaves no room for a script
└── WorkerError           no worker process can be started
"""

from __future__ import annotations


class SandboxError(Exception):
    """Base of everything this package raises, except `ValueError` for bad arguments."""


class ImageError(SandboxError):
    """The guest image is missing, does not fit this wasmtime or cannot be compiled; the text says what to do."""


class KernelGoneError(SandboxError):
    """A kernel can run no further script; the text says which one ended it, and how."""


class ProtocolError(SandboxError):
    """The guest sent something that is not a step. A script can bring this about; its run ends as `Raised`."""


class SandboxClosedError(SandboxError):
    """The sandbox was used outside its `async with` block."""


class SystemLimitError(SandboxError):
    """A limit that the system sets this process leaves no room for a script; the text says which and what to do."""


class WorkerError(SandboxError):
    """No worker process can be started; the text says what to do."""
