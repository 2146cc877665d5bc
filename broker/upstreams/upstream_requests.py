"""What a server asks while a call of its tool is open, of a person or of a model. All else is refused.

Above: upstream.py, which has one for each server; tool_calls.py says for each call who can be asked. Below:
form_reading.py. Until 2025-11-25 a server sends requests of its own, and does not say for which call: they are answered
only while the open calls are all of one run. Since 2026-07-28 it answers the call with `input_required`, and the call
is sent again with the answers. Nothing is ever answered by us or by a script: whoever is not asked, or does not answer,
has refused.
"""

from __future__ import annotations

import math
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import anyio
import mcp.types as t
from pydantic_core import to_json

from broker.authorization.form_reading import FormError, form_of
from broker.authorization.forms import UnshownError
from broker.callbacks import awaited, failing_alone
from broker.logging import logger
from codegen.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping

    from broker.authorization.forms import Person
    from broker.upstreams.http_trail import SentCall

_Sent = TypeVar("_Sent")

MAX_REQUESTS = 10
"""How often a server may ask during one call."""
STATE_CHARACTERS = 64 * 1024
"""The longest `requestState` that is sent back."""
SAMPLING_SECONDS = 120.0
SAMPLING_CHARACTERS = 400_000


@dataclass(frozen=True, slots=True)
class Sampling:
    """A server's request for an answer of a model.

    Attributes:
        server: Which server asks, by its name in the config.
        params: What it asks, as in `sampling/createMessage`; checked by the protocol's schema, written by the server.
    """

    server: str
    params: t.CreateMessageRequestParams


Sampler: TypeAlias = "Callable[[Sampling], Awaitable[t.CreateMessageResult]]"
"""The embedding program's: asks a model for a server, or raises to refuse."""


class RefusedError(Exception):
    """A request that nobody answers; the text is ours, and the server is told."""


@dataclass(slots=True, eq=False)
class OpenCall:
    """A call that has been sent.

    Attributes:
        run: Which run it is of.
        person: Who can be asked.
        scope: Ends it; made when the call is under way. The deadline is put off while somebody is asked.
        sends: What HTTP shows of it, each time that it was sent; empty for other servers.
    """

    run: str
    person: Person | None = None
    scope: anyio.CancelScope = field(init=False)
    sends: list[SentCall] = field(default_factory=list)
    _asked: int = 0
    _pauses: int = 0
    _seconds_left: float = 0.0
    _turn: anyio.Lock | None = None

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until the question before is answered; a call has so many questions and no more."""
        self._asked += 1
        if self._asked > MAX_REQUESTS:
            raise RefusedError(f"it has asked {MAX_REQUESTS} times during one call")
        self._turn = self._turn or anyio.Lock()
        async with self._turn:
            yield

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let the call's own time stand still for a block."""
        if self._pauses == 0:
            self._seconds_left, self.scope.deadline = self.scope.deadline - anyio.current_time(), math.inf
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if self._pauses == 0:
                self.scope.deadline = anyio.current_time() + self._seconds_left


