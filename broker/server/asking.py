"""Questions about a script's calls, put to the person behind the client by elicitation, in both protocol eras.

Above: app.py. Below: the desk, through `answering`. Until 2025-11-25 the server sends a request while the client's own
is open. Since 2026-07-28 it answers that one with `input_required` and keeps the run; the client repeats its request
with the answer, and is given the result or the next question.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import mcp.types as t
from mcp import MCPError

from broker.authorization.choices import Choice, answers_of
from broker.authorization.desk import answering
from broker.authorization.question_box import QuestionBox
from broker.authorization.question_text import as_text
from broker.authorization.shown import shown_name
from broker.server.identity import principal_of_request
from codegen.tool_spec import canonical_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from mcp.server import ServerRequestContext

    from broker.authorization.question_box import OpenQuestion
    from broker.authorization.questions import Answer, Question

NAME = "elicitation"
"""Who answered, for the audit."""

MOST_KEPT = 1_000
"""Runs that wait for a client to come back; the oldest are dropped, which refuses their calls."""

_INPUT = "consent"
_NOTE_CHARACTERS = 1_000
_MOST_FIELDS = 10
_TITLE_CHARACTERS = 80
_CHOICES = {
    "refuse": "deny",
    "allow these calls": "these",
    "allow calls like these in this run": "alike",
    "allow every call of the tool in this run": "any",
}
_GONE = "This request state is of no run that waits. Call the tool again without it."


class Asking:
    """Answers requests whose runs may have a question."""

    def __init__(self) -> None:
        """Start with nothing that waits."""
        self._kept: dict[str, _Kept] = {}

    async def perform(
        self,
        ctx: ServerRequestContext[Any, Any],
        params: t.CallToolRequestParams,
        answer: Callable[[], Awaitable[t.CallToolResult]],
    ) -> t.CallToolResult | t.InputRequiredResult:
        """Answer a request, or go on with the one that it repeats.

        Raises:
            MCPError: It repeats no request that waits.
        """
        if params.request_state is not None:
            return await self._go_on(params)
        if not _has_forms(ctx):
            return await answer()
        if ctx.session.can_send_request:
            with answering(_Pushing(ctx)):
                return await answer()
        kept = _Kept(_identity(params))
        ctx.lifespan_context.tasks.start_soon(kept.perform, answer)
        return await self._next(kept)

    async def _go_on(self, params: t.CallToolRequestParams) -> t.CallToolResult | t.InputRequiredResult:
        kept = self._kept.get(params.request_state or "")
        if kept is None or kept.identity != _identity(params):
            raise MCPError(t.INVALID_PARAMS, _GONE)
        response = (params.input_responses or {}).get(_INPUT)
        if kept.asked is not None and isinstance(response, t.ElicitResult):
            kept.asked.reply(_answers(kept.asked.question, response))
            kept.asked = None
        return await self._next(kept)

    async def _next(self, kept: _Kept) -> t.CallToolResult | t.InputRequiredResult:
        try:
            await kept.has_news()
        except anyio.get_cancelled_exc_class():
            kept.scope.cancel()
            self._kept.pop(kept.state, None)
            raise
        asked = kept.asked
        if asked is None:
            self._kept.pop(kept.state, None)
            return kept.outcome()
        self._kept[kept.state] = kept
        for state in list(self._kept)[: max(0, len(self._kept) - MOST_KEPT)]:
            self._kept.pop(state).scope.cancel()
        message, schema = form_of(asked.question)
        form = t.ElicitRequest(params=t.ElicitRequestFormParams(message=message, requested_schema=schema))
        return t.InputRequiredResult(input_requests={_INPUT: form}, request_state=kept.state)


class _Pushing:
    """Asks with a request of its own while the client's is open."""

    name = NAME

    def __init__(self, ctx: ServerRequestContext[Any, Any]) -> None:
        self._ctx = ctx

    async def answer(self, question: Question) -> Sequence[Answer]:
        message, schema = form_of(question)
        result = await self._ctx.session.elicit_form(message, schema, self._ctx.request_id)
        return _answers(question, result)


@dataclass(slots=True, eq=False)
class _Kept:
    """A request that is being answered, and outlasts the times it is repeated.

    Attributes:
        identity: Whose it is, and what was asked for.
        state: What the client passes to go on with it; hard to guess.
        asked: The question that the client has been shown, or is about to be.
    """

    identity: str
    state: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    asked: OpenQuestion | None = None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    _result: t.CallToolResult | None = None
    _error: Exception | None = None
    _news: anyio.Event = field(default_factory=anyio.Event)
    _is_over: bool = False

    async def perform(self, answer: Callable[[], Awaitable[t.CallToolResult]]) -> None:
        """Answer the request, as a task of the server; its questions wait for the client."""
        with self.scope, answering(QuestionBox(NAME, on_open=self._opened)):
            try:
                self._result = await answer()
            except Exception as error:  # noqa: BLE001  # whoever repeats the request gets it
                self._error = error
        self._is_over = True
        self._news.set()

    async def has_news(self) -> None:
        """Wait until it is answered, or has a question that the client has not answered."""
        while not self._is_over and (self.asked is None or self.asked.is_answered):
            self._news = anyio.Event()
            await self._news.wait()
        if self._is_over:
            self.asked = None

    def outcome(self) -> t.CallToolResult:
        """Return what it was answered with.

        Raises:
            Exception: What ended it.
        """
        if self._error is not None:
            raise self._error
        if self._result is None:
            raise MCPError(t.INVALID_PARAMS, _GONE)
        return self._result

    def _opened(self, asked: OpenQuestion) -> None:
        self.asked = asked
        self._news.set()


def form_of(question: Question) -> tuple[str, dict[str, Any]]:
    """Return the message and the schema of the form that asks a question: a choice for each tool, and a note."""
    groups = question.groups
    choice = {"type": "string", "enum": list(_CHOICES), "default": "refuse"}
    if len(groups) > _MOST_FIELDS:
        fields = {"all": {**choice, "title": "All of these tools"}}
    else:
        fields = {
            f"tool_{number}": {**choice, "title": shown_name(group.name, _TITLE_CHARACTERS)}
            for number, group in enumerate(groups, 1)
        }
    note = {"type": "string", "title": "Note", "description": "Words for the script, where you refuse"}
    schema = {"type": "object", "properties": {**fields, "note": note}, "required": list(fields)}
    return as_text(question), schema


def _answers(question: Question, result: t.ElicitResult) -> tuple[Answer, ...]:
    """Return what a form says; whatever is not one of its choices is a refusal."""
    content = result.content or {}
    if result.action != "accept":
        content = {}
    note = str(content.get("note", ""))[:_NOTE_CHARACTERS]

    def chosen(name: str, group: int | None) -> Choice:
        decision = _CHOICES.get(str(content.get(name)), "deny")
        return Choice.model_validate({"group": group, "decision": decision, "note": note})

    count = len(question.groups)
    if count > _MOST_FIELDS:
        return answers_of(question, [chosen("all", None)])
    return answers_of(question, [chosen(f"tool_{number + 1}", number) for number in range(count)])


def _has_forms(ctx: ServerRequestContext[Any, Any]) -> bool:
    capabilities = ctx.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    # A client that names neither has forms: the older revision knew nothing else.
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _identity(params: t.CallToolRequestParams) -> str:
    return canonical_json([principal_of_request(), params.name, params.arguments or {}])
