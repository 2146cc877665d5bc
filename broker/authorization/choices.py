"""What a person can choose for the calls of a question, whoever shows it, and the answers that follow from it.

Above: the terminal, the HTTP endpoint, elicitation. Below: questions.py. A choice is small enough for a form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from broker.authorization.grants import MAX_CALLS, Denial, Scope
from broker.authorization.patterns import exact_pattern
from broker.authorization.predicates import ArgumentTest, Pointer, Predicate
from broker.authorization.questions import Verdict
from broker.errors import PatternError
from codegen.plain_text import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.authorization.questions import Answer, CallGroup, Question


class Choice(BaseModel):
    """What is to be done about the calls of one tool, or of all.

    Attributes:
        group: The tool's place in the question, from 0; every tool of it when left out.
        decision: `these` allows the waiting calls alone; `alike` also later ones whose arguments pass `arguments`;
            `any` every call of the tool; `deny` refuses the waiting calls, `none` every call of the tool.
        scope: How long `alike`, `any` and `none` hold; `always` is kept for later sessions, which `none` cannot be.
        calls: How many calls `alike` and `any` are good for; of `these`, the first so many.
        arguments: What the arguments must be for `alike`; what the waiting calls have in common when left out.
        note: Words for the script when refused.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    group: Annotated[int, Field(ge=0)] | None = None
    decision: Literal["these", "alike", "any", "deny", "none"]
    scope: Scope = "run"
    calls: Annotated[int, Field(ge=1, le=MAX_CALLS)] | None = None
    arguments: dict[Pointer, ArgumentTest] | None = None
    note: Annotated[str, Field(max_length=1_000)] = ""


def answers_of(question: Question, choices: Sequence[Choice]) -> tuple[Answer, ...]:
    """Return the answers that choices come to.

    Raises:
        PatternError: A choice names no group of the question, has a predicate that tests nothing or can never hold, or
            refuses a tool always.
    """
    groups = question.groups
    answers: list[Answer] = []
    for choice in choices:
        if choice.group is not None and choice.group >= len(groups):
            tools = counted(len(groups), "tool")
            raise PatternError(f"the question has {tools}, counted from 0, and none at {choice.group}")
        chosen = groups if choice.group is None else groups[choice.group : choice.group + 1]
        answers += [_answer(group, choice) for group in chosen]
    return tuple(answers)


def _answer(group: CallGroup, choice: Choice) -> Answer:
    match choice.decision:
        case "these":
            return Verdict(group.indices[: choice.calls], allow=True)
        case "deny":
            return Verdict(group.indices, allow=False, note=choice.note)
        case "none":
            if choice.scope == "always":
                raise PatternError("none holds for the run or the session; a rule of the policy refuses a tool always")
            return Denial(exact_pattern(group.name), choice.note, scope=choice.scope)
        case "any":
            return group.grant(scope=choice.scope, calls=choice.calls)
        case "alike":
            return group.grant(_predicate(group, choice.arguments), scope=choice.scope, calls=choice.calls)


def _predicate(group: CallGroup, arguments: dict[str, Any] | None) -> Predicate:
    if arguments is None:
        return group.suggestion()
    if not arguments:
        raise PatternError("no test is given, which every call passes; to allow those, choose every call of the tool")
    return Predicate(arguments)
