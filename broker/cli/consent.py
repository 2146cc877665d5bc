"""The terminal as answerer: the pending calls as a table, and a choice with the arrow keys.

Above: `codemode run`. Below: prompts.py. Anything but a yes is a no.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from broker.authorization.choices import Choice, answers_of
from broker.authorization.predicates import Predicate
from broker.authorization.question_text import in_full, rows
from broker.authorization.shown import shown_ends, shown_name
from broker.cli import forms
from broker.cli.prompts import MenuLine, chosen, said_yes, typed
from broker.cli.terminal import note, notes
from broker.errors import PatternError
from broker.unique_keys import DuplicateKeyError, loads_unique

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.authorization.forms import Form, FormReply
    from broker.authorization.questions import Answer, CallGroup, Question

_TESTS_CHARACTERS = 1_000
_ANY = "any"
_NAME_CHARACTERS = 60
_AT_ONCE = {
    "these": Choice(decision="these"),
    "alike": Choice(decision="alike"),
    "always": Choice(decision="alike", scope="always"),
    "any": Choice(decision="any"),
    "deny": Choice(decision="deny"),
    "none": Choice(decision="none"),
}


class TerminalAnswerer:
    """Asks on stderr and reads stdin; both must be terminals.

    What is allowed is allowed for these calls, or for the tools as they are defined now, until the run ends.
    """

    name = "terminal"

    async def answer(self, question: Question) -> Sequence[Answer]:
        """Ask until everything is said."""
        notes().print(_table(question))
        if os.environ.get("TERM", "dumb") == "dumb":
            return answers_of(question, [await _plain(question)])
        groups = question.groups
        if len(groups) == 1:
            return answers_of(question, await _about(question, 0))
        match await chosen(_menu_of_all(question), _heading(groups)):
            case "these":
                return answers_of(question, [Choice(decision="these")])
            case "each":
                choices = [choice for number in range(len(groups)) for choice in await _about(question, number)]
                return answers_of(question, choices)
        return answers_of(question, [Choice(decision="deny")])

    async def fill(self, form: Form) -> FormReply:
        """Show what a server asks."""
        return await forms.fill(form)


def _heading(groups: Sequence[CallGroup]) -> str:
    """Return what is asked above a menu: the table may be far above it."""
    names = ", ".join(shown_name(group.name, _NAME_CHARACTERS) for group in groups)
    return f"Which calls of {names} do you allow?" if names else "Which calls do you allow?"


def _menu_of_all(question: Question) -> list[MenuLine]:
    return [
        MenuLine("n", "Refuse them", "deny"),
        MenuLine("y", f"Allow {_these(len(question.calls))}", "these"),
        MenuLine("o", "Decide for each tool", "each"),
    ]


async def _about(question: Question, number: int) -> list[Choice]:
    """Ask what to do about the calls of one tool, and return the choice."""
    group = question.groups[number]
    heading = _heading([group] if len(question.groups) > 1 else [])
    # Not in the menu, whose lines end where the terminal does: what is allowed has to be read.
    note(f"calls like {_this(group)} have: {shown_ends(str(group.suggestion()), _TESTS_CHARACTERS)}")
    while True:
        choice = await chosen(_menu(group), heading) or "deny"
        if choice in _AT_ONCE:
            return [_AT_ONCE[choice].model_copy(update={"group": number})]
        if choice == "edit" and (arguments := await _edited(group)) is not None:
            return [Choice.model_validate({"group": number, "decision": "alike", "arguments": arguments})]
        if choice == "count" and (count := await _count(group)) is not None:
            return [Choice(group=number, decision="alike", calls=count)]
        if choice == "full":
            note(in_full(group))
        if choice == "show":
            note("\n".join(group.notes[0].definition if group.notes else ()))
        if choice == "note":
            said = await typed("Note for the script:", "")
            return [Choice(group=number, decision="deny", note=(said or "")[:1_000])]


def _menu(group: CallGroup) -> list[MenuLine]:
    count, tool = len(group.calls), shown_name(group.name, _NAME_CHARACTERS)
    return [
        MenuLine("n", "Refuse", "deny"),
        MenuLine("y", f"Allow {_these(count)}", "these"),
        MenuLine("a", f"Allow calls like {_this(group)} in this run", "alike"),
        MenuLine("k", "Always allow calls like that; `codemode grants revoke` undoes it", "always"),
        MenuLine("c", "Allow a number of calls like that in this run", "count"),
        MenuLine("e", "Allow calls in this run whose arguments pass tests that I write", "edit"),
        MenuLine("t", f"Allow every call of {tool} in this run", "any"),
        MenuLine("f", "Show the arguments in full", "full"),
        MenuLine("d", "Show the tool's definition", "show"),
        MenuLine("r", "Refuse, with a note for the script", "note"),
        MenuLine("x", f"Refuse every call of {tool} in this run", "none"),
    ]


async def _count(group: CallGroup) -> int | None:
    """Ask for a number of calls; None where the person gave up."""
    text = await typed("How many calls, these included?", str(len(group.calls)), validate=_is_count)
    return None if text is None else int(text)


def _is_count(text: str) -> bool | str:
    is_count = text.isascii() and text.isdecimal() and 0 < len(text) < 10 and int(text) > 0  # noqa: PLR2004  # digits
    return is_count or "write a number from 1 on"


async def _edited(group: CallGroup) -> dict[str, Any] | None:
    """Let a person change the test of each argument; None where they gave up."""
    suggested = group.tests
    tests: dict[str, Any] = {place: suggested[place] for place in group.keys}
    for place in (*group.same, *group.varying):
        default = json.dumps(suggested[place], ensure_ascii=False) if place in suggested else _ANY
        title = shown_name(place, 60) or "all arguments"
        text = await typed(f"{title} ({_ANY}, or a test as JSON):", default, validate=_fault(place))
        if text is None:
            return None
        if text.strip() != _ANY:
            tests[place] = json.loads(text)
    if not tests:
        note("without a test this allows every call of the tool: choose that instead, or refuse")
        return None
    try:
        Predicate.parse(tests)
    except PatternError as error:
        note(f"these tests cannot be used: {error}")
        return None
    return tests


def _fault(place: str) -> Any:
    def check(text: str) -> bool | str:
        if text.strip() == _ANY:
            return True
        try:
            Predicate.parse({place: loads_unique(text)})
        except (PatternError, DuplicateKeyError) as error:
            return str(error)
        except (ValueError, RecursionError):
            return f"write {_ANY}, or JSON as in " + '{"glob": "x*"}'
        return True

    return check


async def _plain(question: Question) -> Choice:
    """Ask with a line of text, where the terminal can do no more."""
    is_yes = await said_yes(f"Allow {_these(len(question.calls))}?")
    return Choice(decision="these" if is_yes else "deny")


def _this(group: CallGroup) -> str:
    return "this" if len(group.calls) == 1 else "these"


def _these(count: int) -> str:
    return "this call" if count == 1 else f"these {count} calls"


def _table(question: Question) -> Table:
    table = Table(title="The script wants to call", title_justify="left", box=None, pad_edge=False)
    for column in ("tool", "calls", "the same in all", "differs"):
        table.add_column(column, header_style="dim", overflow="fold", justify="right" if column == "calls" else "left")
    for row in rows(question):
        table.add_row(
            Text(row.tool, style="bold"), str(row.calls), Text("\n".join(row.same)), Text("\n".join(row.varying))
        )
        for warning in row.warnings:
            table.add_row("", "", Text(f"! {warning}", style="yellow"), "")
    return table
