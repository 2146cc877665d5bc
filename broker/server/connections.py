"""Makes room for connections of clients until 2025-11-25, which the SDK holds as sessions of its own.

Above: http.py. Below: the SDK's session manager, room.py. The SDK alone would refuse everybody once somebody has taken
all of them. A connection that gives way is ended as if its client had: the client is told 404, and begins another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic_core import from_json
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response

from broker.room import gives_way
from broker.server.identity import SESSION_HEADER, principal_of_owner, principal_of_request
from broker.server.open_requests import key_of
from broker.server.request_ids import NO_ID, has_no_right_id
from broker.server.request_values import received_again
from broker.texts import tool_texts
from broker.value_count import values_in

if TYPE_CHECKING:
    from mcp.server.streamable_http import StreamableHTTPServerTransport
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.types import ASGIApp, Receive, Scope, Send

    from broker.server.open_requests import OpenRequests, RequestKey
    from broker.server.session_keeper import SessionKeeper

OPENING_BYTES = 64 * 1024
OPENING_VALUES = 1_000
"""How much a request may hold that opens a connection: the SDK keeps it as long as that."""

_VERSION_HEADER = "mcp-protocol-version"
_RESUMED_FROM = b"last-event-id"
_LARGE = (
    f"A request without Mcp-Session-Id opens a session, and may have {OPENING_BYTES} bytes and {OPENING_VALUES} values"
)
_OPEN_SAYS = "A request with this id is still being answered. This one was not executed: give each its own id."
_OPEN = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": _OPEN_SAYS}}
_NO_ID = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": NO_ID}}
_FULL = {"jsonrpc": "2.0", "id": None, "error": {"code": -32603, "message": tool_texts.TOO_MANY_SESSIONS}}


class Connections:
    """An application in front of the manager's that makes room for connections; the SDK is to have no bound of its own.

    It is behind the bound on bodies: who has not sent a whole request asks for no room.
    """

    def __init__(
        self,
        manager: StreamableHTTPSessionManager,
        sessions: SessionKeeper,
        open_requests: OpenRequests,
        *,
        most: int,
    ) -> None:
        """Stand in front of a manager's application.

        `sessions` knows in which scripts run, and hears of their ends; `open_requests`, what is being answered.
        """
        self._manager = manager
        self._app: ASGIApp = manager.asgi_app.app
        self._sessions = sessions
        self._open_requests = open_requests
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on that is not open; one that opens a connection only where there is room for it."""
        request = refusal = None
        headers = Headers(scope=scope)
        is_older = headers.get(_VERSION_HEADER, HANDSHAKE_PROTOCOL_VERSIONS[0]) in HANDSHAKE_PROTOCOL_VERSIONS
        if is_older and SESSION_HEADER not in headers:
            receive = received_again(first := await receive(), receive)
            refusal = await self._refused_opening(first.get("body", b""))
        elif is_older and scope["method"] == "POST":
            receive = received_again(first := await receive(), receive)
            message = _decoded(first.get("body", b""))
            request = key_of(headers[SESSION_HEADER], message)
            refusal = self._refused(request, message)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        # Nothing is kept of a stream that ended, and the SDK answers the wish for it with nothing at all.
        kept = [(name, value) for name, value in scope["headers"] if name != _RESUMED_FROM]
        with self._open_requests.holding(request):
            await self._app({**scope, "headers": kept}, receive, send)
        if scope["method"] == "DELETE":
            self._note_end(headers.get(SESSION_HEADER, ""))

    async def _refused_opening(self, body: bytes) -> Response | None:
        """Return the answer to a request that opens no connection; None to one that may."""
        if _is_large(body):
            return Response(_LARGE, status_code=413)
        if has_no_right_id(_decoded(body)):
            return JSONResponse(_NO_ID, status_code=400)
        return None if await self._make_room() else JSONResponse(_FULL, status_code=503)

    def _refused(self, request: RequestKey | None, message: Any) -> Response | None:
        """Return the answer to a message of a connection that is not passed on; None to any other."""
        if has_no_right_id(message):
            return JSONResponse(_NO_ID, status_code=400)
        return JSONResponse(_OPEN, status_code=400) if request in self._open_requests else None

    async def _make_room(self) -> bool:
        """Tell whether there is room, if need be after a connection has given way."""
        # The SDK has no public way to them.
        while len(self._manager._server_instances) >= self._most and len(claims := self._claims()) >= self._most:  # noqa: SLF001
            key = gives_way(claims, principal_of_request())
            if key is None:
                return False
            await claims[key].transport.terminate()
            self._sessions.end(claims[key].principal, key)
        return True

    def _note_end(self, key: str) -> None:
        """End the session of a connection with it, if its client may end that, and has."""
        transport = self._manager._server_instances.get(key)  # noqa: SLF001  # as above
        if transport is None or transport.is_terminated:
            self._sessions.end(principal_of_request(), key)

    def _claims(self) -> dict[str, _Connection]:
        claims = {}
        for key, transport in self._manager._server_instances.items():  # noqa: SLF001  # as above
            if not transport.is_terminated:
                principal = principal_of_owner(self._manager._session_owners.get(key))  # noqa: SLF001
                claims[key] = _Connection(transport, principal, self._sessions.is_busy(principal, key))
        return claims


def end_standing_streams(manager: StreamableHTTPSessionManager) -> None:
    """End the streams on which clients wait for what may come, and no answer is due."""
    for transport in list(manager._server_instances.values()):  # noqa: SLF001  # as above
        transport.close_standalone_sse_stream()


def _decoded(body: bytes) -> Any:
    """Return what a body says; None where that is no JSON, which is for others to refuse."""
    try:
        return from_json(body)
    except ValueError:
        return None


def _is_large(body: bytes) -> bool:
    return len(body) > OPENING_BYTES or values_in(body, OPENING_VALUES) > OPENING_VALUES


@dataclass(frozen=True, slots=True)
class _Connection:
    transport: StreamableHTTPServerTransport
    principal: str
    is_busy: bool

    @property
    def used_at(self) -> float:
        """When it ends for want of use, which is later the later it was used."""
        scope = self.transport.idle_scope
        return math.inf if scope is None else scope.deadline
