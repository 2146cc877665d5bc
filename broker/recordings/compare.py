"""Two recordings of a script compared: calls that were added, removed or changed, and what else is different.

Above: `codemode replay --live` and `--script`. Below: recording.py. Calls are matched in order by function and
arguments; volatile fields of results are ignored by JSON pointer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Literal

from broker.recordings.replay import Difference, pretty
from broker.recordings.writing import outcome_json

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from broker.recordings.recording import CallStory, Recording

_MOST_FIELDS = 50
_ABSENT = "(absent)"


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

    def __bool__(self) -> bool:
        """Tell whether anything is different."""
        return bool(self.changes or self.others)


def compare(first: Recording, second: Recording, ignored: Collection[str] = ()) -> Comparison:
    """Compare two runs.

    Args:
        first: The recorded run.
        second: The new one.
        ignored: JSON pointers into the results of calls, as in `/result/updated_at`, and into the outcome, as in
            `/outcome/completed/total`; `*` stands for any key or index. `/printed` is the printed text.
    """
    then, now = _keys(first), _keys(second)
    changes: list[Change] = []
    old, new = list(first.calls.values()), list(second.calls.values())
    for kind, a, b, c, d in SequenceMatcher(None, then, now, autojunk=False).get_opcodes():
        if kind == "equal":
            for one, other in zip(old[a:b], new[c:d], strict=True):
                changes += _changed(first, one, second, other, ignored)
        else:
            changes += _replaced(first, old[a:b], second, new[c:d], ignored)
    return Comparison(tuple(changes), tuple(_others(first, second, ignored)))


def fields(then: Any, now: Any, ignored: Collection[str], place: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield the places at which two JSON values differ, with both values."""
    if any(_matches(place, pattern) for pattern in ignored):
        return
    if isinstance(then, dict) and isinstance(now, dict):
        for key in {**then, **now}:
            inner = f"{place}/{key.replace('~', '~0').replace('/', '~1')}"
            yield from fields(then.get(key, _Absent), now.get(key, _Absent), ignored, inner)
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


def _keys(recording: Recording) -> list[str]:
    return [
        json.dumps([story.call.function, recording.load(story.call.arguments)], sort_keys=True)
        for story in recording.calls.values()
    ]


def _result(recording: Recording, story: CallStory) -> Any:
    if story.answered is None:
        return {"cancelled": True} if story.cancelled else {"unanswered": True}
    answer = recording.answer(story.answered)
    return answer if "error" in answer else answer["value"]


def _changed(
    first: Recording, one: CallStory, second: Recording, other: CallStory, ignored: Collection[str]
) -> list[Change]:
    then = {"arguments": first.load(one.call.arguments), "result": _result(first, one)}
    now = {"arguments": second.load(other.call.arguments), "result": _result(second, other)}
    found = tuple(fields(then, now, ignored))
    return [Change("changed", other.call.function, other.call.line, found[:_MOST_FIELDS])] if found else []


def _replaced(
    first: Recording, old: Sequence[CallStory], second: Recording, new: Sequence[CallStory], ignored: Collection[str]
) -> list[Change]:
    """Calls of the same function in the same place have other arguments; the rest came or went."""
    changes: list[Change] = []
    left = list(new)
    for story in old:
        partner = next((one for one in left if one.call.function == story.call.function), None)
        if partner is None:
            changes.append(Change("removed", story.call.function, story.call.line))
        else:
            left.remove(partner)
            changes += _changed(first, story, second, partner, ignored)
    return changes + [Change("added", story.call.function, story.call.line) for story in left]


def _others(first: Recording, second: Recording, ignored: Collection[str]) -> Iterator[Difference]:
    texts = [
        "".join(str(one.load(text.text)) for step in one.steps for text in step.printed) for one in (first, second)
    ]
    if texts[0] != texts[1] and "/printed" not in ignored:
        yield Difference("the printed text", 0, *texts)
    then, now = (None if one.outcome is None else outcome_json(one.outcome) for one in (first, second))
    if any(fields(then, now, ignored, "/outcome")):
        yield Difference("the outcome", 0, pretty(then), pretty(now))
