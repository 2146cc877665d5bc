"""The terminal shows what a server asks a person: each field in turn, or an address to visit.

Above: consent.py, whose answerer it is part of. Below: prompts.py. The first line of the first menu, and Ctrl-C, are a
no; an address is shown and never opened.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from broker.authorization.forms import FormReply
from broker.cli.prompts import MenuLine, chosen, several, typed
from broker.cli.terminal import note

if TYPE_CHECKING:
    from broker.authorization.forms import Form, FormField

_SKIP = ""
_WORDS = {"integer": "a whole number", "number": "a number", "text": "a text"}


async def fill(form: Form) -> FormReply:
    """Show a form and return what the person did."""
    note(form.as_text())
    if os.environ.get("TERM", "dumb") == "dumb":
        note("This terminal cannot show a form; it is refused.")
        return FormReply("cancel")
    if await chosen(_beginning(form), "What do you do?") != "go on":
        return FormReply("decline")
    content: dict[str, Any] = {}
    for field in form.fields:
        answer = await _answer(field)
        if answer is None:
            return FormReply("decline")
        if answer != _SKIP or field.is_required:
            content[field.name] = answer
    return FormReply("accept", content)


def _beginning(form: Form) -> list[MenuLine]:
    if form.url:
        return [
            MenuLine("n", "Refuse", "refuse"),
            MenuLine("y", "I have been there; tell the server to go on", "go on"),
        ]
    return [MenuLine("n", "Refuse; the server is told that you declined", "refuse"), MenuLine("y", "Answer", "go on")]


async def _answer(field: FormField) -> Any:
    """Return the answer to one field, an empty text where it is left out, None where the person gave up."""
    if field.schema.get("description"):
        note(f"| {field.schema['description']}")
    match field.kind:
        case "yes or no":
            return await _yes_or_no(field)
        case "choice":
            return await chosen(_lines(_titled(field), field), f"| {field.title}:", default=field.default)
        case "choices":
            return await several(_titled(field), f"| {field.title}:", field.default or [])
    default = "" if field.default is None else str(field.default)
    needed = "" if field.is_required else ", empty for none"
    text = await typed(f"| {field.title} ({_WORDS[field.kind]}{needed}):", default, validate=_check(field))
    return None if text is None else _value(field, text)


def _titled(field: FormField) -> list[tuple[str, str]]:
    """Return the options, each with a title that has its value too: a server may call `delete` "keep"."""
    return [(value, title if title == value else f"{title} ({value})") for value, title in field.options]


async def _yes_or_no(field: FormField) -> Any:
    answer = await chosen(
        _lines([("yes", "yes"), ("no", "no")], field),
        f"| {field.title}:",
        default={True: "yes"}.get(field.default, "no"),
    )
    return answer == "yes" if answer in {"yes", "no"} else answer


def _lines(options: list[tuple[str, str]], field: FormField) -> list[MenuLine]:
    lines = [MenuLine("", title, value) for value, title in options]
    return lines if field.is_required else [*lines, MenuLine("", "(no answer)", _SKIP)]


def _value(field: FormField, text: str) -> Any:
    """Return what was typed as what the field wants; the text itself where it is none."""
    if not text and not field.is_required:
        return _SKIP
    try:
        return {"integer": int, "number": float}.get(field.kind, str)(text)
    except ValueError:
        return text


def _check(field: FormField) -> Any:
    def check(text: str) -> bool | str:
        value = _value(field, text)
        return True if value == _SKIP and not field.is_required else field.fault(value) or True

    return check
