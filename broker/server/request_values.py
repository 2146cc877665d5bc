"""A bound on the values of a request, which take up to sixty times their bytes once the SDK has decoded them.

Above: http.py, connections.py. Below: value_count.py. It stands behind the SDK's bound on bodies, which hands a body on
in one piece.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from broker.value_count import values_in

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

VALUES = 200_000
"""How many commas and brackets a request may hold beside its texts."""


class BoundedValues:
    """An application that passes on requests of no more values than they may have."""

    def __init__(self, app: ASGIApp) -> None:
        """Stand in front of an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with 413."""
        first = await receive()
        if values_in(first.get("body", b""), VALUES) > VALUES:
            await Response("Request body has too many values", status_code=413)(scope, receive, send)
            return
        await self._app(scope, received_again(first, receive), send)


def received_again(first: Message, receive: Receive) -> Receive:
    """Return what gives a message that was received already, and then those that follow."""
    waiting = [first]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again
