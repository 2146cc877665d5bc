"""A run as something to look at: calls as spans over time, and what each line of the script cost.

Above: the terminal and the HTML page. Below: recording.py. Times are seconds since the run began; the time that a run
lay interrupted or parked is taken out.
"""

from __future__ import annotations

import heapq
import json
from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from codegen.plain_text import counted
from sandbox import Completed, Parked, Raised, Stopped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.recordings.call_story import CallStatus, CallStory
    from broker.recordings.recording import Recording
    from sandbox import Outcome

_UNITS = ((86_400, "days"), (3_600, "h"), (60, "min"))


@dataclass(frozen=True, slots=True)
class Span:
    """One call.

    Attributes:
        number: Its id.
        line: Where in the script; 0 where that is not known.
        function: `namespace.function`.
        begin: When the script made it.
        sent: When it was sent; None where it was not.
        end: When it was answered or given up; the end of the run where it was neither.
        waited: From when to when a person was asked; None where nobody was.
        status: How it ended.
    """

    number: int
    line: int
    function: str
    begin: float
    sent: float | None
    end: float
    waited: tuple[float, float] | None
    status: CallStatus

    @property
    def seconds(self) -> float:
        """How long the script waited for it."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class Picture:
    """A whole run.

    Attributes:
        seconds: From its beginning to its end.
        spans: In the order in which the calls were made.
        gaps: When it was resumed, and the seconds that it lay before that.
        outcome: How it ended, as a sentence.
        is_good: Whether it completed.
    """

    seconds: float
    spans: tuple[Span, ...]
    gaps: tuple[tuple[float, float], ...]
    outcome: str
    is_good: bool

    def lanes(self) -> list[list[Span]]:
        """Return the spans in rows, concurrent ones below each other."""
        lanes: list[list[Span]] = []
        busy: list[tuple[float, int]] = []  # until when, and which lane
        free: list[int] = []
        for span in self.spans:
            while busy and busy[0][0] <= span.begin:
                heapq.heappush(free, heapq.heappop(busy)[1])
            if free:
                lane = heapq.heappop(free)
            else:
                lane = len(lanes)
                lanes.append([])
            lanes[lane].append(span)
            heapq.heappush(busy, (span.end, lane))
        return lanes

    def by_line(self) -> dict[int, tuple[int, float]]:
        """Return for each line of the script its calls, and for how many seconds one or more of them was under way."""
        found: dict[int, tuple[int, float, float]] = {}
        for span in self.spans:
            count, seconds, until = found.get(span.line, (0, 0.0, 0.0))
            more = max(0.0, span.end - max(span.begin, until))
            found[span.line] = (count + 1, seconds + more, max(until, span.end))
        return {line: (count, seconds) for line, (count, seconds, _) in found.items()}


def picture_of(recording: Recording) -> Picture:
    """Draw a recording."""
    clock = _Clock(recording.begun.at, recording.gaps)
    end = clock.seconds(recording.last_at)
    spans = tuple(_span(story, clock, end) for story in recording.calls.values())
    said, is_good = _outcome(recording)
    return Picture(end, spans, clock.gaps, said, is_good)


def spelled_seconds(seconds: float) -> str:
    """Return `345 ms`, `1.2 s`, `3.4 min`, `5.6 h` or `7.8 days`: two of a unit before it becomes one of the next."""
    if seconds < 1:
        return f"{seconds * 1_000:.0f} ms"
    length, unit = next(((length, unit) for length, unit in _UNITS if seconds >= 2 * length), (1, "s"))
    return f"{seconds / length:.1f} {unit}"


def spelled_cost(count: int, seconds: float) -> str:
    """Return `4 calls, 19 ms`: how many calls a line made, and how long it waited for them; empty for none."""
    return f"{counted(count, 'call')}, {spelled_seconds(seconds)}" if count else ""


class _Clock:
    def __init__(self, began: int, gaps: Sequence[tuple[int, int]]) -> None:
        """Take the gaps in order; none begins before the one ahead of it has ended."""
        self._began = began
        self._since = [since for since, _ in gaps]
        self._until = [until for _, until in gaps]
        self._lain = [0, *accumulate(until - since for since, until in gaps)]
        self.gaps = tuple((self.seconds(until), (until - since) / 1e9) for since, until in gaps)

    def seconds(self, at: int) -> float:
        before = bisect_left(self._since, at)
        lain = self._lain[before]
        if before and at < self._until[before - 1]:
            lain -= self._until[before - 1] - at
        return max((at - self._began - lain) / 1e9, 0.0)  # the clock may have been set back


def _span(story: CallStory, clock: _Clock, run_end: float) -> Span:
    ended = story.answered.at if story.answered is not None else story.cancelled
    begin = clock.seconds(story.made)
    end = max(begin, run_end if ended is None else clock.seconds(ended))
    sent = None if story.sent is None else clock.seconds(story.sent.at)
    waited = None
    if story.asked is not None:
        decided = story.sent.at if story.sent is not None else story.denied.at if story.denied is not None else None
        waited = (clock.seconds(story.asked), end if decided is None else clock.seconds(decided))
    return Span(story.call.id, story.line, story.function, begin, sent, end, waited, story.status)


def _outcome(recording: Recording) -> tuple[str, bool]:
    if recording.outcome is not None:
        return outcome_sentence(recording.outcome), isinstance(recording.outcome, Completed)
    if recording.ended is not None:
        return "ended", True
    return "is running" if recording.state == "running" else "was interrupted", False


def outcome_sentence(outcome: Outcome) -> str:
    """Say how a run ended, without its subject."""
    match outcome:
        case Completed(value):
            return f"completed with {json.dumps(value, ensure_ascii=False)}" if value is not None else "completed"
        case Raised(kind, message, _):
            return f"raised {kind}: {message}"
        case Stopped(limit, amount):
            return f"was stopped: the limit {limit}={amount:g} was reached"
        case Parked(calls):
            return f"is parked and waits for somebody to allow {counted(len(calls), 'call')}"
