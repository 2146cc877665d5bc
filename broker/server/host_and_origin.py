"""Accepts `Host` and `Origin` only in the form that browsers use, so that they can be compared with the lists.

Tells the operator about requests that are refused because of them, here or by the comparison.

Above: http.py. Below: the SDK's check, which takes whatever follows `127.0.0.1:` for a port, and the first of several
headers for the only one.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from broker.logging import logger
from codegen.plain_text import one_line

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_PLACE = r"(?:\[[0-9A-Fa-f:.]*\]|[^:/@\s]*)(?::[0-9]{1,5})?"
_HOST = re.compile(_PLACE)
_ORIGIN = re.compile(rf"(?:null|[A-Za-z][A-Za-z0-9+.-]*://{_PLACE})?")

_REFUSING = {421: ("Host", "serve.allowed_hosts"), 403: ("Origin", "serve.allowed_origins")}
_SHOWN_CHARACTERS = 200


class HostAndOrigin:
    """An application behind the check of the forms."""

    def __init__(self, app: ASGIApp) -> None:
        """Stand in front of an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request with one `Host` and at most one `Origin` of the right form."""
        app = self._app
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if not all(map(_HOST.fullmatch, headers.getlist("host"))):
                app = PlainTextResponse("Invalid Host header", status_code=421)
            origins = headers.getlist("origin")
            if len(origins) > 1 or not all(map(_ORIGIN.fullmatch, origins)):
                app = PlainTextResponse("Invalid Origin header", status_code=403)
            send = partial(_tell_and_send, headers, send)
        await app(scope, receive, send)


async def _tell_and_send(headers: Headers, send: Send, message: Message) -> None:
    refusing = _REFUSING.get(message.get("status", 0))
    # The guard of tokens refuses with 403 too, always with a challenge, and tells that itself.
    if refusing is not None and "www-authenticate" not in Headers(raw=message.get("headers", [])):
        header, setting = refusing
        given = one_line(", ".join(headers.getlist(header)), _SHOWN_CHARACTERS)
        logger().info("a request was refused", reason=f"{setting} does not have its {header}", given=given)
    await send(message)
