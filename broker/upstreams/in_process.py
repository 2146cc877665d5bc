"""A server in this process, reached without any encoding: each request is handled by the task that sends it.

Above: connecting.py. Below: the SDK's request handling, with its middleware. The SDK's own `DirectDispatcher` does the
same for two equal sides; it reads what the client says of itself and makes two deadlines for each request.
"""

from __future__ import annotations

import copy
import itertools
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import mcp.types as t
from mcp import MCPError
from mcp.server.connection import Connection
from mcp.server.runner import serve_one
from mcp.shared.dispatcher import CallOptions, Dispatcher, run_notify_intercept
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.transport_context import TransportContext
from mcp.types.version import LATEST_MODERN_VERSION
from pydantic import ValidationError

from broker.callbacks import failing_alone, is_failure
from broker.logging import logger
from sandbox.pace import PACE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcp.server import Server
    from mcp.shared.dispatcher import OnNotify, OnNotifyIntercept, OnRequest, ProgressFnT

_TRANSPORT = TransportContext(kind="direct", can_send_request=False)
_ENVELOPE = (t.PROTOCOL_VERSION_META_KEY, t.CLIENT_INFO_META_KEY, t.CLIENT_CAPABILITIES_META_KEY)


class InProcessDispatcher(Dispatcher[TransportContext]):
    """The client's end of a connection of 2026-07-28 to a server object."""

    def __init__(self, server: Server[Any], lifespan_state: Any) -> None:
        """Take the server, with what its lifespan gave."""
        self._server = server
        self._lifespan_state = lifespan_state
        self._numbers = itertools.count(1)
        self._envelope: tuple[Any, ...] = ()
        self._client: Connection | None = None
        self._notified: Callable[[str, Mapping[str, Any] | None], Awaitable[None]] | None = None

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Have the server handle a request; what its handler raises becomes the error that a client would be sent.

        Raises:
            MCPError: The server answered with an error, the time was over, or the connection is closed.
        """
        opts = opts or {}
        if self._notified is None:
            raise MCPError(code=t.CONNECTION_CLOSED, message="Connection closed")
        # Handlers need not wait for anything: other tasks have their turn all the same.
        await PACE.keep()
        timeout = opts.get("timeout")
        if timeout is None:
            return await self._answered(method, params, opts)
        try:
            with anyio.fail_after(timeout):
                return await self._answered(method, params, opts)
        except TimeoutError:
            raise MCPError(code=t.REQUEST_TIMEOUT, message=f"No answer to {method} within {timeout} s") from None

    async def _answered(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions) -> dict[str, Any]:
        """Return the server's answer, also where its code raises what is no `Exception`."""
        try:
            return await self.handled(method, params, opts)
        except BaseException as error:  # as `failing_alone` does, without its cost for each call
            if isinstance(error, Exception) or not is_failure(error):
                raise
            logger().exception("a handler failed", method=method)
            raise MCPError(code=t.INTERNAL_ERROR, message="Internal server error") from None

    async def handled(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions) -> dict[str, Any]:
        """Return the server's answer to a request, or raise its error as `MCPError`."""
        number = opts.get("request_id")
        request = HandledMessage(
            next(self._numbers) if number is None else number, self.notify_client, opts.get("on_progress")
        )
        try:
            return await serve_one(
                self._server,
                request,
                method,
                params,
                connection=self._connection(params),
                lifespan_state=self._lifespan_state,
            )
        except MCPError:
            raise
        except ValidationError:
            raise MCPError(code=t.INVALID_PARAMS, message="Invalid request parameters", data="") from None
        except Exception:  # noqa: BLE001  # whatever a handler raises; a client is told no more
            logger().exception("a handler failed", method=method)
            raise MCPError(code=t.INTERNAL_ERROR, message="Internal server error") from None

    def _connection(self, params: Mapping[str, Any] | None) -> Connection:
        """Return the connection of one request; what a client says of itself is read again only when it differs."""
        meta = (params or {}).get("_meta") or {}
        envelope = tuple(meta.get(key) for key in _ENVELOPE)
        if self._client is None or envelope != self._envelope:
            version, info, capabilities = envelope
            self._client = Connection.from_envelope(version or LATEST_MODERN_VERSION, info, capabilities)
            self._envelope = envelope
        connection = copy.copy(self._client)
        connection.state, connection.exit_stack = {}, AsyncExitStack()
        return connection

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Do nothing: the revision has no notifications from client to server."""

    async def notify_client(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Hand a notification of the server to the client."""
        if self._notified is not None:
            await self._notified(method, params)

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Be open until cancelled. Servers of the revision send no requests."""
        del on_request

        async def notified(method: str, params: Mapping[str, Any] | None) -> None:
            if not run_notify_intercept(on_notify_intercept, method, params):
                await on_notify(HandledMessage(None, self.notify_client), method, params)

        self._notified = notified
        try:
            task_status.started()
            await anyio.sleep_forever()
        finally:
            self._notified = None


@dataclass(slots=True)
class HandledMessage:
    """One message on its way, as the SDK's handlers see it."""

    request_id: t.RequestId | None
    notified: Callable[[str, Mapping[str, Any] | None], Awaitable[None]]
    on_progress: ProgressFnT | None = None
    transport: TransportContext = _TRANSPORT
    can_send_request: bool = False
    message_metadata: None = None
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Refuse: the revision has no requests from server to client."""
        del params, opts
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Notify the client."""
        del opts
        await self.notified(method, params)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell whoever made the request how far it is; a callback that fails is no matter of the server."""
        if self.on_progress is not None:
            try:
                with failing_alone():
                    await self.on_progress(progress, total, message)
            except Exception as error:  # noqa: BLE001  # the callback is the embedding program's
                logger().warning("a progress callback failed", error=type(error).__name__)
