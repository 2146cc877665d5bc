"""The three tools of the surface as data, in the forms that model APIs want.

Above: dispatch.py, the MCP server, embedding programs. Below: tool_texts.py. Names, order, texts and schemas never
depend on what is connected: the prompt caches of clients stay valid.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Literal

from broker.texts import tool_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

ToolFormat = Literal["mcp", "anthropic", "openai", "openai-chat"]
"""MCP `tools/list`, Anthropic Messages, OpenAI Responses, OpenAI Chat Completions."""

SEARCH, DETAILS, EXECUTE = "search_tools", "get_tool_details", "execute_code"

_STRING = {"type": "string"}
_NUMBER = {"type": "number"}


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    named = {"required": required} if required else {}
    return {"type": "object", "properties": properties, **named, "additionalProperties": False}


INPUT_SCHEMAS: Mapping[str, dict[str, Any]] = {
    SEARCH: _object(
        [],
        query=_STRING,
        detail={"enum": ["name", "brief", "full", "detailed"], "default": "brief"},
        mode={"enum": ["auto", "keyword", "regex", "embedding", "hybrid"]},
        server=_STRING,
        category=_STRING,
        annotations={"type": "object"},
        limit={"type": "integer", "default": 20},
        cursor=_STRING,
        session=_STRING,
    ),
    DETAILS: _object(["tools"], tools={"type": "array", "items": _STRING}, session=_STRING),
    EXECUTE: _object(
        ["code"],
        code=_STRING,
        timeout={"type": "number", "description": tool_texts.TIMEOUT},
        session={"type": "string", "description": tool_texts.SESSION},
    ),
}

ENVELOPE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "outcome": {"enum": ["completed", "raised", "stopped", "parked"]},
        "value": {},
        "stdout": _STRING,
        "stderr": _STRING,
        "error": {"type": ["null", "object"]},
        "stopped": {"type": ["null", "object"]},
        "calls": {"type": "array"},
        "usage": {"type": "object"},
        "run_id": _STRING,
        "duration_ms": _NUMBER,
        "truncated": {"type": ["null", "object"]},
        "session": {"type": ["null", "string"]},
    },
    "required": ["outcome", "run_id"],
}
"""The envelope in few tokens: some clients show it to their model. `ExecutionResult` is the whole shape."""


def tool_definitions(api: ToolFormat = "mcp") -> list[Any]:
    """Return the three tools as JSON data for an API, each time a new copy.

    They are dicts; as `Any` they fit the types that each client library has of its own.

    Args:
        api: `mcp` as `tools/list` has them, `anthropic` for `messages.create(tools=…)`, `openai` for
            `responses.create(tools=…)`, `openai-chat` for `chat.completions.create(tools=…)`.

    Raises:
        ValueError: There is no such format.
    """
    match api:
        case "mcp":
            return [_mcp(name) for name in INPUT_SCHEMAS]
        case "anthropic":
            return [_described(name) | {"input_schema": _schema(name)} for name in INPUT_SCHEMAS]
        case "openai":
            return [{"type": "function"} | _openai(name) for name in INPUT_SCHEMAS]
        case "openai-chat":
            return [{"type": "function", "function": _openai(name)} for name in INPUT_SCHEMAS]
    raise ValueError(f"there is no format {api!r}: use mcp, anthropic, openai or openai-chat")


def _described(name: str) -> dict[str, Any]:
    return {"name": name, "description": tool_texts.DESCRIPTIONS[name]}


def _schema(name: str) -> dict[str, Any]:
    return copy.deepcopy(INPUT_SCHEMAS[name])


def _mcp(name: str) -> dict[str, Any]:
    definition = _described(name) | {"inputSchema": _schema(name)}
    if name == EXECUTE:
        return definition | {"outputSchema": copy.deepcopy(ENVELOPE_SCHEMA)}
    return definition | {"annotations": {"readOnlyHint": True}}


def _openai(name: str) -> dict[str, Any]:
    # Not strict: that mode has no optional parameters.
    return _described(name) | {"parameters": _schema(name), "strict": False}
