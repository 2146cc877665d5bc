"""A run as one self-contained page: no script, nothing from elsewhere, for screens of any width in both themes.

Above: `codemode show --html`. Below: picture.py. Every text in it may be a model's or a server's: it is made inert and
escaped, and the page's policy allows nothing but its own style.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from html import escape
from importlib import resources
from typing import TYPE_CHECKING

from broker.errors import RecordingError
from broker.recordings.parts import ByDigest
from broker.recordings.showing.picture import spelled_cost, spelled_seconds
from broker.recordings.showing.script_excerpt import excerpt
from codegen.plain_text import counted, indented, one_line, paragraph

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.recordings.parts import Stored
    from broker.recordings.recording import Recording
    from broker.recordings.showing.picture import Picture, Span

MAX_CALLS = 2_000
MAX_LINES = 5_000
_VALUE_CHARACTERS = 4_000
_TEXT_CHARACTERS = 200_000
_NAME_CHARACTERS = 130
_READ_CHARACTERS = 5 * _VALUE_CHARACTERS
"""Of a value's JSON: more than `paragraph` reads."""
_JSON = json.JSONEncoder(indent=2, ensure_ascii=False)


def html_page(recording: Recording, picture: Picture) -> str:
    """Return the page."""
    title = escape(f"{one_line(recording.begun.filename, _NAME_CHARACTERS)} {recording.begun.run_id}")
    body = "\n".join(_body(recording, picture))
    style = resources.files("broker.recordings.showing").joinpath("page.css").read_text("utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _body(recording: Recording, picture: Picture) -> Iterator[str]:
    begun = recording.begun
    began = datetime.fromtimestamp(begun.at / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    yield f"<h1>{escape(one_line(begun.filename, _NAME_CHARACTERS))}</h1>"
    yield f'<p class="dim"><code>{escape(begun.run_id)}</code>, {began}</p>'
    outcome = escape(indented(picture.outcome, _VALUE_CHARACTERS))
    yield f'<p class="{"good" if picture.is_good else "bad"}"><strong>{outcome}</strong></p>'
    size = f"{counted(len(picture.spans), 'call')}, {counted(len(recording.steps), 'step')}"
    yield f"<p>{size}, {spelled_seconds(picture.seconds)}</p>"
    for at, lain in picture.gaps:
        yield f"<p>Resumed at {spelled_seconds(at)}, after {spelled_seconds(lain)}.</p>"
    if recording.cut:
        yield f"<p>The file {escape(recording.cut)}.</p>"
    if picture.spans:
        yield "<h2>Calls over time</h2>"
        values = _Values(recording)
        yield from (_call(values, span, picture.seconds) for span in picture.spans[:MAX_CALLS])
        if len(picture.spans) > MAX_CALLS:
            yield f"<p>and {counted(len(picture.spans) - MAX_CALLS, 'more call')}</p>"
    if recording.has_content:
        yield "<h2>Script</h2>"
        yield _script(recording, picture)
        if printed := recording.printed:
            yield f"<h2>Printed</h2>\n<pre>{escape(paragraph(printed, _TEXT_CHARACTERS))}</pre>"


class _Values:
    """What is shown of values; one that many calls name is read once."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._by_digest: dict[str, str] = {}

    def of(self, span: Span) -> str:
        """Return what a call was given, what allowed or refused it, and its answer."""
        story = self._recording.calls[span.number]
        parts = [f"<pre>{self._shown(story.call.arguments)}</pre>"]
        if story.denied is not None and story.denied.by:
            parts.append(f"<p>{escape(one_line(story.denied.by, _VALUE_CHARACTERS))}</p>")
        elif story.sent is not None and story.sent.by:
            parts.append(f'<p class="dim">allowed by {escape(one_line(story.sent.by, _VALUE_CHARACTERS))}</p>')
        if story.answered is not None:
            parts.append(f"<pre>{self._shown(story.answered.result)}</pre>")
        return "".join(parts)

    def _shown(self, stored: Stored) -> str:
        if not isinstance(stored, ByDigest):
            return self._read(stored)
        if stored.sha256 not in self._by_digest:
            self._by_digest[stored.sha256] = self._read(stored)
        return self._by_digest[stored.sha256]

    def _read(self, stored: Stored) -> str:
        try:
            value = self._recording.load(stored)
        except RecordingError:
            return "not kept"
        text = ""
        for piece in _JSON.iterencode(value):
            text += piece
            if len(text) > _READ_CHARACTERS:
                break
        return escape(paragraph(text, _VALUE_CHARACTERS))


def _call(values: _Values, span: Span, whole: float) -> str:
    line = f"line {span.line}" if span.line else ""
    said = "" if span.status == "ok" else f'<span class="status">{span.status}</span>'
    name = escape(one_line(span.function, _NAME_CHARACTERS))
    bar = _mark("bar", span.begin, span.end, whole)
    ask = "" if span.waited is None else _mark("ask", *span.waited, whole)
    return (
        f'<details class="{span.status}"><summary><span class="head"><span class="name">{name}</span>{said}'
        f'<span class="number">{line}</span><span class="number">{spelled_seconds(span.seconds)}</span></span>'
        f'<span class="track" style="display:block">{bar}{ask}</span></summary>{values.of(span)}</details>'
    )


def _mark(kind: str, begin: float, end: float, whole: float) -> str:
    left, width = (100 * part / max(whole, 1e-9) for part in (begin, max(end - begin, 0.0)))
    return f'<span class="{kind}" style="left:{min(left, 99.5):.2f}%;width:{min(width, 100 - left):.2f}%"></span>'


def _script(recording: Recording, picture: Picture) -> str:
    costs = picture.by_line()
    cells = []
    for number, line in excerpt(recording.script_lines, costs, MAX_LINES):
        if line is None:
            cells.append(f'<div class="cost"></div><div class="at">⋮</div><div>{counted(number, "line")}</div>')
            continue
        count, seconds = costs.get(number, (0, 0.0))
        cost = spelled_cost(count, seconds)
        calls = ' class="calls"' if count else ""
        text = escape(indented(line, _VALUE_CHARACTERS))
        cells.append(f'<div class="cost">{cost}</div><div class="at">{number}</div><div{calls}>{text}</div>')
    return f'<div class="script">{"".join(cells)}</div>'
