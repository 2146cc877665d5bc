"""Adapts answers and questions to what known agent programs do where the protocol leaves it open.

Above: app.py, way_to_client.py. Below: the definitions of the tools. A program is recognised by the name that it gives
itself; nothing but the form of an answer or a question depends on it. docs/serving.md has the versions that were tried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.surface import tool_definitions

if TYPE_CHECKING:
    from mcp.server import ServerRequestContext

    from broker.server.settings import StructuredContent

SHOW_STRUCTURED = (
    "claude-code",  # in the place of the text
    "codex-mcp-client",  # in the place of the text and of every image
    "copilot-cli",  # beneath the text
    "gemini-cli-mcp-client",  # beneath the text, where a run failed
    "Visual Studio Code",  # in the place of the text
)
"""How the names begin of programs that show structured content to their model, which then misses what the text says
besides, or reads it twice."""

DEFER_TOOLS = ("claude-code",)
"""How the names begin of programs that keep the tools of servers from their model until it looks for them."""

CHOICES_ALONE = ("codex-mcp-client",)
"""How the names begin of programs whose person cannot leave a text of a form empty."""

_AT_ONCE = {"anthropic/alwaysLoad": True}


def wants_structured(ctx: ServerRequestContext[Any, Any], setting: StructuredContent) -> bool:
    """Tell whether the client of a request is given structured content, and the schema that announces it."""
    if setting == "auto":
        return not _client(ctx).startswith(SHOW_STRUCTURED)
    return setting == "always"


def definitions_for(ctx: ServerRequestContext[Any, Any], setting: StructuredContent) -> list[dict[str, Any]]:
    """Return the three tools for the client of a request."""
    definitions = tool_definitions("mcp")
    is_structured, is_deferred = wants_structured(ctx, setting), _client(ctx).startswith(DEFER_TOOLS)
    for definition in definitions:
        if not is_structured:
            definition.pop("outputSchema", None)
        if is_deferred:
            definition["_meta"] = _AT_ONCE
    return definitions


def shows_texts(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Tell whether a form for the client of a request may have texts that nobody has to fill in."""
    return not _client(ctx).startswith(CHOICES_ALONE)


def _client(ctx: ServerRequestContext[Any, Any]) -> str:
    """Return the name that a client gives itself; empty where it has not said."""
    params = ctx.session.client_params
    return "" if params is None else params.client_info.name
