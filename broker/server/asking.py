"""Answers requests during which a client may be asked something, in both protocol eras.

Above: app.py. Below: way_to_client.py, answerable.py. Until 2025-11-25 we send a request of our own while the client's
is open. Since 2026-07-28 the client's is answered with `input_required` and the run kept; the client repeats its
request with the answer, and is given the result or the next request. When the process died meanwhile, the repeated
request resumes the recorded run, also where the client has no state to pass.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import mcp.types as t
from mcp import MCPError

from broker.answerable import Answerable
from broker.recordings.journal.repeating import in_request
from broker.room import gives_way
from broker.server.identity import principal_of_request
from broker.server.way_to_client import has_forms, has_model, push, reaching
from broker.texts import run_texts
from codegen.tool_spec import canonical_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from mcp.server import ServerRequestContext

    from broker.server.way_to_client import RequestToClient

    Answering: TypeAlias = Callable[[str | None], Awaitable[t.CallToolResult]]

MAX_KEPT = 1_000
"""Runs that wait for a client to come back; of whoever has the most the oldest is dropped, which refuses its calls."""

KEPT_SECONDS = 3_600.0
"""How long an answer waits for its client to come for it."""

REPEATED_WITHIN_SECONDS = 3_600.0
"""Until 2025-11-25 a repeated request is told by its arguments alone: later the same ones are a new request."""

_QUESTION = re.compile(r"input_[0-9a-f]{16}")


class Asking:
    """Answers requests whose runs may have a question."""

    def __init__(self, find: Callable[[str, float | None], Sequence[str]]) -> None:
        """Start with nothing that waits; `find` returns the recorded runs of a request that is repeated.

        It is told how many seconds ago a run may have begun.
        """
        self._kept: dict[str, _Kept] = {}
        self._find = find
        self._claimed: list[str | None] = []
        """The recorded runs that requests go on with now; None for each request that begins one."""

    async def perform(
        self,
        ctx: ServerRequestContext[Any, Any],
        params: t.CallToolRequestParams,
        answer: Answering,
    ) -> t.CallToolResult | t.InputRequiredResult:
        """Answer a request, or go on with the one that it repeats; `answer` is given the recorded run to go on with.

        Raises:
            MCPError: It repeats no request that waits.
        """
        if params.request_state is not None:
            return await self._go_on(ctx, params, answer)
        identity = _identity(ctx, params)
        request = _request(identity)
        run = self._choose(request, REPEATED_WITHIN_SECONDS)
        if ctx.session.can_send_request:
            with in_request(request), reaching(ctx, partial(push, ctx)):
                return await self._claim(run, answer)()
        if not (has_forms(ctx) or has_model(ctx)):
            with in_request(request):
                return await self._claim(run, answer)()
        kept = next((one for one in self._kept.values() if run is not None and one.run == run), None)
        if kept is None:
            kept = _Kept(principal_of_request(), identity, ctx, run=run)
            ctx.lifespan_context.tasks.start_soon(kept.perform, self._claim(run, answer))
        return await self._next(kept, ctx)

    def _choose(self, request: str, within_seconds: float | None) -> str | None:
        """Return the recorded run that a repeated request goes on with: of equal requests each with its own."""
        return min(self._find(request, within_seconds), key=self._claimed.count, default=None)

    def _claim(self, run: str | None, answer: Answering) -> Callable[[], Awaitable[t.CallToolResult]]:
        """Return what answers a request; until it has, equal requests go on with other runs, if there are any."""
        self._claimed.append(run)

        async def answered() -> t.CallToolResult:
            try:
                return await answer(run)
            finally:
                self._claimed.remove(run)

        return answered

    async def _go_on(
        self, ctx: ServerRequestContext[Any, Any], params: t.CallToolRequestParams, answer: Answering
    ) -> t.CallToolResult | t.InputRequiredResult:
        (state, _, question), identity = (params.request_state or "").partition("."), _identity(ctx, params)
        if not _QUESTION.fullmatch(question):
            raise MCPError(t.INVALID_PARAMS, run_texts.NOTHING_WAITS)
        kept = self._kept.get(state)
        if kept is None and (run := self._choose(_request(identity, state), None)) is not None:
            kept = self._kept[state] = _Kept(principal_of_request(), identity, ctx, state, run)
            ctx.lifespan_context.tasks.start_soon(kept.perform, self._claim(run, answer))
            await kept.has_news()
        if kept is None or kept.identity != identity:
            raise MCPError(t.INVALID_PARAMS, run_texts.NOTHING_WAITS)
        asked = kept.asked
        if asked is not None and asked.question == question:
            response = (params.input_responses or {}).get(asked.key)
            if response is not None:
                asked.reply(response)
        return await self._next(kept, ctx)

    async def _next(self, kept: _Kept, ctx: ServerRequestContext[Any, Any]) -> t.CallToolResult | t.InputRequiredResult:
        kept.ctx = ctx
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
        kept.used_at = anyio.current_time()
        self._kept[kept.state] = kept
        self._forget()
        if len(self._kept) > MAX_KEPT and (leaving := gives_way(self._kept, kept.principal)) is not None:
            self._kept.pop(leaving).scope.cancel()
        state = f"{kept.state}.{asked.question}"
        return t.InputRequiredResult(input_requests={asked.key: asked.request}, request_state=state)

    def _forget(self) -> None:
        """Drop answers that nobody has come for: what is displayed may be megabytes in each."""
        oldest = anyio.current_time() - KEPT_SECONDS
        self._kept = {
            state: kept for state, kept in self._kept.items() if kept.over_at is None or kept.over_at > oldest
        }


class _Asked(Answerable[t.InputResponse]):
    """A request that a client is being given.

    Attributes:
        request: What it is asked.
        question: Names it in the state that the client passes: an answer to the one before is none to this one. The
            same question of a run that was resumed has the same one.
        key: Names it to the client: as the server that asks does, which may call all its questions the same.
    """

    def __init__(self, request: RequestToClient, about: str, key: str) -> None:
        super().__init__()
        self.request = request
        shown = canonical_json([about, request.model_dump(mode="json")])
        self.question = f"input_{hashlib.sha256(shown.encode()).hexdigest()[:16] if about else secrets.token_hex(8)}"
        self.key = key or self.question


@dataclass(slots=True, eq=False)
class _Kept:
    """A request that is being answered, and outlasts the times it is repeated.

    Attributes:
        principal: Whose it is.
        identity: The same, and what was asked for.
        ctx: The latest of the requests that are one.
        state: What the client passes to go on with it, with the question after a dot; hard to guess.
        run: The recorded run that it goes on with.
        asked: What the client has been asked, or is about to be.
        used_at: When the client was last given a question, on the event loop's clock.
        over_at: When it was answered, on the event loop's clock; None as long as it is not.
        scope: Ends the answering.
    """

    principal: str
    identity: str
    ctx: ServerRequestContext[Any, Any]
    state: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    run: str | None = None
    asked: _Asked | None = None
    used_at: float = 0.0
    over_at: float | None = None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    _result: t.CallToolResult | None = None
    _error: Exception | None = None
    _news: anyio.Event = field(default_factory=anyio.Event)
    _turn: anyio.Lock = field(default_factory=anyio.Lock)

    @property
    def is_busy(self) -> bool:
        """Whether it is being answered, and waits for nobody."""
        return self.over_at is None and (self.asked is None or self.asked.is_answered)

    async def perform(self, answer: Callable[[], Awaitable[t.CallToolResult]]) -> None:
        """Answer the request, as a task of the server; its questions wait for the client."""
        way = reaching(self.ctx, self._send, lambda: self.ctx)
        with self.scope, in_request(_request(self.identity, self.state)), way:
            try:
                self._result = await answer()
            except Exception as error:  # noqa: BLE001  # whoever repeats the request gets it
                self._error = error
        self.over_at = anyio.current_time()
        self._tell()

    async def has_news(self) -> None:
        """Wait until it is answered, or has a question that the client has not answered."""
        while self.is_busy:
            await self._news.wait()

    def outcome(self) -> t.CallToolResult:
        """Return what it was answered with.

        Raises:
            Exception: What ended it.
        """
        if self._error is not None:
            raise self._error
        if self._result is None:
            raise MCPError(t.INVALID_PARAMS, run_texts.NOTHING_WAITS)
        return self._result

    def _tell(self) -> None:
        """Wake all who wait for news."""
        self._news.set()
        self._news = anyio.Event()

    async def _send(self, request: RequestToClient, about: str, key: str) -> t.InputResponse | None:
        """Give the client a request when it comes for it; one at a time."""
        async with self._turn:
            self.asked = asked = _Asked(request, about, key)
            self._tell()
            try:
                return await asked.answer()
            finally:
                self.asked = None


def _identity(ctx: ServerRequestContext[Any, Any], params: t.CallToolRequestParams) -> str:
    """Return what makes two requests the same; one that nobody can be asked about is none of those with a person."""
    return canonical_json([principal_of_request(), params.name, params.arguments or {}, has_forms(ctx)])


def _request(identity: str, state: str = "") -> str:
    """Return what is kept of a request, as `REQUEST` or `REQUEST.STATE`: only who repeats it goes on with its run."""
    return ".".join(
        hashlib.sha256(part.encode("utf-8", "surrogatepass")).hexdigest() for part in (identity, state) if part
    )
