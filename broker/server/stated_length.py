"""Refuses a request that states its length in two ways, by `Content-Length` and by `Transfer-Encoding`.

Above: http.py. Below: h11, which goes by the second and keeps the connection. A proxy that goes by the first would take
what follows for a request of somebody else (RFC 9112, section 6.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


_REFUSED = "A request has either Content-Length or Transfer-Encoding, not both."


class OneLength:
    """An application behind the check; the connection of a request that is refused ends."""

    def __init__(self, app: ASGIApp) -> None:
        """Stand in front of an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request that states at most one length."""
        app = self._app
        if scope["type"] == "http" and {"content-length", "transfer-encoding"} <= set(Headers(scope=scope)):
            app = PlainTextResponse(_REFUSED, status_code=400, headers={"connection": "close"})
        await app(scope, receive, send)
