"""`codemode show`: one run as a picture, in the terminal or as a page."""

from __future__ import annotations

import gc
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from broker.cli.exit_codes import ExitCode
from broker.cli.stored import read_target, when
from broker.cli.terminal import Problem, note, results, write_file, write_result
from broker.collector import collector_at_rest
from broker.recordings.showing.html_page import html_page
from broker.recordings.showing.picture import picture_of, spelled_cost, spelled_seconds
from broker.recordings.showing.script_excerpt import excerpt
from broker.whole_file import PRIVATE
from codegen.plain_text import counted, indented, one_line, paragraph

if TYPE_CHECKING:
    from rich.table import Table

    from broker.recordings.recording import Recording
    from broker.recordings.showing.picture import Picture, Span

STYLES = {"ok": "green", "failed": "red", "refused": "yellow", "waiting": "yellow", "unknown": "red"}
MAX_ROWS = 60
"""Calls that have a row each; of more there is one row for as many as do not overlap."""

MAX_LINES = 500
"""Of a script; of a longer one those around calls are shown."""

_NAME_CHARACTERS = 34
_LINE_CHARACTERS = 96
_COST_WIDTH = 18
_OUTPUT_CHARACTERS = 4_000
_LEAST_WIDTH = 10
_LEAST_NAME = 12
_BESIDE_WIDTH = 22
"""What a bar has beside it: the line, spaces, the time and how the call ended."""


@dataclass(frozen=True)
class ShowRequest:
    """The arguments of `codemode show`."""

    target: str
    html: str | None
    as_json: bool


async def show_run(request: ShowRequest) -> ExitCode:
    """Print the picture of a run, or write it to a file."""
    with collector_at_rest():  # a long recording has no cycles, and it would double the time
        try:
            return _show(request)
        finally:
            gc.freeze()


def _show(request: ShowRequest) -> ExitCode:
    if request.as_json and request.html is not None:
        raise Problem("--json has no effect with --html", "Leave one of them out.")
    recording = read_target(request.target)
    picture = picture_of(recording)
    if request.html is not None:
        write_file(request.html, html_page(recording, picture), mode=PRIVATE)
        note(f"{request.html}: {counted(len(picture.spans), 'call')}")
    elif request.as_json:
        write_result(json.dumps(_json(recording, picture), indent=2))
    else:
        results().print(shown(recording, picture), soft_wrap=True)
    return ExitCode.COMPLETED


def _json(recording: Recording, picture: Picture) -> dict[str, object]:
    return {"run_id": recording.begun.run_id, "began": recording.begun.at, **asdict(picture)}


def shown(recording: Recording, picture: Picture) -> Group:
    """Return everything that is printed of a run."""
    parts: list[Text | Table] = [_summary(recording, picture), Text("")]
    if picture.spans:
        parts += [*_bars(picture), Text("")]
    if recording.has_content:
        parts += _script(recording, picture)
        parts += _output(recording)
    return Group(*parts)


def _summary(recording: Recording, picture: Picture) -> Text:
    begun = recording.begun
    outcome = indented(picture.outcome, _LINE_CHARACTERS * 2)
    text = Text.assemble(
        (f"{one_line(begun.filename, _NAME_CHARACTERS)}  {begun.run_id}", "bold"),
        f"  {when(begun.at)}\n",
        (outcome, "green" if picture.is_good else "red"),
        f"\n{counted(len(picture.spans), 'call')}, {counted(len(recording.steps), 'step')}",
        f", {spelled_seconds(picture.seconds)}",
    )
    for at, lain in picture.gaps:
        text.append(f"\nresumed at {spelled_seconds(at)}, after {spelled_seconds(lain)}", "yellow")
    if recording.cut:
        text.append(f"\nthe file {recording.cut}", "yellow")
    return text


