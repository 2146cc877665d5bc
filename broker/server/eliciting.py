"""The person behind a client as answerer: questions about calls, and the questions of servers, as elicitation.

Above: way_to_client.py, which knows how a form reaches the client. Below: choices.py, forms.py. Whatever a client
sends back that is not one of the choices, or no number of calls, is a refusal; tests that cannot be used are asked for
again. "Calls like these" can be chosen only where the form shows what their arguments must be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import mcp.types as t

from broker.authorization.choices import Choice, answers_of
from broker.authorization.forms import FormReply
from broker.authorization.grants import MAX_CALLS
from broker.authorization.predicates import Predicate
from broker.authorization.shown import ESCAPE_CHARACTERS, shown_name, shown_text
from broker.errors import PatternError
from broker.unique_keys import DuplicateKeyError, loads_unique

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from broker.authorization.forms import Form
    from broker.authorization.questions import Answer, CallGroup, Question

    Show: TypeAlias = Callable[[t.ElicitRequestParams, str, str], Awaitable[t.ElicitResult]]

MAX_FIELDS = 10
"""More tools than this are answered with one choice for all."""

MAX_DETAILED = 3
"""So many tools have fields for a number of calls and for tests of one's own beside the choice."""

_TRIES = 3
_NOTE_CHARACTERS = 1_000
_TITLE_CHARACTERS = 80
_COUNT_DIGITS = 9
_WORDS = "words"
"""The field of the note; by name after those of the tools, which is how Codex orders them."""

_TESTS_CHARACTERS = 2_000
"""How long tests may be that are shown, in all tools of a form together where they are in its message."""

_CHOICES: dict[str, dict[str, Any]] = {
    "refuse": {"decision": "deny"},
    "allow these calls": {"decision": "these"},
    "allow calls like these in this run": {"decision": "alike"},
    "always allow calls like these": {"decision": "alike", "scope": "always"},
    "allow every call of the tool in this run": {"decision": "any"},
    "refuse every call of the tool in this run": {"decision": "none"},
}


class ElicitingAnswerer:
    """Asks by showing forms of the protocol; `show` brings one to the client and its answer back.

    It is also told what tells the question from every other one, empty for the question of a server, and what that
    server calls it.
    """

    name = "elicitation"
    """Who answered, for the audit."""

    def __init__(self, show: Show, *, has_urls: bool, has_texts: bool) -> None:
        """`has_urls` tells whether the client sends a person to addresses, `has_texts` whether texts may stay empty."""
        self._show = show
        self._has_urls = has_urls
        self._has_texts = has_texts

    async def answer(self, question: Question) -> Sequence[Answer]:
        """Show a form with a choice for each tool; again when it holds tests that cannot be used."""
        message, schema = form_of(question, with_texts=self._has_texts)
        fault = ""
        for _ in range(_TRIES):
            said = f"{fault}{message}"
            params = t.ElicitRequestFormParams(message=said, requested_schema=schema)
            result = await self._show(params, question.digest, "")
            try:
                return _answers(question, result, with_texts=self._has_texts)
            except PatternError as error:
                fault = f"These tests cannot be used: {error}\n\n"
        return answers_of(question, [Choice(decision="deny")])

    async def fill(self, form: Form) -> FormReply:
        """Pass a server's form on, with its name; its address only to a client that takes addresses."""
        if form.url and not self._has_urls:
            return FormReply("cancel")
        params: t.ElicitRequestParams
        if form.url:
            params = t.ElicitRequestURLParams(message=form.as_text(), url=form.url)
        else:
            params = t.ElicitRequestFormParams(message=form.as_text(), requested_schema=form.schema)
        result = await self._show(params, "", form.key)
        return FormReply(result.action, result.content or {})


def form_of(question: Question, *, with_texts: bool) -> tuple[str, dict[str, Any]]:
    """Return the message and the schema of the form that asks a question: a choice for each tool, texts about it."""
    groups = question.groups
    fields: dict[str, dict[str, Any]] = {}
    message = [question.as_text()]
    if len(groups) > MAX_FIELDS:
        fields["all"] = _choice("All of these tools", "")
        groups = ()
    for number, (group, tests) in enumerate(_with_tests(groups, with_texts=with_texts), 1):
        title = shown_name(group.name, _TITLE_CHARACTERS)
        fields[f"tool_{number}"] = _choice(title, tests)
        if _is_detailed(groups, with_texts=with_texts):
            fields |= _details(number, title, tests)
        elif tests:
            message.append(f"Calls like these of {title} have: {shown_text(tests, len(tests) * ESCAPE_CHARACTERS)}")
    required = [name for name, field in fields.items() if "enum" in field]
    if with_texts:
        fields[_WORDS] = {"type": "string", "title": "Note", "description": "Words for the script, where you refuse"}
    return "\n".join(message), {"type": "object", "properties": fields, "required": required}


