"""The answer to a request whose token was refused: it says why, as RFC 6750, section 3, has it.

Above: http.py, which sets it before the endpoints; tokens.py, which knows why. Below: the SDK's guard, which alone says
the same of all tokens. What a token claims is judged after its signature, so that only who has a token of the issuer
is told about its claims.
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from typing import TYPE_CHECKING

from mcp.server.auth.middleware.bearer_auth import RequireAuthMiddleware
from starlette.routing import Route

from broker.logging import logger

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import Send

_UNAUTHORIZED = 401
_MAX_CHARACTERS = 300
_NOT_SAYABLE = re.compile(r"[^\x20-\x21\x23-\x5B\x5D-\x7E]")
"""What a description may not hold (RFC 6750, section 3)."""

_WHY: ContextVar[str] = ContextVar("_WHY", default="")


def say_why(reason: str) -> None:
    """Have the challenge to the present request, which has a task of its own, give a reason."""
    _WHY.set(_NOT_SAYABLE.sub("?", reason)[:_MAX_CHARACTERS])


def challenge_with_reasons(app: Starlette) -> None:
    """Let the guards of an application say why they refuse a token."""
    for route in app.routes:
        if isinstance(route, Route) and isinstance(guard := route.app, RequireAuthMiddleware):
            route.app = _Challenge(guard.app, guard.required_scopes, guard.resource_metadata_url)


class _Challenge(RequireAuthMiddleware):
    async def _send_auth_error(self, send: Send, status_code: int, error: str, description: str) -> None:
        why = (_WHY.get() if status_code == _UNAUTHORIZED else "") or description
        logger().info("a request was refused", reason=why)
        await super()._send_auth_error(send, status_code, error, why)
