"""The questions of a box over HTTP: `GET /questions` shows them, `POST /questions/ID` answers one.

Above: an embedding host, which serves the application, or `serve`. Below: Starlette, which the MCP SDK brings along.
Every request needs the bearer token; there is no default one.
"""

from __future__ import annotations

import hmac
import json
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from broker.authorization.choices import Choice, answers_of
from broker.authorization.question_text import as_text
from broker.errors import PatternError

if TYPE_CHECKING:
    from starlette.requests import Request

    from broker.authorization.question_box import OpenQuestion, QuestionBox

LEAST_TOKEN_CHARACTERS = 16
BODY_BYTES = 256 * 1024
"""The longest answer."""


class Reply(BaseModel):
    """The body of an answer."""

    model_config = ConfigDict(extra="forbid")

    choices: list[Choice] = Field(max_length=1_000)


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

    async def listed(request: Request) -> Response:
        if not _is_allowed(request, token):
            return _problem(401, "give the token as Authorization: Bearer TOKEN")
        return JSONResponse({"questions": [_document(asked) for asked in box.open]})

    async def answered(request: Request) -> Response:
        if not _is_allowed(request, token):
            return _problem(401, "give the token as Authorization: Bearer TOKEN")
        asked = next((one for one in box.open if one.id == request.path_params["id"]), None)
        if asked is None:
            return _problem(404, "there is no such question, or its time is over")
        try:
            reply = Reply.model_validate_json(await _body(request))
            answers = answers_of(asked.question, reply.choices)
        except ValidationError as error:
            return _problem(400, _fault(error))
        except (PatternError, ValueError) as error:
            return _problem(400, str(error))
        if not asked.reply(answers):
            return _problem(409, "it has been answered already")
        return Response(status_code=204)

    return Starlette(routes=[Route("/questions", listed), Route("/questions/{id}", answered, methods=["POST"])])


def _is_allowed(request: Request, token: str) -> bool:
    given = request.headers.get("authorization", "")
    return hmac.compare_digest(given.encode("utf-8", "replace"), f"Bearer {token}".encode())


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
        "text": as_text(asked.question),
        "tools": [
            {
                "tool": group.name,
                "digest": group.calls[0].digest,
                "calls": len(group.calls),
                "same": dict(group.same),
                "varying": {place: list(values) for place, values in group.varying.items()},
                "suggestion": suggested.document() if (suggested := group.suggestion()) else None,
            }
            for group in asked.question.groups
        ],
    }


def _fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, fault['loc'])) or 'the body'}: {fault['msg']}"


def _problem(status: int, text: str) -> Response:
    headers = {"www-authenticate": "Bearer"} if status == 401 else None  # noqa: PLR2004  # unauthorized
    return Response(json.dumps({"error": text}), status, headers, media_type="application/json")
