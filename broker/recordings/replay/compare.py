"""Two recordings of a script compared: calls that were added, removed or changed, and what else is different.

Above: `codemode replay --live` and `--script`. Below: recording.py, alignment.py. Calls are matched in order by
function and arguments; volatile fields of results are ignored by JSON pointer.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict, deque
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from broker.api_arguments import check_recording
from broker.authorization.predicates import pointer
from broker.recordings.replay.alignment import Alignment
from broker.recordings.replay.replay import Difference, pretty
from broker.recordings.writing import outcome_json
from sandbox import Raised

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from broker.recordings.call_story import CallStory
    from broker.recordings.recording import Recording

_MAX_FIELDS = 50
_ABSENT = "(absent)"
_NOT_IN_ORDER = (
    "the runs have too many calls that are alike or changed to find each in its order: some were put beside the next "
    "equal one, or the next of the same function"
)


@dataclass(frozen=True, slots=True)
class Change:
    """One call that is not the same in both runs.

    Attributes:
        kind: `added` and `removed` are of the second run.
        function: What was called.
        line: Where in the script of the run that has the call.
        fields: Differing fields with both values as JSON; pointers begin with `/arguments` or `/result`.
    """

    kind: Literal["added", "removed", "changed"]
    function: str
    line: int
    fields: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is different between two runs; falsy when nothing is."""

    changes: tuple[Change, ...]
    others: tuple[Difference, ...]
    notes: tuple[str, ...] = ()
    """What a reader should know beside that."""

    def __bool__(self) -> bool:
        """Tell whether anything is different."""
        return bool(self.changes or self.others)


def compare_recordings(first: Recording, second: Recording, ignored: Collection[str] = ()) -> Comparison:
    """Compare two runs, call by call in their order, with what they printed and how they ended.

    Args:
        first: The recorded run.
        second: The new one.
        ignored: JSON pointers into the results of calls, as in `/result/updated_at`, and into the outcome, as in
            `/outcome/completed/total`; `*` stands for any key or index. `/printed` is the printed text.

    Raises:
        RecordingError: One of them does not hold its content.
        ValueError: A pointer is to nothing that is compared.
        TypeError: One is not a `Recording`, or `ignored` is a single text.
    """
    check_recording(first)
    check_recording(second)
    if isinstance(ignored, str):
        raise TypeError(f"ignored are several JSON pointers: write [{ignored!r}]")
    for place in ignored:
        if not is_compared(place):
            raise ValueError(
                f"ignored are JSON pointers as '/result/updated_at', '/outcome/…', '/printed'; not {place!r}"
            )
    old, new = _made(first), _made(second)
    alignment = Alignment([made.key for made in old], [made.key for made in new])
    changes: list[Change] = []
    for kind, a, b, c, d in alignment.get_opcodes():
        pairs = zip(old[a:b], new[c:d], strict=True) if kind == "equal" else _pairs(old[a:b], new[c:d])
        for one, other in pairs:
            changes += _changed(one, other, ignored)
    notes = () if alignment.is_complete else (_NOT_IN_ORDER,)
    return Comparison(tuple(changes), tuple(_others(first, second, ignored)), notes)


def call_key(function: str, arguments: Any) -> str:
    """Return what two calls have in common that are equal, whenever they are made."""
    return json.dumps([function, arguments], sort_keys=True)


def is_compared(place: str) -> bool:
    """Tell whether a JSON pointer may be one that `compare_recordings` ignores."""
    before, *parts = place.split("/")
    return not before and (parts == ["printed"] or parts[:1] in (["arguments"], ["result"], ["outcome"], ["*"]))