def _bars(picture: Picture) -> list[Text]:
    of_names = _width_of_names(picture)
    width = max(_LEAST_WIDTH, results().width - of_names - _BESIDE_WIDTH)
    scale = width / max(picture.seconds, 1e-9)
    if len(picture.spans) > MAX_ROWS:
        lanes = picture.lanes()
        rows = [_lane(lane, scale, width, of_names) for lane in lanes[:MAX_ROWS]]
        more = [Text(f"and {len(lanes) - MAX_ROWS} more rows", "dim")] if len(lanes) > MAX_ROWS else []
    else:
        rows, more = [_row(span, scale, width, of_names) for span in picture.spans], []
    ruler = Text(f"{'':{of_names + 6}}0{spelled_seconds(picture.seconds):>{width - 1}}", "dim")
    return [ruler, *rows, *more]


def _width_of_names(picture: Picture) -> int:
    """Return what the names need, if that leaves room for the bars."""
    if len(picture.spans) > MAX_ROWS:
        return 10  # a row is of many calls, and says how many
    room = results().width - _BESIDE_WIDTH - _LEAST_WIDTH
    return max(_LEAST_NAME, min(room, _NAME_CHARACTERS, max(len(span.function) + 1 for span in picture.spans)))


def _row(span: Span, scale: float, width: int, of_names: int) -> Text:
    line = f"{span.line:>4}" if span.line else "    "
    name = one_line(span.function, of_names - 1)
    text = Text.assemble((f"{line}  ", "dim"), f"{name:{of_names}}")
    bar = [" "] * width
    _draw(bar, span, scale)
    for char in bar:
        text.append(char, _bar_style(char, span))
    said = "" if span.status == "ok" else f" {span.status}"
    text.append(f" {spelled_seconds(span.seconds)}{said}", STYLES.get(span.status, "dim") if said else "")
    return text


def _lane(lane: list[Span], scale: float, width: int, of_names: int) -> Text:
    bar = [" "] * width
    styles = [""] * width
    for span in lane:
        drawn = [" "] * width
        _draw(drawn, span, scale)
        for place, char in enumerate(drawn):
            if char != " ":
                bar[place], styles[place] = char, _bar_style(char, span)
    label = counted(len(lane), "call")
    text = Text(f"{label:>{of_names + 4}}  ", "dim")
    for char, style in zip(bar, styles, strict=True):
        text.append(char, style)
    return text


def _draw(bar: list[str], span: Span, scale: float) -> None:
    """Draw a span: `░` until it was sent, `?` while somebody was asked, `█` until it was answered."""
    last = len(bar) - 1
    begin, end = min(int(span.begin * scale), last), min(int(span.end * scale), last)
    sent = end + 1 if span.sent is None else min(int(span.sent * scale), last)
    for place in range(begin, end + 1):
        bar[place] = "░" if place < sent else "█"
    if span.waited is not None:
        for place in range(min(int(span.waited[0] * scale), last), min(int(span.waited[1] * scale), last) + 1):
            bar[place] = "?"
    elif span.sent is not None and sent >= end:
        bar[end] = "█"


def _bar_style(char: str, span: Span) -> str:
    return "yellow" if char == "?" else STYLES.get(span.status, "dim")


def _script(recording: Recording, picture: Picture) -> list[Text]:
    costs = picture.by_line()
    lines = []
    for number, line in excerpt(recording.script_lines, costs, MAX_LINES):
        if line is None:
            lines.append(Text(f"{'':{_COST_WIDTH}} {'⋮':>4}  {counted(number, 'line')}", "dim"))
            continue
        count, seconds = costs.get(number, (0, 0.0))
        text = Text(f"{spelled_cost(count, seconds):>{_COST_WIDTH}} {number:4}  ", "cyan" if count else "dim")
        text.append(indented(line, _LINE_CHARACTERS), "bold" if count else "")
        lines.append(text)
    return [*lines, Text("")]


def _output(recording: Recording) -> list[Text]:
    printed = recording.printed
    if not printed:
        return []
    return [Text("printed:", "dim"), Text(paragraph(printed, _OUTPUT_CHARACTERS))]
