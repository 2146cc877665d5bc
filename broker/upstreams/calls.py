"""Sends the calls to one upstream server, each at most once and within its time, and sorts out how one failed.

Above: upstream.py, which finds the connection. Below: connection.py, and tool_results.py for what a result says. A call
that failed is never repeated.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import anyio
from mcp import MCPError
from mcp.types import CONNECTION_CLOSED, INVALID_REQUEST, REQUEST_TIMEOUT
from pydantic import ValidationError

from broker.calls.tool_results import is_error
from broker.errors import (
    CallTimeoutError,
    InputRefusedError,
    OutcomeUnknownError,
    ReplyError,
    ToolRejectedError,
    UnavailableError,
)
from broker.logging import logger
from broker.texts import call_texts
from broker.upstreams.connection import AnswerLostError, NotExecutedError
from broker.upstreams.http_answers import UNREACHED
from broker.upstreams.http_trail import SESSION_OVER
from broker.upstreams.message_bounds import SIZE_REASONS
from broker.upstreams.progress import Progress
from broker.upstreams.remote_descriptions import NotTakenError
from broker.upstreams.upstream_requests import OpenCall, RefusedError, UpstreamRequests

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    import mcp.types as t
    from mcp.shared.dispatcher import ProgressFnT

    from broker.upstreams.connection import Connection
    from broker.upstreams.remote_descriptions import RemoteDescriptions
    from broker.upstreams.server_config import ServerConfig


class Calls:
    """Sends calls to one server."""

    def __init__(
        self,
        server: str,
        settings: ServerConfig,
        requests: UpstreamRequests,
        descriptions: RemoteDescriptions,
        *,
        on_call: Callable[[str, str, bool, float], None] | None,
        redact: Callable[[str], str],
    ) -> None:
        """Send to the server of that name; `requests` answers what it asks, `descriptions` has what it described.

        `on_call` and `redact` are those of `Upstream`.
        """
        self._server = server
        self._settings = settings
        self._requests = requests
        self._descriptions = descriptions
        self._on_call = on_call
        self._redact = redact

    async def send(
        self,
        connection: Connection,
        call: OpenCall,
        name: str,
        arguments: dict[str, Any],
        on_progress: ProgressFnT | None,
    ) -> dict[str, Any]:
        """Send one call and return the result as the server sent it. Cancelling it cancels the call at the server.

        Raises:
            UpstreamError: One of its subclasses, by what is known about the call.
        """
        began, is_success = time.monotonic(), False
        try:
            result = await self._answer(connection, call, name, arguments, on_progress)
            is_success = not is_error(result)
        except TimeoutError:
            raise self._late(call) from None
        except RefusedError as error:
            raise InputRefusedError(self._server, call_texts.input_refused(self._server, str(error))) from None
        except NotExecutedError as error:
            if error.status is None:
                problem = connection.reason or UNREACHED
                raise UnavailableError(self._server, call_texts.unavailable(self._server, problem)) from None
            raise UnavailableError(self._server, call_texts.refused_by_http(self._server, error.status)) from None
        except AnswerLostError as error:
            raise self._unknown_outcome(str(error)) from None
        except MCPError as error:
            raise self._error(connection, call, error) from None
        except (ValidationError, RuntimeError, RecursionError) as error:
            logger().warning("bad reply", server=self._server, error=type(error).__name__)
            raise ReplyError(self._server, call_texts.bad_answer(self._server)) from None
        else:
            return result
        finally:
            if self._on_call is not None:
                self._on_call(self._server, name, is_success, time.monotonic() - began)

    async def _answer(
        self, connection: Connection, call: OpenCall, name: str, arguments: dict[str, Any], listener: ProgressFnT | None
    ) -> dict[str, Any]:
        progress = None if listener is None else Progress(listener, self._redact)
        tell = None if progress is None else progress.tell
        asks = call.person is not None
        # Before its scope is made: the server computes meanwhile.
        sent = await connection.call_at_once(name, arguments, may_ask=asks) if progress is None else None

        def send(replies: Mapping[str, t.InputResponse] | None, state: str | None) -> Awaitable[dict[str, Any]]:
            nonlocal sent
            result, sent = sent, None
            if result is not None:
                return result()
            return connection.call_tool(name, arguments, tell, replies, state, may_ask=asks, sends=call.sends)

        call.scope = anyio.move_on_after(self._settings.call_timeout_seconds)
        self._requests.begin(call)
        try:
            with call.scope:
                if self._descriptions.may_be_wanted(name):
                    result = await self._described(connection, name, lambda: self._requests.completed(call, send))
                else:
                    result = await self._requests.completed(call, send)
        finally:
            self._requests.end(call)
        if call.scope.cancelled_caught:
            raise TimeoutError  # it was left at its deadline
        if progress is not None:
            await progress.end()
        return result

    async def _described(
        self, connection: Connection, name: str, send: Callable[[], Awaitable[dict[str, Any]]]
    ) -> dict[str, Any]:
        try:
            return await self._descriptions.call(connection, name, send)
        except NotTakenError as error:
            said = self._redact(str(error))
            raise UnavailableError(self._server, call_texts.still_to_be_read(self._server, name, said)) from None

    def _late(self, call: OpenCall) -> Exception:
        """Tell a call that its server did not answer in time from one that never got to it."""
        seconds = self._settings.call_timeout_seconds
        if not call.sends or any(sent.may_have_acted for sent in call.sends):
            return CallTimeoutError(self._server, call_texts.no_answer(self._server, seconds))
        status = call.sends[-1].refused
        if status is None:
            return UnavailableError(self._server, call_texts.not_taken(self._server, seconds))
        return UnavailableError(self._server, call_texts.refused_by_http(self._server, status, seconds))

    def _error(self, connection: Connection, call: OpenCall, error: MCPError) -> Exception:
        """Tell an answer of the server from a failure of the transport, which the SDK reports alike."""
        session_gone = error.code == INVALID_REQUEST and error.message == "Session terminated"
        if session_gone or (error.code == CONNECTION_CLOSED and error.message == "Connection closed"):
            connection.end("it closed the connection")
            return self._unknown_outcome(connection.reason)
        # The same code says in many servers that there is no such session.
        if error.code == REQUEST_TIMEOUT and not (call.sends and call.sends[-1].status == SESSION_OVER):
            return CallTimeoutError(self._server, call_texts.reported_timeout(self._server))
        return ToolRejectedError(self._server, error.code, self._redact(error.message))

    def _unknown_outcome(self, reason: str) -> OutcomeUnknownError:
        said = call_texts.lost_answer(self._server, self._redact(reason), is_too_large=reason in SIZE_REASONS)
        return OutcomeUnknownError(self._server, said)
