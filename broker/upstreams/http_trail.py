"""What is seen of a server behind HTTP below the protocol: its refusals, and what its OAuth metadata came to.

Above: connecting.py and login.py, whose requests it watches, connection.py, and explain.py, which tells of it. Below:
httpx2. Where metadata is was said by the server. A server with TLS that names an address without is not followed there:
it would choose to whom on our network requests go.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from broker.authorization.shown import shown_name
from broker.errors import LoginError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2

REFUSALS = frozenset({401, 403})
_FOUND = 200
_WELL_KNOWN = "/.well-known/"


@dataclass(slots=True)
class SentCall:
    """One call on its way.

    Attributes:
        refused: 401 or 403, where that is all that the server has answered to it.
    """

    refused: int | None = None
    _is_accepted: bool = False

    def note(self, status: int) -> None:
        """Take the status of an answer; whatever comes after one that was no refusal is not about the call itself."""
        self._is_accepted = self._is_accepted or status not in REFUSALS
        self.refused = None if self._is_accepted else status


_call: ContextVar[SentCall | None] = ContextVar("call", default=None)


@contextmanager
def sending() -> Iterator[SentCall]:
    """Note what is answered to the call sent in the block: the SDK makes its request in the sender's context."""
    sent = SentCall()
    token = _call.set(sent)
    try:
        yield sent
    finally:
        _call.reset(token)


@dataclass(slots=True)
class HttpTrail:
    """The answers to the requests of one client.

    Attributes:
        url: The server.
        refused: 401 or 403, where that is how the server itself has answered last.
    """

    url: str = ""
    refused: int | None = None
    _metadata: dict[str, int | None] = field(default_factory=dict)

    @property
    def hooks(self) -> dict[str, list[Any]]:
        """What the client calls before each request and after each answer."""
        return {"request": [self._before], "response": [self._after]}

    @property
    def missing_metadata(self) -> str:
        """Which OAuth metadata was asked for last and is not there; empty where it is, and where none was asked for."""
        place, status = next(reversed(self._metadata.items()), ("", _FOUND))
        if status == _FOUND:
            return ""
        return f"its OAuth metadata at {place} {'did not answer' if status is None else f'answered HTTP {status}'}"

    async def _before(self, request: httpx2.Request) -> None:
        if self.url.startswith("https:") and request.url.scheme != "https":
            raise LoginError(f"it sends us to {_place(request)}, which is not an https address")
        if _is_for_metadata(request):
            self._metadata.pop(place := _place(request), None)
            self._metadata[place] = None

    async def _after(self, response: httpx2.Response) -> None:
        if _is_for_metadata(response.request):
            self._metadata[_place(response.request)] = response.status_code
        elif _is_for_server(response.request):
            self.refused = response.status_code if response.status_code in REFUSALS else None
            if (sent := _call.get()) is not None:
                sent.note(response.status_code)


def _is_for_server(request: httpx2.Request) -> bool:
    return "text/event-stream" in request.headers.get("accept", "")


def _is_for_metadata(request: httpx2.Request) -> bool:
    return request.method == "GET" and not _is_for_server(request)


def _place(request: httpx2.Request) -> str:
    """Return an address without what may be a secret in it: of its path, only a well-known name."""
    parts = urlsplit(str(request.url))
    place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    if not parts.path.startswith(_WELL_KNOWN):
        return f"{shown_name(place)}/…"
    name, _, rest = parts.path.removeprefix(_WELL_KNOWN).partition("/")
    return f"{shown_name(place)}{shown_name(_WELL_KNOWN + name)}{'/…' if rest else ''}"
