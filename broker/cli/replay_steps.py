"""`codemode replay --step`: forward and back through a run.

Above: replay.py. Below: a replay whose steps are all kept, so that going back costs nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from broker.cli.compile_progress import compile_progress
from broker.cli.diffs import print_diff
from broker.cli.exit_codes import ExitCode
from broker.cli.prompts import read_line
from broker.cli.terminal import Problem, can_ask, results
from broker.recordings.replay.replay import replay
from broker.recordings.showing.picture import outcome_sentence
from broker.recordings.showing.script_excerpt import around
from codegen.plain_text import counted, indented, one_line, paragraph
from sandbox import Sandbox

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.recordings.recording import Recording
    from sandbox import Printed, Step

_CHARACTERS = 110
_MAX_CALLS = 20


@dataclass(frozen=True, slots=True)
class Moment:
    """The run after a step.

    Attributes:
        number: The step.
        now_seconds: The run's clock.
        lines: Lines of the script that wait for these calls.
        in_flight: The calls that are open, the first of many, as text.
        came_in: The answers that this step was given, as text.
        printed: What it printed.
        outcome: How the run ended in it, as text.
    """

    number: int
    now_seconds: float
    lines: tuple[int, ...]
    in_flight: tuple[str, ...]
    came_in: tuple[str, ...]
    printed: str
    outcome: str


async def walk(recording: Recording) -> ExitCode:
    """Show the run step by step: at a terminal as the keys say, elsewhere all steps in order."""
    kept: list[tuple[int, Step, Sequence[Printed]]] = []
    async with Sandbox(compiling=compile_progress) as sandbox:
        found = await replay(sandbox, recording, on_step=lambda *step: kept.append(step))
    moments, script = _moments(recording, kept), recording.script_lines
    if not moments and found.difference is None:
        raise Problem("the recording has no step")
    if moments and can_ask():
        await _browse(script, moments)
    else:
        for moment in moments:
            results().print(_picture(script, moment, len(moments)), soft_wrap=True)
    if found.difference is not None:
        print_diff(results(), f"{found.difference.what} came out differently\n{found.difference.diff}")
        return ExitCode.DIFFERENT
    return ExitCode.COMPLETED


async def _browse(script: Sequence[str], moments: Sequence[Moment]) -> None:
    position = 0
    while True:
        results().print(_picture(script, moments[position], len(moments)), soft_wrap=True)
        results().print(Text("Enter forward, b back, a number, q quit: "), end="")
        answer = (await read_line()).strip().lower()
        if answer == "q" or (answer == "" and position == len(moments) - 1):
            return
        if answer.isdecimal():
            position = int(answer)
        else:
            position += -1 if answer == "b" else 1
        position = min(max(position, 0), len(moments) - 1)


def _moments(recording: Recording, kept: Sequence[tuple[int, Step, Sequence[Printed]]]) -> list[Moment]:
    moments = []
    made: dict[int, tuple[int, str]] = {}
    in_flight: dict[int, tuple[int, str]] = {}
    for number, step, printed in kept:
        written = recording.steps[number]
        came_in = [f"{made[call][1]} -> {_answer(recording, call)}" for call in written.completions]
        for call_id in (*written.completions, *step.cancelled):
            in_flight.pop(call_id, None)
        for call in step.calls:
            arguments = json.dumps(call.arguments, ensure_ascii=False)
            made[call.id] = in_flight[call.id] = (call.line, one_line(f"{call.function} {arguments}", _CHARACTERS))
        text = paragraph("".join(piece.text for piece in printed), 4_000)
        shown = list(islice(in_flight.values(), _MAX_CALLS))
        more = [f"and {counted(len(in_flight) - _MAX_CALLS, 'more call')}"] if len(in_flight) > _MAX_CALLS else []
        moments.append(
            Moment(
                number,
                written.now_ns / 1e9,
                tuple(sorted({line for line, _ in shown})),
                (*(f"line {line}: {called}" for line, called in shown), *more),
                tuple(came_in),
                text,
                "" if step.outcome is None else one_line(outcome_sentence(step.outcome), _CHARACTERS * 2),
            )
        )
    return moments


def _answer(recording: Recording, call: int) -> str:
    answered = recording.calls[call].answered
    if answered is None:
        return ""
    return one_line(json.dumps(recording.load(answered.result), ensure_ascii=False), _CHARACTERS)


def _picture(script: Sequence[str], moment: Moment, count: int) -> Group:
    parts = [Text(f"step {moment.number} of {count - 1}, at {moment.now_seconds:.3f} s", "bold")]
    parts += [Text(f"  <- {one}", "green") for one in moment.came_in]
    parts += _script_lines(script, moment.lines)
    parts += [Text(f"  -> {one}", "cyan") for one in moment.in_flight]
    if moment.printed:
        parts.append(Text("  printed:", "dim"))
        parts += [Text(f"    {line}") for line in moment.printed.splitlines()]
    if moment.outcome:
        parts.append(Text(f"  {moment.outcome}", "bold"))
    return Group(*parts, Text(""))


def _script_lines(script: Sequence[str], waiting: Sequence[int]) -> list[Text]:
    shown = around(waiting, len(script))
    lines = []
    for before, number in zip([0, *shown], shown, strict=False):
        if before and number > before + 1:
            lines.append(Text("      ⋮", "dim"))
        mark = "▶" if number in waiting else " "
        style = "bold" if number in waiting else "dim"
        lines.append(Text(f"{mark} {number:4} {indented(script[number - 1], _CHARACTERS)}", style))
    return lines
