"""A question to a person: the waiting calls of one run, grouped by tool, with what the person should know.

Above: run_desk.py asks it, answerers show it. Below: decision, grants, predicates. A loop of writes is one group: the
tool, what all its calls have in common, and what varies.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import anyio

from broker.authorization.alike import common_test, distinct
from broker.authorization.argument_checks import json_equal
from broker.authorization.grants import Denial, Grant, Scope
from broker.authorization.patterns import exact_pattern
from broker.authorization.predicates import Predicate, pointer
from broker.authorization.question_text import as_text
from broker.callbacks import NoReplyError, awaited, failing_alone
from broker.logging import logger
from broker.texts import refusal_texts
from codegen.tool_spec import canonical_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker.authorization.calls import PendingCall
    from broker.authorization.decision import Ask, FlowUse
    from broker.authorization.fingerprints import Copy

_MAX_ANSWERS = 10_000
_MAX_POINTERS = 40


@dataclass(frozen=True, slots=True)
class Notes:
    """What a person should know about one call, besides the call itself.

    Attributes:
        ask: Why it is a question.
        copies: Text that its arguments share with results of other servers.
        change: How the tool's definition differs from the one first seen, as lines of a diff.
        definition: What the server says of the tool, in full, as lines with escapes.
    """

    ask: Ask
    copies: tuple[Copy, ...] = ()
    change: tuple[str, ...] = ()
    definition: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """The calls of one run that wait for an answer, in the order in which they were made.

    Attributes:
        calls: Copies; changing them changes nothing that is sent.
        notes: One for each call.
        timeout_seconds: How long there is for an answer.
        numbers: The calls' places in the run.
    """

    calls: tuple[PendingCall, ...]
    notes: tuple[Notes, ...] = ()
    timeout_seconds: float = 300.0
    numbers: tuple[int, ...] = ()

    @property
    def digest(self) -> str:
        """A hash over its calls, definitions and flows, which tells it from every other question."""
        flows = [sorted(use.label for use in notes.ask.flows) for notes in self.notes]
        calls = [[call.caller.run, call.qualified_name, call.digest, call.arguments] for call in self.calls]
        return hashlib.sha256(canonical_json([list(self.numbers), calls, flows]).encode()).hexdigest()

    @property
    def groups(self) -> tuple[CallGroup, ...]:
        """The calls by tool, in the order of the first call of each."""
        indices: dict[tuple[str, str, str], list[int]] = {}
        for index, call in enumerate(self.calls):
            indices.setdefault((call.server, call.tool, call.digest), []).append(index)
        return tuple(self._group(tuple(same)) for same in indices.values())

    def as_text(self) -> str:
        """Return it in words: by tool, what its calls share, what varies, what to be careful about."""
        return as_text(self)

    def _group(self, indices: tuple[int, ...]) -> CallGroup:
        notes = [self.notes[index] for index in indices] if self.notes else []
        return CallGroup(indices, tuple(self.calls[index] for index in indices), tuple(notes))


@dataclass(frozen=True, slots=True)
class CallGroup:
    """The waiting calls of one tool.

    Attributes:
        indices: Their places in the question.
        calls: The calls.
        notes: One for each, or none.
        same: Arguments that all calls have, by JSON pointer, with the value that they share.
        varying: The other arguments, with the value of each call that has one.
        keys: The objects that hold these arguments, by JSON pointer, with all keys that they have in any call.
    """

    indices: tuple[int, ...]
    calls: tuple[PendingCall, ...]
    notes: tuple[Notes, ...] = ()
    same: Mapping[str, Any] = field(init=False)
    varying: Mapping[str, tuple[Any, ...]] = field(init=False)
    keys: Mapping[str, tuple[str, ...]] = field(init=False)

    def __post_init__(self) -> None:
        """Compare the calls."""
        found, keys = _taken_apart([call.arguments for call in self.calls])
        count = len(self.calls)
        same = {place: values[0] for place, values in found.items() if len(values) == count and _all_equal(values)}
        object.__setattr__(self, "same", same)
        object.__setattr__(self, "varying", {place: found[place] for place in found if place not in same})
        object.__setattr__(self, "keys", keys)

    @property
    def name(self) -> str:
        """`server.tool`."""
        return self.calls[0].qualified_name

    @property
    def flows(self) -> tuple[FlowUse, ...]:
        """The flows that these calls would be part of and that ask, each once."""
        return tuple(dict.fromkeys(use for notes in self.notes for use in notes.ask.flows))

    def suggestion(self) -> Predicate:
        """Return a predicate for calls like these: equal values, common beginnings, ranges, no other arguments.

        Values that have nothing in common are these values, and the same arguments again where some calls lack one.
        """
        tests = self.tests
        if self.varying.keys() <= tests.keys():
            return Predicate.parse(tests)
        return Predicate.parse({"": {"in": distinct([call.arguments for call in self.calls])}})

    @property
    def tests(self) -> dict[str, dict[str, Any]]:
        """What calls like these pass, by JSON pointer; nothing for arguments that some calls lack."""
        tests: dict[str, dict[str, Any]] = {place: {"keys": names} for place, names in self.keys.items()}
        tests |= {place: {"equals": value} for place, value in self.same.items()}
        for place, values in self.varying.items():
            if len(values) == len(self.calls):
                tests[place] = common_test(values) or {"in": distinct(values)}
        return tests

    def grant(self, arguments: Predicate | None = None, *, scope: Scope = "run", calls: int | None = None) -> Grant:
        """Return a grant for calls of this tool, as it is defined now and after the flows that were shown."""
        call = self.calls[0]
        return Grant(
            exact_pattern(call.qualified_name),
            call.digest,
            arguments,
            calls=calls,
            scope=scope,
            after=frozenset(use.label for use in self.flows),
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """A yes or no to some calls of the question, and to nothing else.

    Attributes:
        calls: Their places in the question.
        allow: Whether they may be made.
        note: Words for the script where they may not.

    Raises:
        TypeError: It is not a clear yes or no.
    """

    calls: tuple[int, ...]
    allow: bool
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse what is neither yes nor no: the text "no" of a form counts as true."""
        given: dict[str, object] = {"calls": self.calls, "allow": self.allow, "note": self.note}
        match given:
            case {"calls": [*calls], "allow": bool(), "note": str()} if all(isinstance(one, int) for one in calls):
                return
        raise TypeError(f"write a verdict as Verdict((0, 1), allow=False, note='…'), not {self}")


