"""One script on one isolate, from its conditions to its result.

Above: `Sandbox.run` and `Kernel.run`. Below: run.py, which drives, and output.py, which collects.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from sandbox.journal import Journal, NoJournal, Past
from sandbox.outcome import Failed, RunResult, Usage
from sandbox.output import Output
from sandbox.run import Run
from sandbox.stopwatch import Stopwatch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from sandbox.isolate import Isolate
    from sandbox.outcome import Call, Completion
    from sandbox.terms import Terms

MAX_SCRIPT_CHARACTERS = 2 * 1024 * 1024


async def refuse_every_call(call: Call) -> Completion:
    """Refuse every call, as a sandbox without tools does."""
    return Failed("ToolRefusedError", f"{call.function} was refused: no tools are connected")


def check_script(script: str) -> None:
    """Refuse a script that is too long, or not text.

    Raises:
        TypeError: It is no `str`.
        ValueError: It has more than `MAX_SCRIPT_CHARACTERS`.
    """
    given: object = script
    if not isinstance(given, str):
        raise TypeError(f"the script must be text, not {type(given).__name__}")
    if len(script) > MAX_SCRIPT_CHARACTERS:
        raise ValueError(f"the script has {len(script)} characters, and {MAX_SCRIPT_CHARACTERS} are allowed")


def check_conditions(filename: object, on_output: object, *, seed: object = None, wall_ns: object = None) -> None:
    """Refuse conditions of a run that would fail later, inside the guest or on the way to it.

    Raises:
        TypeError: `filename` is no text, or `on_output` no plain function.
        ValueError: `seed` or `wall_ns` is no number within its bounds.
    """
    if not isinstance(filename, str):
        raise TypeError(f"filename must be text, not {type(filename).__name__}")
    if on_output is not None and (not callable(on_output) or inspect.iscoroutinefunction(on_output)):
        raise TypeError("on_output must be a plain function, called on the event loop: no `async def`")
    for name, number, bits in (("seed", seed, 64), ("wall_ns", wall_ns, 63)):
        # Rejects bool, which is no number here.
        if number is not None and (type(number) is not int or not 0 <= number < 2**bits):
            raise ValueError(f"{name} must be an integer from 0 to 2**{bits} - 1")


async def perform(  # noqa: PLR0913  # a run's conditions
    isolate: Isolate,
    terms: Terms,
    script: str,
    *,
    answer: Callable[[Call], Awaitable[Completion | None]],
    manifest: Mapping[str, Any] | None,
    filename: str,
    on_output: Callable[[str, str], None] | None,
    stopwatch: Stopwatch | None,
    journal: Journal | None = None,
    past: Past | None = None,
) -> RunResult:
    """Run a script to its outcome; arguments as in `Sandbox.run`."""
    stopwatch = stopwatch or Stopwatch()
    past = past or Past()
    output = Output(on_output, already_seen=past.printed_characters)
    isolate.take_on(terms, output.add)
    run = Run(isolate, terms.limits, answer, stopwatch, journal=journal or NoJournal(), take_printed=output.take_new)
    with output.scope:
        outcome = await run.outcome(script, filename, manifest or {}, past)
    stdout, stderr = output.finish()
    usage = Usage(stopwatch.elapsed, isolate.cpu_seconds, isolate.output_bytes, run.calls, run.steps)
    return RunResult(outcome, stdout, stderr, usage)
