"""A kernel: one instance that runs script after script. Each finds what earlier ones have defined and imported.

Above: `Sandbox.kernel`. Below: an isolate, and `perform` for each script. A kernel survives the loss of its worker
process: all its scripts run again in another one, which costs their processor time once more.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import anyio

from sandbox.errors import KernelGoneError
from sandbox.limits import check_limits
from sandbox.outcome import Raised, Stopped
from sandbox.perform import check_conditions, check_script, perform, refuse_every_call
from sandbox.terms import Terms

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from sandbox.isolate import Isolate
    from sandbox.limits import Limits
    from sandbox.outcome import Call, Completion, Outcome, RunResult
    from sandbox.stopwatch import Stopwatch


class Kernel:
    """Runs scripts one after the other in one instance. Made by `Sandbox.kernel`.

    What a script has defined is there for the next one. Its tasks are not: they end with it, like its open calls.
    """

    def __init__(self, isolate: Isolate, limits: Limits, seed: int) -> None:
        """Take an isolate that belongs to no run yet."""
        self._isolate = isolate
        self._limits = limits
        self._seed = seed
        self._scripts = 0
        self._wall_ns = 0
        self._origin_ns = 0
        self._gone = ""
        self._busy = anyio.Lock(fast_acquire=True)  # a run yields to other tasks itself

    @property
    def is_gone(self) -> bool:
        """Whether it can run no further script: one was stopped or cancelled, or has broken the interpreter."""
        return bool(self._gone)

    async def run(
        self,
        script: str,
        *,
        answer: Callable[[Call], Awaitable[Completion]] = refuse_every_call,
        manifest: Mapping[str, Any] | None = None,
        filename: str | None = None,
        limits: Limits | None = None,
        on_output: Callable[[str, str], None] | None = None,
        stopwatch: Stopwatch | None = None,
    ) -> RunResult:
        """Run a script to its outcome, after those that are running or waiting for their turn.

        Args:
            script: Python source, as in `Sandbox.run`; so are the return value and what is not said here.
            answer: Awaited for each call of this script. What it raises, `run` raises, and the kernel is gone.
            manifest: The stubs for this script. Functions that earlier scripts defined use them too from now on.
            filename: How tracebacks call it; `script-N.py` if not given. With one name for two scripts, tracebacks may
                show lines of the wrong one.
            limits: Bounds of this script; default are the kernel's.
            on_output: Receives what this script prints. What it raises, `run` raises, and the kernel is gone.
            stopwatch: This script's wall time.

        Raises:
            KernelGoneError: The kernel is gone; the text says why.
            SandboxError: There is no worker process for it any more; the kernel is gone.
            TypeError: The script or `filename` is no text, `limits` is no `Limits`, or `on_output` no plain function.
            ValueError: The script is too long.
        """
        check_script(script)
        check_limits(limits)
        check_conditions("" if filename is None else filename, on_output)
        async with self._busy:
            if self._gone:
                raise KernelGoneError(
                    f"the kernel is gone: {self._gone}. Open a new one; what its scripts defined is lost"
                )
            self._scripts += 1
            filename = filename or f"script-{self._scripts}.py"
            self._gone = f"{filename} was cancelled or its call failed on the host's side"
            result = await perform(
                self._isolate,
                self._terms(limits or self._limits),
                script,
                answer=answer,
                manifest=manifest,
                filename=filename,
                on_output=on_output,
                stopwatch=stopwatch,
            )
            self._gone = "" if self._isolate.is_reusable else _reason(filename, result.outcome)
            return result

    def end(self) -> None:
        """Mark it as gone for whoever still holds it after its block."""
        self._gone = self._gone or "its `async with` block has ended"

    def _terms(self, limits: Limits) -> Terms:
        """Return the terms of the next script, whose clocks go on from the last one's."""
        if self._wall_ns:
            shown = self._wall_ns + self._isolate.elapsed_ns
            now = max(time.time_ns(), shown)
            self._origin_ns += self._isolate.elapsed_ns + now - shown
            self._wall_ns = now
        else:
            self._wall_ns = time.time_ns()
        return Terms(limits, self._seed, self._wall_ns, self._origin_ns, is_kernel=True)


def _reason(filename: str, outcome: Outcome) -> str:
    match outcome:
        case Stopped(limit, amount):
            return f"{filename} was stopped at the limit {limit}={amount:g}"
        case Raised(kind):
            return f"{filename} broke the interpreter ({kind})"
    return f"{filename} did not end"
