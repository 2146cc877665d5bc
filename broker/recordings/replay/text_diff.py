"""Two texts as a unified diff, bounded in its length and in the time that it takes.

Above: replay.py. Below: difflib, which may take the square of the number of lines.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from broker.recordings.replay.alignment import equal_at_start

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_DIFF_LINES = 60
MAX_COMPARED = 1_000
"""Lines of each text that are compared; of longer ones those from the first difference on."""

_AROUND = 2


def text_diff(expected: str, actual: str) -> str:
    """Return how two texts differ; what is not shown of it is said at the end."""
    then, now = expected.splitlines(), actual.splitlines()
    if then == now and expected != actual:
        return "the lines are the same, but not what they end with"
    first, left_out = 0, ""
    if max(len(then), len(now)) > MAX_COMPARED:
        first = max(equal_at_start(then, now) - _AROUND, 0)
        same = max(equal_at_start(reversed(then[first:]), reversed(now[first:])) - _AROUND, 0)
        last_then, last_now = len(then) - same, len(now) - same
        if max(last_then, last_now) - first > MAX_COMPARED:
            left_out = f"… of {len(then)} and {len(now)} lines, {MAX_COMPARED} from line {first + 1} on were compared"
        then, now = (
            lines[first : min(last, first + MAX_COMPARED)] for lines, last in ((then, last_then), (now, last_now))
        )
    lines = ["--- recorded", "+++ replayed", *_hunks(then, now, first)]
    if len(lines) > MAX_DIFF_LINES:
        left_out = left_out or f"… {len(lines) - MAX_DIFF_LINES} more lines"
    return "\n".join([*lines[:MAX_DIFF_LINES], *([left_out] if left_out else [])])


def _hunks(then: Sequence[str], now: Sequence[str], first: int) -> Iterator[str]:
    """Yield the lines of a unified diff, numbered as in texts of which `first` lines are not given."""
    for group in SequenceMatcher(None, then, now).get_grouped_opcodes(_AROUND):
        (_, a, _, c, _), (_, _, b, _, d) = group[0], group[-1]
        yield f"@@ -{_span(first + a, b - a)} +{_span(first + c, d - c)} @@"
        for kind, start, end, other_start, other_end in group:
            if kind == "equal":
                yield from (f" {line}" for line in then[start:end])
                continue
            yield from (f"-{line}" for line in then[start:end])
            yield from (f"+{line}" for line in now[other_start:other_end])


def _span(start: int, length: int) -> str:
    """Return a range as diff writes it: an empty one begins at the line before it."""
    return f"{start + 1}" if length == 1 else f"{start + 1 if length else start},{length}"