def fields(then: Any, now: Any, ignored: Collection[str], place: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield the places at which two JSON values differ, with both values."""
    if any(_matches(place, pattern) for pattern in ignored):
        return
    if isinstance(then, dict) and isinstance(now, dict):
        for key in {**then, **now}:
            yield from fields(then.get(key, _Absent), now.get(key, _Absent), ignored, place + pointer(key))
    elif isinstance(then, list) and isinstance(now, list):
        for index in range(max(len(then), len(now))):
            one, other = (side[index] if index < len(side) else _Absent for side in (then, now))
            yield from fields(one, other, ignored, f"{place}/{index}")
    elif then is not now and (type(then), then) != (type(now), now):
        yield place or "/", _short(then), _short(now)


class _Absent:
    """Stands for a key that is not there."""


def _short(value: Any) -> str:
    return _ABSENT if value is _Absent else json.dumps(value, ensure_ascii=False)


def _matches(place: str, pattern: str) -> bool:
    parts, wanted = place.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(b in {a, "*"} for a, b in zip(parts, wanted, strict=True))


class _Made(NamedTuple):
    """A call, and what makes it equal to another one."""

    key: str
    function: str
    story: CallStory


def _made(recording: Recording) -> list[_Made]:
    return [
        _Made(call_key(story.function, story.arguments), story.function, story) for story in recording.calls.values()
    ]


def _result(story: CallStory) -> Any:
    answer = story.answer
    if answer is None:
        return {"cancelled": True} if story.cancelled else {"unanswered": True}
    return answer if "error" in answer else answer["value"]


def _changed(one: _Made | None, other: _Made | None, ignored: Collection[str]) -> list[Change]:
    """Return what is different of a call in two runs, of which one may not have it."""
    if other is None:
        return [] if one is None else [Change("removed", one.function, one.story.line)]
    if one is None:
        return [Change("added", other.function, other.story.line)]
    then = {"arguments": one.story.arguments, "result": _result(one.story)}
    now = {"arguments": other.story.arguments, "result": _result(other.story)}
    found = tuple(fields(then, now, ignored))
    return [Change("changed", other.function, other.story.line, found[:_MAX_FIELDS])] if found else []


def _pairs(old: Sequence[_Made], new: Sequence[_Made]) -> list[tuple[_Made | None, _Made | None]]:
    """Pair calls: those of one function in one place have other arguments; the rest came or went.

    Equal calls are among them only where there were too many to look for each in its order.
    """
    partners: dict[int, int] = {}
    taken: set[int] = set()
    for sameness in (attrgetter("key"), attrgetter("function")):
        waiting: dict[str, deque[int]] = defaultdict(deque)
        for place, made in enumerate(new):
            if place not in taken:
                waiting[sameness(made)].append(place)
        for place, made in enumerate(old):
            if place not in partners and (found := waiting[sameness(made)]):
                partners[place] = found.popleft()
                taken.add(partners[place])
    pairs: list[tuple[_Made | None, _Made | None]] = [
        (made, new[partners[place]] if place in partners else None) for place, made in enumerate(old)
    ]
    return pairs + [(None, made) for place, made in enumerate(new) if place not in taken]


def _others(first: Recording, second: Recording, ignored: Collection[str]) -> Iterator[Difference]:
    texts = first.printed, second.printed
    if _with_name_of(first, second, texts[1]) != texts[0] and "/printed" not in ignored:
        yield Difference("the printed text", 0, *texts)
    then, now = (None if one.outcome is None else outcome_json(one.outcome) for one in (first, second))
    renamed = now
    if isinstance(second.outcome, Raised):
        parts = (_with_name_of(first, second, text) for text in (second.outcome.message, second.outcome.traceback))
        renamed = outcome_json(Raised(second.outcome.type, *parts))
    if any(fields(then, renamed, ignored, "/outcome")):
        yield Difference("the outcome", 0, pretty(then), pretty(now))


def _with_name_of(first: Recording, second: Recording, text: str) -> str:
    """Return a text of the second run with tracebacks that call its script as the first one's is called."""
    then, now = first.begun.filename, re.escape(second.begun.filename)
    return re.sub(rf'(File "|\(){now}("?, line )', lambda found: f"{found[1]}{then}{found[2]}", text)
