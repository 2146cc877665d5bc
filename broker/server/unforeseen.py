"""Answers a client when the broker fails in an unforeseen way, without details.

Above: app.py. Below: the SDK's middleware. In the older era the SDK would send what the exception says, which may be a
path of the host.
"""

from __future__ import annotations

import traceback
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from mcp import MCPError
from mcp.types import INTERNAL_ERROR
from pydantic import ValidationError

from broker.logging import logger
from broker.texts import run_texts

if TYPE_CHECKING:
    from mcp.server import ServerRequestContext
    from mcp.server.context import CallNext, HandlerResult


async def told_without_details(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Answer a request; an exception that nobody caught is logged with its type and place, and the client sees neither.

    Raises:
        MCPError: The request failed.
        ValidationError: Its parameters are wrong; the SDK says so.
    """
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):
        raise
    except Exception as error:  # whatever it is, its text was not written for the client
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{PurePath(last.filename).name}:{last.lineno} in {last.name}"
        logger().error("a request failed", method=ctx.method, error=type(error).__name__, place=place)
        raise MCPError(INTERNAL_ERROR, run_texts.UNFORESEEN) from error
