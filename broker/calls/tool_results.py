"""The result of `tools/call` to the value that a script gets, by one rule.

Above: tool_calls.py, and upstreams/calls.py for whether a call failed. Below: json_schema.py, result_values.py,
call_failures.py, call_texts.py. Everything in a result was written by the server.

1. `isError`: the call fails in the script as `ToolError` with the server's text, marked as such.
2. A tool with an `outputSchema`: its `structuredContent`, checked against the schema. Where it is missing, one
   text block that is JSON and fits the schema stands for it (older servers). `{"result": value}` that a server
   wrapped around a plain value is unwrapped where the stub says so.
3. A tool without: its `structuredContent` if it sends one all the same; else one text block is its text,
   exactly, as `str`, and no block is `""`, or None where `_meta` says so; anything else is a list
   with a dict for each block.

A text is never parsed as JSON without a schema that says so: the type of a value would depend on its content,
and a tool that reads files would give a dict for one file and a string for the next.

Blocks that are not text become small dicts with `type`, `mime_type` and `size`; their base64 data stays here, and an
`id` names it for `display` and `read_bytes`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from broker.calls.call_failures import failure, quoted
from broker.calls.json_schema import first_fault
from broker.calls.result_values import bounded
from broker.errors import UnfitResultError
from broker.texts import call_texts, result_texts
from sandbox import Completion, Failed, Returned

if TYPE_CHECKING:
    from broker.calls.content_blocks import ContentBlocks
    from broker.calls.host_paths import HostPaths
    from broker.redaction import Redactor
    from broker.tools.catalog import CatalogEntry

MAX_BLOCKS = 1_000
"""Content blocks that a script may get of one result."""

NULL_KEY = "codemode/null"
"""Where `_meta` of a result without content tells that its value is null: the SDK leaves a null value out."""

_ABSENT = object()


def completion_of(
    raw: dict[str, Any], tool: CatalogEntry, paths: HostPaths, *, blocks: ContentBlocks | None, redact: Redactor
) -> Completion:
    """Turn a result into what the script's call returns or raises. Never raises.

    Blocks that are not text are kept in `blocks`, where the script can have them displayed. `redact` takes secrets out
    of a text that is cut, and `paths` those of the host: of half a secret nobody could tell later that it is one.
    """
    try:
        content = _content_of(raw)
        if is_error(raw):
            return _tool_error(raw, content, tool, paths, redact)
        return Returned(_value(raw, content, tool, blocks))
    except UnfitResultError as fault:
        text = call_texts.unfit_result(tool.qualified_name, str(fault), is_too_large=fault.is_too_large)
        return failure("ToolResultError", text, tool)


def is_error(raw: dict[str, Any]) -> bool:
    """Tell whether a result says that the call failed, also in another way than with `true`."""
    return raw.get("isError") not in (None, False)


def _content_of(raw: dict[str, Any]) -> list[Any]:
    if raw.get("resultType", "complete") != "complete":
        raise UnfitResultError(result_texts.UNKNOWN_TYPE)
    content = raw.get("content", [])
    # The Python SDK sends a list as structured content and, which nobody reads here, as a block for each item.
    is_read = is_error(raw) or raw.get("structuredContent") is None
    if not isinstance(content, list) or (is_read and len(content) > MAX_BLOCKS):
        raise UnfitResultError(result_texts.no_blocks(MAX_BLOCKS), is_too_large=isinstance(content, list))
    return content


def _value(raw: dict[str, Any], content: list[Any], tool: CatalogEntry, blocks: ContentBlocks | None) -> Any:
    structured = raw.get("structuredContent", _ABSENT)
    if tool.spec.output_schema is not None:
        return _structured_value(content, structured, tool)
    if structured is not _ABSENT and structured is not None:
        return bounded(structured)
    meta = raw.get("_meta")
    is_null = not content and isinstance(meta, dict) and meta.get(NULL_KEY) is True
    return None if is_null else _content_value(content, tool.spec.server, blocks)


def _tool_error(
    raw: dict[str, Any], content: list[Any], tool: CatalogEntry, paths: HostPaths, redact: Redactor
) -> Failed:
    blocks = [_block(one) for one in content]
    text = "\n".join(block["text"] for block in blocks if isinstance(block.get("text"), str))
    kept = _bounded_or_none(blocks)
    return failure(
        "ToolError",
        quoted(tool.spec.server, redact(text) or "no message", paths, is_in_content=kept is not None),
        tool,
        content=kept,
        structured_content=_bounded_or_none(raw["structuredContent"]) if "structuredContent" in raw else None,
    )


def _structured_value(content: list[Any], structured: Any, tool: CatalogEntry) -> Any:
    value = structured
    if value is _ABSENT or value is None:
        value = _from_text(content)
        if value is _ABSENT:
            raise UnfitResultError(result_texts.NO_STRUCTURED_CONTENT)
    value = bounded(value)
    fault = first_fault(value, tool.spec.output_schema)
    if fault is not None:
        raise UnfitResultError(result_texts.unlike_schema(fault))
    if isinstance(value, dict) and tool.unwraps_result:
        return value.get("result")
    return value


def _from_text(content: list[Any]) -> Any:
    match content:
        case [{"type": "text", "text": str() as text}]:
            try:
                return json.loads(text)
            except (ValueError, RecursionError):
                return _ABSENT
    return _ABSENT


def _content_value(content: list[Any], server: str, blocks: ContentBlocks | None) -> Any:
    match content:
        case []:
            return ""
        case [{"type": "text", "text": str() as text}]:
            return bounded(text)
    value = bounded([_block(one) for one in content])
    if blocks is not None:
        for handle, block in zip(value, content, strict=True):
            if (name := blocks.keep(block, server)) is not None:
                handle["id"] = name
    return value


def _block(block: Any) -> dict[str, Any]:
    """Return a block without base64 data. A block of a kind that we do not know keeps its type alone."""
    match block:
        case {"type": "text", "text": str() as text}:
            return {"type": "text", "text": text}
        case {"type": "image" | "audio" as kind, "data": str() as data}:
            return {"type": kind, "mime_type": _text(block.get("mimeType")), "size": _decoded_size(data)}
        case {"type": "resource", "resource": dict() as resource}:
            return _resource(resource)
        case {"type": "resource_link"}:
            size = block.get("size")
            return {
                "type": "resource_link",
                "uri": _text(block.get("uri")),
                "name": _text(block.get("name")),
                "mime_type": _text(block.get("mimeType")),
                "size": size if isinstance(size, int) else None,
            }
        case {"type": str() as kind}:
            return {"type": kind}
    return {"type": "unknown"}


def _resource(resource: dict[str, Any]) -> dict[str, Any]:
    handle: dict[str, Any] = {
        "type": "resource",
        "uri": _text(resource.get("uri")),
        "mime_type": _text(resource.get("mimeType")),
    }
    text, blob = resource.get("text"), resource.get("blob")
    if isinstance(text, str):
        return handle | {"size": len(text.encode("utf-8", "replace")), "text": text}
    return handle | {"size": _decoded_size(blob) if isinstance(blob, str) else 0}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _decoded_size(base64_text: str) -> int:
    return len(base64_text) * 3 // 4 - base64_text[-2:].count("=")


def _bounded_or_none(value: Any) -> Any:
    try:
        return bounded(value)
    except UnfitResultError:
        return None