def _is_detailed(groups: Sequence[CallGroup], *, with_texts: bool) -> bool:
    return with_texts and len(groups) <= MAX_DETAILED


def _with_tests(groups: Sequence[CallGroup], *, with_texts: bool) -> Iterator[tuple[CallGroup, str]]:
    """Yield each tool with what the arguments of calls like these must be; empty where that is too long for a form."""
    shares = 1 if _is_detailed(groups, with_texts=with_texts) else len(groups)
    for group in groups:
        tests = str(group.suggestion())
        yield group, tests if len(tests) * shares <= _TESTS_CHARACTERS else ""


def _choice(title: str, tests: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(_choices(tests)), "default": "refuse", "title": title}


def _choices(tests: str) -> dict[str, dict[str, Any]]:
    """Return what can be chosen where these tests are shown."""
    return {words: choice for words, choice in _CHOICES.items() if tests or choice["decision"] != "alike"}


def _details(number: int, title: str, tests: str) -> dict[str, dict[str, Any]]:
    # No number: Codex shows no form that has one, and takes a person's yes to its message for an empty form.
    count = {
        "type": "string",
        "title": f"{title}: number of calls",
        "description": "Allow so many and no more, as 3; any number when empty",
    }
    if not tests:
        return {f"tool_{number}_calls": count}
    like = {
        "type": "string",
        "title": f"{title}: calls like these",
        "description": 'What the arguments must be, as {"/name": {"glob": "x*"}}; what these have in common when empty',
        "default": tests,
    }
    return {f"tool_{number}_calls": count, f"tool_{number}_tests": like}


def _answers(question: Question, result: t.ElicitResult, *, with_texts: bool) -> tuple[Answer, ...]:
    """Return what a form says.

    Raises:
        PatternError: It holds tests that cannot be used.
    """
    content = (result.content or {}) if result.action == "accept" else {}
    note = str(content.get(_WORDS, ""))[:_NOTE_CHARACTERS]

    def chosen(name: str, group: int | None, shown: str) -> Choice:
        choice = {"group": group, "note": note, **_choices(shown).get(str(content.get(name)), _CHOICES["refuse"])}
        calls = _count(content.get(f"{name}_calls"))
        tests = content.get(f"{name}_tests")
        # Taken for left out, either would allow more than its person meant.
        if calls is False or not isinstance(tests, str | None):
            return Choice(group=group, decision="deny", note=note)
        choice["calls"] = calls
        if choice["decision"] == "alike" and tests is not None and tests.strip():
            choice["arguments"] = _tests(tests)
        return Choice.model_validate(choice)

    groups = question.groups
    if len(groups) > MAX_FIELDS:
        return answers_of(question, [chosen("all", None, "")])
    shown = enumerate(_with_tests(groups, with_texts=with_texts))
    return answers_of(question, [chosen(f"tool_{number + 1}", number, tests) for number, (_, tests) in shown])


def _count(value: Any) -> int | Literal[False] | None:
    """Return a number of calls as it was typed or sent; None where any number was meant, False for what is none."""
    if isinstance(value, str):
        value = value.strip()
        value = int(value) if value.isascii() and value.isdigit() and len(value) <= _COUNT_DIGITS else value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is None or value == "":
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_CALLS else False


def _tests(text: str) -> dict[str, Any]:
    """Return tests as they were typed.

    Raises:
        PatternError: They are none.
    """
    try:
        tests = loads_unique(text)
    except DuplicateKeyError as error:
        raise PatternError(f"they are ambiguous: {error}") from None
    except (ValueError, RecursionError):
        tests = None
    if not isinstance(tests, dict):
        raise PatternError('they are not a JSON object; write {"/name": {"glob": "x*"}}')
    Predicate.parse(tests)
    return tests
