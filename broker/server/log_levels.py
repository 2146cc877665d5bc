"""Which clients want what a script prints as log messages, in both protocol eras.

Above: app.py. Below: identity.py. Until 2025-11-25 a client sets a level for its connection; since 2026-07-28 each
request names one. A client that has not said so wants none: printed text is in the reply anyhow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mcp.types as t
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from broker.server.identity import connection_of

if TYPE_CHECKING:
    from mcp.server import ServerRequestContext

_WITH_OUTPUT = ("debug", "info")
"""The levels at which a client is sent what its script prints, which is of level `info`."""

_META_KEY = "io.modelcontextprotocol/logLevel"


class LogLevels:
    """The levels that the clients of one server have set."""

    def __init__(self, most: int) -> None:
        """Remember them for so many connections; with one more all are forgotten."""
        self._most = most
        self._of_connection: dict[str, str] = {}

    async def set(self, ctx: ServerRequestContext[Any, Any], params: t.SetLevelRequestParams) -> t.EmptyResult:
        """Answer `logging/setLevel`."""
        if len(self._of_connection) >= self._most:
            self._of_connection.clear()
        self._of_connection[connection_of(ctx)] = params.level
        return t.EmptyResult()

    def want_output(self, ctx: ServerRequestContext[Any, Any]) -> bool:
        """Tell whether the client of a request is sent what its script prints now."""
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            wanted = (ctx.meta or {}).get(_META_KEY)
        else:
            wanted = self._of_connection.get(connection_of(ctx))
        return wanted in _WITH_OUTPUT
