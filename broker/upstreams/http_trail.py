"""Watches a server behind HTTP below the protocol: its refusals, broken answers and OAuth metadata.

Above: connecting.py and login.py, whose requests it watches, connection.py, and explain.py, which tells of it. Below:
httpx2, http_answers.py. Where metadata is was said by the server. A server with TLS that names an address without is
not followed there: it would choose to whom on our network requests go.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from contextvars import Context, ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
import httpx2
import mcp.types as t
from mcp.shared.dispatcher import coerce_request_id

from broker.authorization.shown import shown_name
from broker.errors import LoginError
from broker.upstreams.http_answers import BROKEN_OFF, LATE, STREAM, UNREACHED, BoundedBody, StreamInterval, UnreadError
from broker.upstreams.message_bounds import OVER_BOUND

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from mcp import MCPError

REFUSALS = frozenset({401, 403})
SESSION_OVER = 404
_FOUND = 200
_WELL_KNOWN = "/.well-known/"

ANOTHER = "it answered a request with the id of another one"
_NO_ANSWER = "it sent no answer"
_NOT_THE_PROTOCOL = "it sent a message that is not JSON-RPC"
_ERRORS_OF_THE_SDK = (
    (t.INTERNAL_ERROR, "Server returned an error response"),
    (t.INVALID_REQUEST, "Redirect to "),
    (t.INVALID_REQUEST, "Unexpected content type: "),
    (t.INVALID_REQUEST, "server answered a request with 202 Accepted"),
    (t.METHOD_NOT_FOUND, "Not Found"),
    (t.PARSE_ERROR, "Failed to parse "),
)
"""What the SDK says in the place of a server that has sent no JSON-RPC, and how that begins."""


@dataclass(slots=True)
class SentCall:
    """One call on its way.

    Attributes:
        refused: 401 or 403, if the server has answered nothing else to it, and has not been sent it again since.
        status: The status of the last answer.
        unread: Why that answer was not read to its end, or did not come.
        has_failed: Whether a request of it met an error, of the network or of the login.
        is_over: Whether nobody waits for an answer any more: what is read of one is left.
        request_id: The id of its request, once that has one.
        interval: How often its stream may be opened again.
    """

    refused: int | None = None
    status: int | None = None
    unread: str = ""
    has_failed: bool = False
    is_over: bool = False
    request_id: t.RequestId | None = None
    interval: StreamInterval = field(default_factory=StreamInterval)
    _body: httpx2.AsyncByteStream | httpx2.SyncByteStream | None = None
    _waits: set[anyio.CancelScope] = field(default_factory=set)

    @property
    def may_have_acted(self) -> bool:
        """Whether the server may have executed the call: it was sent, and not refused."""
        return self._body is not None and self.refused is None

    def has(self, request: httpx2.Request) -> bool:
        """Tell whether a request has the call: the first, sent again with other credentials or to another path."""
        return request.stream is self._body

    def end(self) -> None:
        """Leave what is awaited in blocks of `waited_for`."""
        self.is_over = True
        for wait in self._waits:
            wait.cancel()

    @contextmanager
    def waited_for(self) -> Iterator[None]:
        """Wait for an answer, or a piece of it, as long as somebody waits for that of the call.

        Raises:
            UnreadError: Nobody does any more.
        """
        with anyio.CancelScope() as wait:
            if self.is_over:
                raise UnreadError(LATE)
            self._waits.add(wait)
            try:
                yield
            finally:
                self._waits.discard(wait)
        if wait.cancelled_caught:
            raise UnreadError(LATE)

    def begin(self, request: httpx2.Request) -> None:
        """Take a request that will be sent: the first has the call.

        Raises:
            UnreadError: It has the call, and nobody waits for that any more. Or it takes back one that was refused.
        """
        is_the_call = self._body is None or self.has(request)
        if self.is_over if is_the_call else self.refused is not None:
            raise UnreadError(LATE)
        if is_the_call:
            self._body, self.refused = request.stream, None

    def note(self, answer: httpx2.Response) -> None:
        """Note an answer; only one to a request that has the call says whether that was let in."""
        if self.has(answer.request):
            self.refused = answer.status_code if answer.status_code in REFUSALS else None
        self.status = answer.status_code

    def note_failed(self, error: Exception) -> None:
        """Take what went wrong with a request, which has no answer; without a connection nothing was sent."""
        self.has_failed |= not isinstance(error, UnreadError)
        self.unread = str(error) if isinstance(error, UnreadError) else BROKEN_OFF
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout) and self.has(error.request):
            self._body, self.unread = None, UNREACHED

    def loss(self, error: MCPError) -> str:
        """Return why an error is the SDK's and not the server's answer; empty if it may be the server's."""
        if self.unread:
            return self.unread
        if self.status is None:
            return ""
        if error.code == t.CONNECTION_CLOSED and error.message.startswith("SSE stream "):
            return OVER_BOUND if "exceeded" in error.message else _NO_ANSWER
        if not any(error.code == code and error.message.startswith(text) for code, text in _ERRORS_OF_THE_SDK):
            return ""
        if self.status != _FOUND:
            return f"it answered HTTP {self.status}"
        return "" if error.code in {t.INTERNAL_ERROR, t.METHOD_NOT_FOUND} else _NOT_THE_PROTOCOL

    def note_unread(self, why: str) -> None:
        """Take why an answer was not read to its end."""
        self.unread = why

    def own(self, answer: t.JSONRPCResponse | t.JSONRPCError) -> t.JSONRPCResponse | t.JSONRPCError:
        """Return what was answered to its request; an error in the place of an answer to another one."""
        if self.request_id is None or answer.id is None or coerce_request_id(answer.id) == self.request_id:
            return answer
        self.unread = ANOTHER
        return t.JSONRPCError(jsonrpc="2.0", id=self.request_id, error=t.ErrorData(code=t.PARSE_ERROR, message=ANOTHER))


