"""A box over HTTP: `GET /questions` shows it, `POST /questions/ID` and `POST /forms/ID` answer what is in it.

Above: an embedding program, which serves it. Below: Starlette, which the MCP SDK brings along. Every request
needs the bearer token; there is no default one.
"""

from __future__ import annotations

import hmac
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from broker.authorization.choices import Choice, answers_of
from broker.authorization.forms import FormReply
from broker.errors import PatternError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from broker.authorization.question_box import OpenForm, OpenQuestion, QuestionBox

    Handler: TypeAlias = Callable[[Request], Awaitable[Response]]

LEAST_TOKEN_CHARACTERS = 16
BODY_BYTES = 256 * 1024
"""The longest answer."""


class AnswerBody(BaseModel):
    """The body of an answer to a question."""

    model_config = ConfigDict(extra="forbid")

    choices: list[Choice] = Field(max_length=1_000)


class FormBody(BaseModel):
    """The body of an answer to a form of a server: `content` has its fields by their names."""

    model_config = ConfigDict(extra="forbid")

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] = {}


def answers_app(box: QuestionBox, *, token: str) -> Starlette:
    """Return the ASGI application of a box.

    Args:
        box: The answerer of sessions.
        token: What `Authorization: Bearer` must hold; whoever has it can allow anything.

    Raises:
        ValueError: The token is too short.
    """
    if len(token) < LEAST_TOKEN_CHARACTERS:
        raise ValueError(f"the token of the answers needs at least {LEAST_TOKEN_CHARACTERS} characters")

    answers = _Answers(box)
    return Starlette(
        routes=[
            Route("/questions", _guarded(answers.show, token)),
            Route("/questions/{id}", _guarded(answers.answer, token), methods=["POST"]),
            Route("/forms/{id}", _guarded(answers.fill, token), methods=["POST"]),
        ]
    )


@dataclass(frozen=True, slots=True)
class _Answers:
    """What the three requests do; what they raise says what is wrong with an answer."""

    box: QuestionBox

    async def show(self, _request: Request) -> Response:
        questions = [_document(asked) for asked in self.box.open]
        return JSONResponse({"questions": questions, "forms": [_form_document(asked) for asked in self.box.forms]})

    async def answer(self, request: Request) -> Response:
        body = await _body(request)  # before the question is looked up: its time may be over when all of it is here
        asked = next((one for one in self.box.open if one.id == request.path_params["id"]), None)
        if asked is None:
            return _problem(404, "there is no such question: it was answered, or its time is over")
        reply = AnswerBody.model_validate_json(body)
        return _taken(is_first=asked.reply(answers_of(asked.question, reply.choices)))

    async def fill(self, request: Request) -> Response:
        body = await _body(request)
        asked = next((one for one in self.box.forms if one.id == request.path_params["id"]), None)
        if asked is None:
            return _problem(404, "there is no such form: it was answered, or its time is over")
        reply = FormBody.model_validate_json(body)
        return _taken(is_first=asked.reply(FormReply(reply.action, reply.content)))


def _guarded(answer: Handler, token: str) -> Handler:
    async def guard(request: Request) -> Response:
        if not _is_allowed(request, token):
            return _problem(401, "give the token as Authorization: Bearer TOKEN")
        try:
            return await answer(request)
        except ValidationError as error:
            return _problem(400, _fault(error))
        except (PatternError, ValueError) as error:
            return _problem(400, str(error))

    return guard


def _is_allowed(request: Request, token: str) -> bool:
    given = request.headers.get("authorization", "")
    return hmac.compare_digest(given.encode("utf-8", "replace"), f"Bearer {token}".encode())


def _taken(*, is_first: bool) -> Response:
    return Response(status_code=204) if is_first else _problem(409, "it has been answered already")


async def _body(request: Request) -> bytes:
    body = bytearray()
    # Read to its end in any case: the connection goes on.
    async for piece in request.stream():
        body += piece[: BODY_BYTES + 1 - len(body)]
    if len(body) > BODY_BYTES:
        raise ValueError(f"the answer is longer than {BODY_BYTES} bytes")
    return bytes(body)


def _document(asked: OpenQuestion) -> dict[str, Any]:
    return {
        "id": asked.id,
        "run": asked.run,
        "text": asked.question.as_text(),
        "tools": [
            {
                "tool": group.name,
                "digest": group.calls[0].digest,
                "calls": len(group.calls),
                "same": dict(group.same),
                "varying": {place: list(values) for place, values in group.varying.items()},
                "suggestion": group.suggestion().document(),
            }
            for group in asked.question.groups
        ],
    }


def _form_document(asked: OpenForm) -> dict[str, Any]:
    form = asked.form
    return {
        "id": asked.id,
        "server": form.server,
        "tool": form.tool,
        "text": form.as_text(),
        "wants_secret": form.wants_secret,
        **({"url": form.url} if form.url else {"schema": form.schema}),
    }


def _fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, fault['loc'])) or 'the body'}: {fault['msg']}"


def _problem(status: int, text: str) -> Response:
    headers = {"www-authenticate": "Bearer"} if status == 401 else None  # noqa: PLR2004  # unauthorized
    return Response(json.dumps({"error": text}), status, headers, media_type="application/json")
