"""Watches a server behind HTTP below the protocol: its refusals, broken answers and OAuth metadata.

Above: connecting.py and login.py, whose requests it watches, connection.py, and explain.py, which tells of it. Below:
httpx2, http_answers.py. Where metadata is was said by the server. A server with TLS that names an address without is
not followed there: it would choose to whom on our network requests go.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import mcp.types as t

from broker.authorization.shown import shown_name
from broker.errors import LoginError
from broker.upstreams.child_messages import OVER_BOUND
from broker.upstreams.http_answers import LATE, STREAM, BoundedBody, Pace, UnreadError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2
    from mcp import MCPError

REFUSALS = frozenset({401, 403})
_FOUND = 200
_WELL_KNOWN = "/.well-known/"

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
        refused: 401 or 403, if the server has answered nothing else to it.
        status: The status of the last answer.
        unread: Why that answer was not read to its end.
        is_over: Whether nobody waits for an answer any more.
        pace: How often its stream may be opened again.
    """

    refused: int | None = None
    status: int | None = None
    unread: str = ""
    is_over: bool = False
    pace: Pace = field(default_factory=Pace)
    _is_accepted: bool = False

    def note(self, status: int) -> None:
        """Note the status of an answer; after the first that is no refusal, none is about the call itself."""
        self._is_accepted = self._is_accepted or status not in REFUSALS
        self.refused = None if self._is_accepted else status
        self.status = status

    def loss(self, error: MCPError) -> str:
        """Return why an error is the SDK's and not the server's answer; empty if it may be the server's."""
        if self.status is None:
            return ""
        if self.unread:
            return self.unread
        if error.code == t.CONNECTION_CLOSED and error.message.startswith("SSE stream "):
            return OVER_BOUND if "exceeded" in error.message else "no answer"
        if not any(error.code == code and error.message.startswith(text) for code, text in _ERRORS_OF_THE_SDK):
            return ""
        if self.status != _FOUND:
            return f"it answered HTTP {self.status}"
        return "" if error.code in {t.INTERNAL_ERROR, t.METHOD_NOT_FOUND} else _NOT_THE_PROTOCOL

    def note_unread(self, why: str) -> None:
        """Take why an answer was not read to its end."""
        self.unread = why


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
    def sending(self) -> Iterator[SentCall]:
        """Note what is answered to the call sent in the block: the SDK makes its request in the sender's context."""
        sent = SentCall()
        token = _sending.set((self, sent))
        try:
            yield sent
        finally:
            sent.is_over = True
            _sending.reset(token)

    @property
    def unread(self) -> str:
        """Why an answer to something other than a call was not read to its end; empty if all were."""
        return self._beside_calls.unread

    def check(self, url: str) -> None:
        """Refuse to follow a server with TLS to an address without it.

        Raises:
            LoginError: It named one.
        """
        if self.url.startswith("https:") and not url.startswith("https:"):
            raise LoginError(f"it sends us to {_place(url)}, which is not an https address")

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
            await sent.pace.wait()

    async def _after(self, response: httpx2.Response) -> None:
        sent = self._sent()
        response.stream = BoundedBody(response, lambda: sent.is_over, sent.note_unread)
        if _is_for_metadata(response.request):
            self._metadata[_place(str(response.request.url))] = response.status_code
        elif _is_for_server(response.request):
            self.refused = response.status_code if response.status_code in REFUSALS else None
            sent.note(response.status_code)

    def _sent(self) -> SentCall:
        """Return what the present request is for."""
        trail, sent = _sending.get()
        return sent if trail is self else self._beside_calls


_sending: ContextVar[tuple[HttpTrail | None, SentCall]] = ContextVar("_sending", default=(None, SentCall()))


def _is_for_server(request: httpx2.Request) -> bool:
    return STREAM in request.headers.get("accept", "")


def _is_for_metadata(request: httpx2.Request) -> bool:
    return request.method == "GET" and not _is_for_server(request)


def _place(url: str) -> str:
    """Return an address without what may be secret: of its path, only a well-known name is kept."""
    parts = urlsplit(url)
    place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    if not parts.path.startswith(_WELL_KNOWN):
        return f"{shown_name(place)}/…"
    name, _, rest = parts.path.removeprefix(_WELL_KNOWN).partition("/")
    return f"{shown_name(place)}{shown_name(_WELL_KNOWN + name)}{'/…' if rest else ''}"
