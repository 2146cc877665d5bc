"""Which requests of a connection are being answered: a second one of the same id is not executed.

Above: app.py, connections.py. Below: identity.py. Over HTTP until 2025-11-25, where the SDK hands one of the two the
other's answer and the other one none. A client that lost its answer, or a proxy, may send a request again while its
script still runs. Ids of other eras and transports belong to one request or to one stream, and are answered each.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from broker.server.identity import connection_of, principal_of_request

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp.server import ServerRequestContext
    from mcp.server.context import CallNext, HandlerResult

    RequestKey: TypeAlias = tuple[str, str, str]


class OpenRequests:
    """The requests of all connections that are open: until they are answered, and the answer was taken."""

    def __init__(self) -> None:
        """Start with none."""
        self._open: Counter[RequestKey] = Counter()

    def __contains__(self, key: RequestKey | None) -> bool:
        """Tell whether a request is open."""
        return key in self._open

    @contextmanager
    def holding(self, key: RequestKey | None) -> Iterator[None]:
        """Hold a request open for the time of a block; None is no request."""
        if key is None:
            yield
            return
        self._open[key] += 1
        try:
            yield
        finally:
            self._open[key] -= 1
            if not self._open[key]:
                del self._open[key]

    async def middleware(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Hold a request open while it is answered, whether or not its client still listens."""
        connection = "" if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else connection_of(ctx)
        if not connection or ctx.request_id is None:
            return await call_next(ctx)
        with self.holding((principal_of_request(), connection, str(ctx.request_id))):
            return await call_next(ctx)


def key_of(connection: str, message: Any) -> RequestKey | None:
    """Return the key of a request; None for what is no request, which is for others to refuse."""
    number = message.get("id") if isinstance(message, dict) and "method" in message else None
    return None if number is None else (principal_of_request(), connection, str(number))