@dataclass(slots=True)
class HttpTrail:
    """The answers to the requests of one client.

    Attributes:
        url: The server; empty where it is not behind HTTP.
        refused: 401 or 403, if that was the last answer of the server itself.
    """

    url: str = ""
    refused: int | None = None
    _metadata: dict[str, int | None] = field(default_factory=dict)
    _beside_calls: SentCall = field(default_factory=SentCall)

    @property
    def hooks(self) -> dict[str, list[Any]]:
        """What the client calls before each request and after each answer."""
        return {"request": [self._before], "response": [self._after]}

    @property
    def missing_metadata(self) -> str:
        """The address of OAuth metadata that was asked for last and is missing; empty if none is."""
        place, status = next(reversed(self._metadata.items()), ("", _FOUND))
        if status == _FOUND:
            return ""
        return f"its OAuth metadata at {place} {'did not answer' if status is None else f'answered HTTP {status}'}"

    @contextmanager
    def sending(self, sent: SentCall) -> Iterator[None]:
        """Note what is answered to the call sent in the block: the SDK makes its request in the sender's context."""
        token = _sending.set((self, sent))
        try:
            yield
        finally:
            sent.end()
            _sending.reset(token)

    def sent_in(self, context: Context | None) -> SentCall | None:
        """Return the call that was sent in a context; None where something else was."""
        trail, sent = (None, None) if context is None else context.get(_sending, (None, None))
        return sent if trail is self else None

    @property
    def unread(self) -> str:
        """Why an answer to something other than a call was not read to its end; empty if all were."""
        return self._beside_calls.unread

    def loss(self, error: MCPError) -> str:
        """Return why an error is the SDK's and not the answer to something other than a call; empty if it may be."""
        return self._beside_calls.loss(error)

    def waited_for(self, request: httpx2.Request) -> AbstractContextManager[None]:
        """Return the block in which the answer to a request is awaited, which ends with the call that it is for.

        What is told or answered to a server beside a call may take until after it.
        """
        sent = self._sent()
        is_for_the_call = sent.has(request) or (request.method == "GET" and _is_for_server(request))
        return sent.waited_for() if is_for_the_call else nullcontext()

    def note_failed(self, request: httpx2.Request, error: Exception) -> bool:
        """Note that a request got no answer; tell whether it was one of a call, so that this alone has failed."""
        sent = self._sent()
        if sent is self._beside_calls or request.method != "POST":
            return False
        sent.note_failed(error)
        return True

    def check(self, url: str) -> None:
        """Refuse to follow a server with TLS to an address without it, and any server to one with a name in it.

        A name and a password before the host would be sent there, and before the eyes of a person look like the host.

        Raises:
            LoginError: It named one.
        """
        if self.url.startswith("https:") and not url.startswith("https:"):
            raise LoginError(f"it sends us to {_place(url)}, which is not an https address")
        if _user_of(url) not in (b"", _user_of(self.url)):
            raise LoginError(f"it sends us to {_place(url)} with a user name in the address")

    async def _before(self, request: httpx2.Request) -> None:
        self.check(str(request.url))
        request.headers["Accept-Encoding"] = "identity"
        if _is_for_metadata(request):
            self._metadata.pop(place := _place(str(request.url)), None)
            self._metadata[place] = None
        elif request.method == "GET":
            sent = self._sent()
            if sent.is_over:
                raise UnreadError(LATE)
            await sent.interval.wait()
        elif _is_for_server(request) and (sent := self._sent()) is not self._beside_calls:
            sent.begin(request)

    async def _after(self, response: httpx2.Response) -> None:
        sent = self._sent()
        response.encoding = "utf-8"  # as events are, whatever is said: others hide what a message holds, or are slow
        # New tokens are for the calls after this one, too.
        waited_for = sent.waited_for if _is_for_server(response.request) else nullcontext
        response.stream = BoundedBody(response, waited_for, sent.note_unread)
        if _is_for_metadata(response.request):
            self._metadata[_place(str(response.request.url))] = response.status_code
        elif _is_for_server(response.request):
            self.refused = response.status_code if response.status_code in REFUSALS else None
            if sent is not self._beside_calls or response.request.method == "POST":
                sent.note(response)

    def _sent(self) -> SentCall:
        """Return what the present request is for."""
        trail, sent = _sending.get()
        return sent if trail is self else self._beside_calls


_sending: ContextVar[tuple[HttpTrail | None, SentCall]] = ContextVar("_sending", default=(None, SentCall()))


def _is_for_server(request: httpx2.Request) -> bool:
    return STREAM in request.headers.get("accept", "")


def _is_for_metadata(request: httpx2.Request) -> bool:
    return request.method == "GET" and not _is_for_server(request)


def _user_of(url: str) -> bytes:
    return httpx2.URL(url).userinfo


def _place(url: str) -> str:
    """Return an address without what may be secret: of its path, only a well-known name is kept."""
    parts = urlsplit(url)
    place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    if not parts.path.startswith(_WELL_KNOWN):
        return f"{shown_name(place)}/…"
    name, _, rest = parts.path.removeprefix(_WELL_KNOWN).partition("/")
    return f"{shown_name(place)}{shown_name(_WELL_KNOWN + name)}{'/…' if rest else ''}"