Answer: TypeAlias = Grant | Denial | Verdict
"""What a person said, about some calls of the question or about all calls that a pattern covers."""


@dataclass(frozen=True, slots=True)
class GivenAnswers:
    """The answers to a question with which a run was parked, and who gave them."""

    question: Question
    answers: Sequence[Answer]
    by: str


class Answerer(Protocol):
    """Whoever can say yes or no: a terminal, an MCP client, an HTTP endpoint, a callback of the embedding program."""

    async def answer(self, question: Question) -> Sequence[Answer]:
        """Return answers; a call that none of them covers is refused. Cancelled when the time is over."""


class NoAnswerError(Exception):
    """Whoever was asked has said nothing; the text says why a call was refused."""


async def answers_from(answerer: Answerer, question: Question) -> Sequence[Answer] | None:
    """Ask, and return the answers; None when it was too late.

    Raises:
        NoAnswerError: The answerer failed, or its answer is none.
    """
    with anyio.move_on_after(question.timeout_seconds) as scope:
        try:
            with failing_alone():
                given: Any = await awaited("answer", answerer.answer(question))
            answers = answers_of(given)
        except NoReplyError as error:
            logger().warning("the answerer failed", reason=str(error))
            raise NoAnswerError(refusal_texts.ANSWERER_FAILED) from None
        except Exception:  # noqa: BLE001  # whatever is wrong with an answerer, it has not said yes
            logger().exception("the answerer failed")
            raise NoAnswerError(refusal_texts.ANSWERER_FAILED) from None
        # What waits for a person in a thread cannot be cancelled, and comes back all the same.
        if anyio.current_time() >= scope.deadline:
            return None
        if answers is not None:
            return answers
        kinds = sorted({type(one).__name__ for one in (given if isinstance(given, list | tuple) else [given])})
        logger().error("an answerer returns a list of Grant, Denial and Verdict; this one did not", returned=kinds)
        raise NoAnswerError(refusal_texts.ANSWER_UNREADABLE)
    return None


def answers_of(given: object) -> tuple[Answer, ...] | None:
    """Return what was given as answers; None if it is something else, or more than a question can have."""
    answers = tuple(given) if isinstance(given, Iterable) else None
    if answers is None or len(answers) > _MAX_ANSWERS:
        return None
    return answers if all(isinstance(one, Grant | Denial | Verdict) for one in answers) else None


def _taken_apart(
    arguments: Sequence[dict[str, Any]],
) -> tuple[dict[str, tuple[Any, ...]], dict[str, tuple[str, ...]]]:
    """Return the values in the arguments of calls by JSON pointer, and the keys of the objects that held them.

    Nothing is left out: an object that some calls lack, or that has too many keys, is returned as one value.
    """
    values: dict[str, tuple[Any, ...]] = {"": tuple(arguments)}
    keys: dict[str, tuple[str, ...]] = {}
    waiting = deque([""])
    while waiting:
        place = waiting.popleft()
        held = values[place]
        if len(held) < len(arguments) or not all(isinstance(one, dict) for one in held):
            continue
        names = tuple(dict.fromkeys(name for one in held for name in one))
        if (place and not names) or len(values) - 1 + len(names) > _MAX_POINTERS:
            continue
        keys[place] = names
        del values[place]
        for name in names:
            inner = place + pointer(name)
            values[inner] = tuple(one[name] for one in held if name in one)
            waiting.append(inner)
    return values, keys


def _all_equal(values: Sequence[Any]) -> bool:
    return all(json_equal(value, values[0]) for value in values[1:])