class UpstreamRequests:
    """The requests of one server."""

    def __init__(
        self,
        server: str,
        *,
        elicits: bool,
        sampler: Sampler | None,
        redact: Callable[[Any], Any],
    ) -> None:
        """Start with no call open.

        Args:
            server: Its name in the config.
            elicits: Whether the operator lets it ask people.
            sampler: Answers its requests for a model.
            redact: Takes secrets out of what it asks.
        """
        self.elicits = elicits
        self.sampler = sampler
        self._server = server
        self._redact = redact
        self._open: list[OpenCall] = []
        self._pushed: dict[anyio.CancelScope, str] = {}

    def begin(self, call: OpenCall) -> None:
        """Let the server ask: a call is open."""
        self._open.append(call)

    def end(self, call: OpenCall) -> None:
        """Answer no more for a call; what the server still asks for its run, without one open, is over too."""
        self._open.remove(call)
        if self._pushed and not any(other.run == call.run for other in self._open):
            for scope in [scope for scope, run in self._pushed.items() if run == call.run]:
                scope.cancel()

    async def pushed(self, method: str, params: Mapping[str, Any]) -> t.InputResponse:
        """Answer a request of the server's own, for the run whose calls are open.

        Raises:
            RefusedError: Nobody answers it.
        """
        calls = list(self._open)
        if len({call.run for call in calls}) != 1:
            raise RefusedError("calls of several runs are open" if calls else "no call is open")
        tools = {call.person.tool for call in calls if call.person is not None}
        with anyio.CancelScope() as scope, ExitStack() as stack:
            self._pushed[scope] = calls[0].run
            stack.callback(self._pushed.pop, scope)
            for call in calls[1:]:
                stack.enter_context(call.paused())
            return await self._answer(calls[0], method, params, tools.pop() if len(tools) == 1 else "")
        raise RefusedError("the call is over")

    async def completed(
        self,
        call: OpenCall,
        send: Callable[[Mapping[str, t.InputResponse] | None, str | None], Awaitable[dict[str, Any]]],
    ) -> dict[str, Any]:
        """Send a call, and again with the answers as long as it is answered with questions; return the last result.

        Raises:
            RefusedError: A question is one that nobody answers.
        """
        replies: dict[str, t.InputResponse] | None = None
        state: str | None = None
        while True:
            raw = await send(replies, state)
            if raw.get("resultType") != "input_required":
                return raw
            requests, state = raw.get("inputRequests"), raw.get("requestState")
            if not isinstance(requests, dict) or not requests or len(requests) > MAX_REQUESTS:
                raise RefusedError("it asks for nothing that we know")
            if state is not None and not (isinstance(state, str) and len(state) <= STATE_CHARACTERS):
                raise RefusedError(f"its state is longer than {STATE_CHARACTERS} characters")
            _writable((state, *requests))
            replies = {key: await self._reply(call, key, request) for key, request in requests.items()}

    async def _reply(self, call: OpenCall, key: str, request: Any) -> t.InputResponse:
        tool = call.person.tool if call.person is not None else ""
        match request:
            case {"method": str(method), "params": dict(params)}:
                return await self._answer(call, method, params, tool, key)
            case {"method": str(method)}:
                return await self._answer(call, method, {}, tool)
        raise RefusedError("it asks for nothing that we know")

    async def _answer(
        self, call: OpenCall, method: str, params: Mapping[str, Any], tool: str, key: str = ""
    ) -> t.InputResponse:
        async with call.turn():
            match method:
                case "elicitation/create":
                    return _writable(await self._elicit(call, self._redact(params), tool, self._redact(key)))
                case "sampling/createMessage":
                    return _writable(await self._sample(call, self._redact(params)))
        raise RefusedError("requests of this kind are refused")

    async def _elicit(self, call: OpenCall, params: Mapping[str, Any], tool: str, key: str) -> t.ElicitResult:
        if not self.elicits:
            raise RefusedError(f'the config does not let {self._server} ask a person: "elicitation": true does')
        person = call.person
        if person is None:
            raise RefusedError("nobody is there to ask")
        try:
            form = form_of(self._server, tool, params, timeout_seconds=person.timeout_seconds, key=key)
        except FormError as error:
            raise RefusedError(f"the form cannot be shown: {error}") from None
        with call.paused():
            try:
                reply = await person.fill(form)
            except UnshownError as error:
                raise RefusedError(str(error)) from None
        if reply.action != "accept" or form.url:
            return t.ElicitResult(action=reply.action)
        if form.fault(reply.content) is not None:
            # What is wrong would quote the person.
            logger().warning("an answer does not fit its form, and was not sent", server=self._server, tool=tool)
            raise RefusedError("the answer does not fit the form")
        return t.ElicitResult(action="accept", content=dict(reply.content))

    async def _sample(self, call: OpenCall, params: Mapping[str, Any]) -> t.CreateMessageResult:
        if self.sampler is None:
            raise RefusedError("no model was given for it")
        try:
            asked = t.CreateMessageRequestParams.model_validate(params, by_name=False)
            size = len(asked.model_dump_json())
        except ValueError:  # also of what is nested too deep to be written
            raise RefusedError("the request cannot be read") from None
        if size > SAMPLING_CHARACTERS:
            raise RefusedError(f"the request is longer than {SAMPLING_CHARACTERS} characters")
        with call.paused():
            try:
                with failing_alone(), anyio.fail_after(SAMPLING_SECONDS):
                    answer: Any = await awaited("sampler", self.sampler(Sampling(self._server, asked)))
                if isinstance(answer, t.CreateMessageResult):
                    return answer
                kind = type(answer).__name__
                logger().error("a sampler returns a CreateMessageResult; this one did not", returned=kind)
            except Exception as error:  # noqa: BLE001  # the embedding program's own code
                logger().warning(
                    "the sampler failed or refused",
                    server=self._server,
                    error=type(error).__name__,
                    said=one_line(str(error), 200),
                )
        raise RefusedError("the host refused")


def _writable(sent: _Sent) -> _Sent:
    """Return what the server is to be sent, which a server, a person or a model has written.

    Raises:
        RefusedError: It cannot be written as JSON in UTF-8.
    """
    try:
        to_json(sent)
    except ValueError:
        raise RefusedError("what has to be sent back holds half of a surrogate pair") from None
    return sent
