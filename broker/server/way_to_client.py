"""How our own requests reach a client: its person by forms, its model by sampling.

Above: asking.py, which knows how one is sent in each era, and sampling.py. Below: eliciting.py, which the desks of runs
ask, through `answering`. What is set for a request holds for all that begins in it, so that nothing is passed along.
"""

from __future__ import annotations

import secrets
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeAlias

import mcp.types as t
from mcp import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import ValidationError

from broker.authorization.run_answerer import answering
from broker.callbacks import NoReplyError
from broker.server.agents import shows_texts
from broker.server.eliciting import ElicitingAnswerer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from mcp.server import ServerRequestContext

    RequestToClient: TypeAlias = t.ElicitRequest | t.CreateMessageRequest
    Send: TypeAlias = Callable[[RequestToClient], Awaitable[t.InputResponse | None]]
    SendAbout: TypeAlias = Callable[[RequestToClient, str, str], Awaitable[t.InputResponse | None]]

    LatestRequest: TypeAlias = Callable[[], ServerRequestContext[Any, Any]]

_WAY: ContextVar[Send | None] = ContextVar("_WAY", default=None)
_LATEST: ContextVar[LatestRequest | None] = ContextVar("_LATEST", default=None)


def way_to_client() -> Send | None:
    """Return how the client of the present request is sent a request of ours; None where it cannot be."""
    return _WAY.get()


def latest_request(ctx: ServerRequestContext[Any, Any]) -> LatestRequest:
    """Return what tells the latest of the requests that repeat the present one; of no other does its client hear."""
    return _LATEST.get() or (lambda: ctx)


@contextmanager
def reaching(
    ctx: ServerRequestContext[Any, Any], send: SendAbout, latest: LatestRequest | None = None
) -> Iterator[None]:
    """Let what begins in a block, also in tasks that it starts, reach the client; its person where it shows forms.

    `latest` tells the request that is open, where the client repeats it with its answers.
    """

    async def show(params: t.ElicitRequestParams, about: str, key: str) -> t.ElicitResult:
        reply = await send(t.ElicitRequest(params=params), about, key)
        return reply if isinstance(reply, t.ElicitResult) else t.ElicitResult(action="cancel")

    async def send_any(request: RequestToClient) -> t.InputResponse | None:
        return await send(request, "", "")

    token, token_of_latest = _WAY.set(send_any), _LATEST.set(latest)
    try:
        has = {"has_urls": _has_urls(ctx), "has_texts": shows_texts(ctx)}
        answerer = ElicitingAnswerer(show, **has) if has_forms(ctx) else None
        with nullcontext() if answerer is None else answering(answerer):
            yield
    finally:
        _LATEST.reset(token_of_latest)
        _WAY.reset(token)


async def push(
    ctx: ServerRequestContext[Any, Any], request: RequestToClient, _about: str, _key: str
) -> t.ElicitResult | t.CreateMessageResultWithTools:
    """Send a request of our own, while the client's is open.

    Raises:
        NoReplyError: The client answered with an error, with what is no answer to that, or is gone.
    """
    try:
        return await _pushed(ctx, request)
    except MCPError as error:
        if error.code == t.CONNECTION_CLOSED:
            raise NoReplyError(f"the client's session ended before it answered {request.method}") from None
        raise NoReplyError(f"the client answered {request.method} with error {error.code}") from None
    except ValidationError:
        raise NoReplyError(f"the client answered {request.method} with something else") from None


async def _pushed(
    ctx: ServerRequestContext[Any, Any], request: RequestToClient
) -> t.ElicitResult | t.CreateMessageResultWithTools:
    metadata = ServerMessageMetadata(related_request_id=ctx.request_id)
    if isinstance(request, t.CreateMessageRequest):
        return await ctx.session.send_request(request, t.CreateMessageResultWithTools, metadata=metadata)
    if isinstance(request.params, t.ElicitRequestURLParams):
        # The older era wants a name for it; the newer one knows none.
        params = request.params.model_copy(update={"elicitation_id": secrets.token_hex(8)})
        request = t.ElicitRequest(params=params)
    return await ctx.session.send_request(request, t.ElicitResult, metadata=metadata)


def has_forms(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Tell whether the client of a request shows forms to a person."""
    capabilities = ctx.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    # A client that names neither has forms: the older revision knew nothing else.
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def has_model(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Tell whether the client of a request lets its model be asked."""
    capabilities = ctx.session.client_capabilities
    return capabilities is not None and capabilities.sampling is not None


def _has_urls(ctx: ServerRequestContext[Any, Any]) -> bool:
    capabilities = ctx.session.client_capabilities
    return (
        capabilities is not None and capabilities.elicitation is not None and capabilities.elicitation.url is not None
    )
